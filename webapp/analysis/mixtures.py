"""Cells that would be means over levels that nobody asked for. Such a cell has no value: a level has to be chosen.

A cell may cover repeats: those of a run, and further runs or imports with whatever their hosts were like. It may also
cover what its question names: the targets of a label, or the groups of so many targets at once.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence

from webapp.analysis.answer import Level, Mixture
from webapp.analysis.cells import CellKey, Grouped
from webapp.analysis.dimensions import LABEL, LAYOUT_PARTS, PART, known_dimension, label_of, others_of, part_of
from webapp.analysis.question import CompareQuery
from webapp.analysis.words import label_in_sentence
from webapp.plans.factors import AT_ONCE, CHANGE, FACTORS, HOSTS_AT_ONCE
from webapp.plans.points import DERIVED_FROM, acts, differing, follow_from, in_order
from webapp.results.reading.content import CONTROLLER_FACT
from webapp.results.reading.filter import FACT_PREFIX
from webapp.results.reading.rows import (
    LAYOUT_LABEL,
    MODEL_FACT,
    TEST,
    ResultRow,
    parts_are_alike,
    places_of_several_tests,
)

_OF_TARGETS = frozenset({"target", "serial", LABEL, AT_ONCE, HOSTS_AT_ONCE})  # each of their levels may be several
_OF_IMPORTS = ("host", "controller", "model", "layout", "tool")  # dimensions that are also filters
_LISTED = 4  # levels in a sentence
_OTHER_DIMENSIONS = frozenset({CONTROLLER_FACT, LAYOUT_LABEL, MODEL_FACT})  # facts that these dimensions show


def without_mixtures(grouped: Grouped, query: CompareQuery) -> tuple[Grouped, tuple[Mixture, ...]]:
    """The cells that have a value, and what the others mix. Levels without a cell are left out."""
    mixed = mixed_cells(grouped.cells, query)
    if not mixed:
        return grouped, ()
    cells = {key: rows for key, rows in grouped.cells.items() if key not in mixed}
    panels, series, x = ({key[place] for key in cells} for place in range(3))
    left = Grouped(
        cells,
        tuple(level for level in grouped.panels if level.key in panels),
        tuple(level for level in grouped.series if level.key in series),
        tuple(level for level in grouped.x if level.key in x),
    )
    return left, mixtures_of(grouped.cells, mixed)


def mixed_cells(cells: Mapping[CellKey, Sequence[ResultRow]], query: CompareQuery) -> dict[CellKey, list[str]]:
    """The dimensions of which a cell has several levels, by cell; cells with a value are left out."""
    return {key: names for key, rows in cells.items() if (names := _names(rows, query))}


def mixtures_of(
    cells: Mapping[CellKey, Sequence[ResultRow]], mixed: Mapping[CellKey, Collection[str]]
) -> tuple[Mixture, ...]:
    """What the `mixed` cells cover, one for each dimension."""
    names = in_order({name for of_cell in mixed.values() for name in of_cell})
    return tuple(_mixture(name, [cells[key] for key, of_cell in mixed.items() if name in of_cell]) for name in names)


def mixture_sentence(mixture: Mixture) -> str:
    known = [level.text for level in mixture.levels]
    listed = ", ".join(known[:_LISTED]) + (f" and {len(known) - _LISTED} more" if len(known) > _LISTED else "")
    is_single = mixture.points == 1
    return (
        f"{mixture.points} {'point has' if is_single else 'points have'} no value: "
        f"{'it covers' if is_single else 'each covers'} several levels of "
        f"{label_in_sentence(mixture.name, mixture.label)} ({listed})."
    )


def _mixture(name: str, cells: Sequence[Sequence[ResultRow]]) -> Mixture:
    levels = {level.key: level for rows in cells for level in _levels(name, rows)}
    ordered = sorted(levels.values(), key=lambda level: level.order)
    plain = tuple(Level(level.key, level.text, level.number) for level in ordered)
    return Mixture(name=name, label=label_of(name), levels=plain, points=len(cells))


def _levels(name: str, rows: Sequence[ResultRow]) -> Iterator[Level]:
    """Of the rows on which the dimension can have an effect."""
    dimension = known_dimension(name)
    is_factor = name in FACTORS
    for row in rows:
        if not is_factor or name == "layout" or acts(name, row.point):
            yield dimension.level(row)


def _names(rows: Sequence[ResultRow], query: CompareQuery) -> list[str]:
    """The dimensions of which one cell has several levels."""
    if len(rows) == 1:
        return []
    used = set(query.dimensions)
    imported = [row for row in rows if row.imported]
    names = [*_factors(rows, used), *_places(rows, used), *(_of_imports(imported, used) if imported else ())]
    if not names and TEST not in used and places_of_several_tests(rows, lambda row: str(row.repeat)):
        return [TEST]  # names of tests often repeat the workload: only of equal results
    return names


def _factors(rows: Sequence[ResultRow], used: Collection[str]) -> Iterator[str]:
    points = list({row.point_key: row.point for row in rows}.values())
    if len(points) < 2:
        return
    candidates = {name for name in differing(points) if name in FACTORS and name not in used}
    if CHANGE in used:
        candidates -= follow_from(CHANGE, points)
    for name in in_order(candidates):
        if name == "layout":
            yield from _layouts(rows, used)
        elif DERIVED_FROM.get(name, frozenset()).isdisjoint({*used, *candidates}) and _are_several(name, rows):
            yield name


def _layouts(rows: Sequence[ResultRow], used: Collection[str]) -> Iterator[str]:
    """The whole layout, or the parts of it that nobody compares if parts are compared."""
    if LAYOUT_PARTS.keys().isdisjoint(used):
        yield "layout"
        return
    lines = {row.layout for row in rows}
    parts = [name for name in LAYOUT_PARTS if name not in used and len({part_of(name, line).key for line in lines}) > 1]
    yield from parts or (["layout"] if len(set(map(others_of, lines))) > 1 else [])


def _places(rows: Sequence[ResultRow], used: Collection[str]) -> Iterator[str]:
    """Targets of runs, and parts of a plan with equal points."""
    of_runs = [row for row in rows if not row.imported]
    if _OF_TARGETS.isdisjoint(used) and len({row.target_name for row in of_runs}) > 1:
        yield "target"
    if PART not in used and parts_are_alike(of_runs):
        yield PART


def _of_imports(rows: Sequence[ResultRow], used: Collection[str]) -> Iterator[str]:
    """What was measured, and labels that differ inside a repeat: repeats with different labels stay repeats."""
    if "target" not in used:
        products = [name for name in _OF_IMPORTS if name not in used]
        yield from (name for name in products if not _is_part(name, used) and _are_several(name, rows))
    repeats: dict[tuple[int, int], list[ResultRow]] = {}
    for row in rows:
        repeats.setdefault((row.source, row.repeat), []).append(row)
    names = dict.fromkeys(name for row in rows for name in row.facts if name not in _OTHER_DIMENSIONS)
    for name in names:
        if f"{FACT_PREFIX}{name}" not in used and any(
            len({row.facts.get(name) for row in of_repeat}) > 1 for of_repeat in repeats.values()
        ):
            yield f"{FACT_PREFIX}{name}"


def _is_part(name: str, used: Collection[str]) -> bool:
    """Whether parts of the layout are compared instead."""
    return name == "layout" and not LAYOUT_PARTS.keys().isdisjoint(used)


def _are_several(name: str, rows: Sequence[ResultRow]) -> bool:
    return len({level.key for level in _levels(name, rows)}) > 1
