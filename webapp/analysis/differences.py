"""Differences in a comparison other than the compared factors, and those that follow from labels of hosts.

All factors, host, target, direction and run, and every fact of the observed configurations are checked.
Pooled: a cell has several levels, and its mean covers all of them. Confounded: at one chart point two series have
different levels, which may cause the difference between them. If the kernel derives the difference from a compared
setting, it follows and does not confound. Along x: neither, but it changes together with x.
Results of several runs in one cell are repeats, not pooled. Series from different runs are confounded by the run.
"""

from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter

from webapp.analysis import dimensions
from webapp.analysis.answer import Difference, DifferenceKind
from webapp.analysis.cells import CellKey, Grouped
from webapp.analysis.dimensions import (
    DIMENSIONS,
    IDENTITY,
    LABEL,
    MATCHED,
    PART,
    VOLATILE,
    Dimension,
    FactorDimension,
    causes,
    known_dimension,
    label_of,
    label_of_fact,
    setting_of,
)
from webapp.analysis.question import CompareQuery
from webapp.hosts.selectors import BESIDE, NO_LABEL, members_of
from webapp.plans.engines import ENGINE, engine_of
from webapp.plans.factors import AT_ONCE, CHANGE, FACTORS, HOSTS_AT_ONCE, STREAM, stream_and_factor
from webapp.plans.points import DERIVED_FROM, acts, differing, follow_from
from webapp.plans.streams import OF_TRIALS
from webapp.results.reading.content import CONTROLLER_FACT
from webapp.results.reading.filter import FACT_PREFIX, UNKNOWN
from webapp.results.reading.rows import ResultRow

# Differences that follow from the labels of hosts in their groups.
#
# If labels are compared and each label belongs to a different host, then hosts, targets, drives and runs are part of
# the comparison, not a second cause.

_LISTED = 4


def of_labels(differences: Sequence[Difference], query: CompareQuery, grouped: Grouped) -> list[Difference]:
    """Mark the differences that follow from labels, and add labels that stand for several hosts."""
    if LABEL not in query.dimensions:
        return list(differences)
    hosts: dict[str, set[str]] = {}
    for rows in grouped.cells.values():
        for row in rows:
            hosts.setdefault(row.label, set()).add(row.host)
    several = {label: names for label, names in hosts.items() if len(names) > 1}
    if several and not {"host", "target"} & set(query.dimensions):
        return [*differences, *(_of_several_hosts(label, names) for label, names in several.items())]
    each_another = not several and len(set[str]().union(*hosts.values())) == len(hosts)
    return [_marked(difference, query, grouped) if each_another else difference for difference in differences]


def _of_several_hosts(label: str, hosts: Iterable[str]) -> Difference:
    known = sorted(hosts)
    listed = ", ".join(known[:_LISTED]) + (f" and {len(known) - _LISTED} more" if len(known) > _LISTED else "")
    named = f"The label “{label}”" if label else f"“{NO_LABEL}”"
    text = f"{named} stands for several hosts ({listed}); its values combine all of them."
    return Difference(kind=DifferenceKind.POOLED, name="host", label=label_of("host"), text=text)


def _marked(difference: Difference, query: CompareQuery, grouped: Grouped) -> Difference:
    if (
        difference.kind is DifferenceKind.CONFOUNDED
        and LABEL in query.series
        and _labels_follows(difference.name, grouped)
    ):
        words = "differs between series"
    elif difference.kind is DifferenceKind.ALONG_X and query.x == LABEL and difference.name == "target":
        words = "changes along x"
    else:
        return difference
    text = f"{difference.label} {words} because each label belongs to a different host."
    return Difference(kind=DifferenceKind.FOLLOWS, name=difference.name, label=difference.label, text=text)


def _labels_follows(name: str, grouped: Grouped) -> bool:
    """Whether series with the same label have the same targets, or share a run, at each chart point."""
    if name not in ("target", "run"):
        return False
    values: dict[tuple[str, str, str], list[frozenset[object]]] = {}
    for (panel, _, x), rows in grouped.cells.items():
        values_here = frozenset(_value(row, name) for row in rows)
        values.setdefault((rows[0].label, panel, x), []).append(values_here)
    if name == "run":
        return all(frozenset.intersection(*sets) for sets in values.values())
    return all(len(set(sets)) == 1 for sets in values.values())


def _value(row: ResultRow, name: str) -> object:
    return row.run if name == "run" else row.target_name


# Covered by another dimension: host and drive by the target, the plan by the run, the configuration by its facts, tool
# and version by each of them. Repeats cause the spread.
_COVERED = frozenset(
    {"host", "plan", "model", "serial", "controller", "configuration", "repeat", "tool_version", LABEL, MATCHED}
)
_THE_DEVICE = frozenset({"target", "host", "model", "serial"})


@dataclass(frozen=True)
class _Candidate:
    """A dimension or fact that may differ. Rows with the same `of` have the same text, which is computed once.

    The text is None if the factor cannot act on the result, as the fsync of a workload that only reads: such a result
    does not differ from others.
    """

    name: str
    label: str
    text: Callable[[ResultRow], str | None]
    of: Callable[[ResultRow], Hashable]
    several_are_repeats: bool = False


def _of_point(row: ResultRow) -> Hashable:
    return id(row.point)  # rows of one point share it


def _of_configuration(row: ResultRow) -> Hashable:
    if not row.configuration:
        return tuple(sorted(row.facts.items()))  # imports have facts without a configuration
    return row.configuration, row.stream


@dataclass(frozen=True)
class _Held:
    """One row for each key of `of`, and the keys in each cell."""

    rows: Mapping[Hashable, ResultRow]
    cells: Mapping[CellKey, frozenset[Hashable]]


class _Holdings:
    """The keys of grouped results, computed for each `of` on first use."""

    def __init__(self, grouped: Grouped) -> None:
        self.grouped = grouped
        self._held: dict[Callable[[ResultRow], Hashable], _Held] = {}

    def by(self, of: Callable[[ResultRow], Hashable]) -> _Held:
        if of not in self._held:
            rows: dict[Hashable, ResultRow] = {}
            cells: dict[CellKey, frozenset[Hashable]] = {}
            for key, in_cell in self.grouped.cells.items():
                rows_by_key = {of(row): row for row in in_cell}
                rows |= rows_by_key
                cells[key] = frozenset(rows_by_key)
            self._held[of] = _Held(rows, cells)
        return self._held[of]


def differences(grouped: Grouped, query: CompareQuery) -> tuple[Difference, ...]:
    """All differences; confounding first, then pooling."""
    holdings = _Holdings(grouped)
    judged = [difference for candidate in _dimensions(query, holdings) for difference in _judged(candidate, holdings)]
    # names of tests and parts often repeat the workload, so they only matter where a mean covers several
    judged = [
        difference
        for difference in judged
        if difference.name not in ("test", PART) or difference.kind is DifferenceKind.POOLED
    ]
    judged = _of_groups([difference for difference in judged if not _is_covered(difference, query)], query, holdings)
    judged = [
        _of_cause(difference, query)
        for difference in _of_streams(_of_changes(judged, query, holdings), query, holdings)
    ]
    judged = of_labels(
        [_of_directions(difference, query, holdings.grouped) for difference in judged], query, holdings.grouped
    )
    known = {difference.name for difference in judged} | {name.removeprefix(FACT_PREFIX) for name in query.dimensions}
    known |= {"layout"} if _compares_layout_parts(query) else set()
    known |= {CONTROLLER_FACT} if "controller" in query.dimensions else set()
    configured = holdings.by(_of_configuration).rows
    facts = [
        difference for candidate in _facts(known, configured.values()) for difference in _judged(candidate, holdings)
    ]
    compared = {
        *query.dimensions,
        *(difference.name for difference in judged if difference.kind is DifferenceKind.FOLLOWS),
    }
    judged += [_following(difference, compared) for difference in _of_configurations(facts, query)]
    if query.x == MATCHED:  # what changes along x is matched
        judged = [difference for difference in judged if difference.kind is not DifferenceKind.ALONG_X]
    order = list(DifferenceKind)
    return tuple(sorted(judged, key=lambda difference: order.index(difference.kind)))


def _dimensions(query: CompareQuery, holdings: _Holdings) -> Iterable[_Candidate]:
    """Attributes and factors that the comparison does not name and that can differ."""
    factors = differing([row.point for row in holdings.by(_of_point).rows.values()])
    by_parts = _compares_layout_parts(query)
    yield from _layout_parts(query, holdings) if by_parts else ()
    of_streams = {name: known_dimension(name) for name in sorted(factors) if stream_and_factor(name)[0]}
    for name, dimension in {**DIMENSIONS, **of_streams}.items():
        if name in _COVERED or name in query.dimensions or (name in FACTORS and name not in factors):
            continue
        if name in dimensions.LAYOUT_PARTS or (name == "layout" and by_parts):
            continue
        if isinstance(dimension, FactorDimension):
            yield _Candidate(name, dimension.label, _factor_text(dimension), _of_point)
            continue
        text = _target_alone if name == "target" and "host" in query.dimensions else _level_text(dimension)
        of = attrgetter("target_name" if name == "target" else name)
        yield _Candidate(name, dimension.label, text, of, several_are_repeats=name == "run")


def _compares_layout_parts(query: CompareQuery) -> bool:
    return "layout" not in query.dimensions and not dimensions.LAYOUT_PARTS.keys().isdisjoint(query.dimensions)


def _layout_parts(query: CompareQuery, holdings: _Holdings) -> Iterable[_Candidate]:
    """The parts of the layouts that are not compared, instead of the whole line, which contains the compared ones."""
    of = attrgetter("layout")
    for name in dimensions.varying_parts(map(str, holdings.by(of).rows)):
        if name not in query.dimensions:
            yield _Candidate(name, label_of(name), _level_text(DIMENSIONS[name]), of)
    yield _Candidate("layout", "Layout without these parts", lambda row: dimensions.others_of(row.layout), of)


def _is_covered(difference: Difference, query: CompareQuery) -> bool:
    """Different drives imply different targets. Pooled targets are still reported. A tool with its version names the
    tool."""
    if difference.name == "tool":
        return "tool_version" in query.dimensions
    drives = {"model", "serial"} & set(query.dimensions)
    return difference.name == "target" and bool(drives) and difference.kind is not DifferenceKind.POOLED


def _of_groups(differing: Sequence[Difference], query: CompareQuery, holdings: _Holdings) -> list[Difference]:
    """If the number of targets or hosts at once is compared, different groups are part of the comparison, as long as
    every chart point has the same targets, alone or in groups, and all are of one model."""
    factor = next((name for name in (AT_ONCE, HOSTS_AT_ONCE) if name in query.dimensions), "")
    if not factor:
        return list(differing)
    holding = holdings.by(attrgetter("target_name"))
    members = {frozenset(member for key in keys for member in members_of(str(key))) for keys in holding.cells.values()}
    models = {model for row in holding.rows.values() for model in row.model.split(BESIDE)}
    if len(members) != 1 or len(models) > 1:
        return list(differing)
    text = f"All levels of {label_of(factor)} have the same targets ({_list(members.pop())}); the mean is over groups."
    groups = Difference(kind=DifferenceKind.FOLLOWS, name="target", label=label_of("target"), text=text)
    follow = {"target", "host"} if factor == HOSTS_AT_ONCE else {"target"}
    return list(dict.fromkeys(groups if difference.name in follow else difference for difference in differing))


def _of_changes(differing: Sequence[Difference], query: CompareQuery, holdings: _Holdings) -> list[Difference]:
    """If changes from a base are compared, their factors are not second causes: a change has one level of each."""
    if CHANGE not in query.series:
        return list(differing)
    points = [row.point for row in holdings.by(_of_point).rows.values()]
    changed = follow_from(CHANGE, points)
    return [
        _follows(difference, f": it is part of {label_of(CHANGE)}.") if difference.name in changed else difference
        for difference in differing
    ]


def _of_streams(all_differing: Sequence[Difference], query: CompareQuery, holdings: _Holdings) -> list[Difference]:
    """If streams are compared alone and beside others, the others and their levels are part of the comparison and left
    out here, as long as they are the same for all results of a stream at one level."""
    causes = [name for name in query.dimensions if name in OF_TRIALS]
    if not causes:
        return list(all_differing)
    groups: dict[tuple[object, ...], list[Mapping[str, object]]] = {}
    for row in holdings.by(_of_point).rows.values():
        groups.setdefault(tuple(row.point.get(name) for name in (STREAM, *causes)), []).append(row.point)
    free = set[str]().union(*map(differing, groups.values()))
    return [
        difference
        for difference in all_differing
        if difference.name in free or not (difference.name in OF_TRIALS or stream_and_factor(difference.name)[0])
    ]


def _of_cause(difference: Difference, query: CompareQuery) -> Difference:
    """A level that a compared factor determines is not a second cause: a size in bytes follows from its share."""
    cause = next((name for name in query.dimensions if name in DERIVED_FROM.get(difference.name, ())), "")
    return _follows(difference, f": it follows from {label_of(cause)}.") if cause else difference


def _of_directions(difference: Difference, query: CompareQuery, grouped: Grouped) -> Difference:
    """If the factor that decides the directions is compared, they are no second cause, as long as each of its levels
    has the same directions in every cell. Of several engines, the engine decides."""
    if difference.name != "direction" or difference.kind is not DifferenceKind.CONFOUNDED:
        return difference
    rows = [row for in_cell in grouped.cells.values() for row in in_cell]
    cause = {engine_of(row.point).DIRECTIONS_BY for row in rows}
    name = cause.pop() if len(cause) == 1 else ENGINE
    if name not in query.series:
        return difference
    directions: dict[object, set[frozenset[str]]] = {}
    for in_cell in grouped.cells.values():
        for level in {row.point.get(name) for row in in_cell}:
            directions_here = frozenset(row.direction for row in in_cell if row.point.get(name) == level)
            directions.setdefault(level, set()).add(directions_here)
    if any(len(sets) > 1 for sets in directions.values()):
        return difference
    return _follows(difference, f": it follows from {label_of(name)}.")


def _follows(difference: Difference, why: str) -> Difference:
    """A consequence of a compared factor, not a second cause."""
    text = difference.text.removesuffix(_MAY_BE) + why
    return Difference(kind=DifferenceKind.FOLLOWS, name=difference.name, label=difference.label, text=text)


def _level_text(dimension: Dimension) -> Callable[[ResultRow], str]:
    return lambda row: dimension.level(row).text


def _factor_text(dimension: FactorDimension) -> Callable[[ResultRow], str | None]:
    """None where the factor cannot act."""
    return lambda row: dimension.level(row).text if acts(dimension.name, row.point) else None


def _target_alone(row: ResultRow) -> str:
    """If hosts are compared, targets with the same name count as the same target."""
    return row.target


def _facts(known: set[str], configured: Iterable[ResultRow]) -> Iterable[_Candidate]:
    """Facts that no factor and no differing device covers. `configured` has one row for each configuration."""
    for name in sorted({name for row in configured for name in row.facts}):
        if name in VOLATILE or {name, setting_of(name)} & known or (_THE_DEVICE & known and name in IDENTITY):
            continue
        yield _Candidate(name, label_of_fact(name), _fact_text(name), _of_configuration)
    name = "engine version"
    if "tool_version" not in known:
        yield _Candidate(name, name, lambda row: row.engine_version or UNKNOWN, attrgetter("engine_version"))


def _of_configurations(facts: Sequence[Difference], query: CompareQuery) -> Sequence[Difference]:
    """If configurations are compared and differ in one fact only, this fact is part of the comparison."""
    confounding = [fact for fact in facts if fact.kind is DifferenceKind.CONFOUNDED]
    if "configuration" not in query.series or len(confounding) != 1:
        return facts
    only = confounding[0]
    marked = _follows(only, ": the only fact in which the configurations differ.")
    return [marked if fact is only else fact for fact in facts]


def _following(difference: Difference, compared: Collection[str]) -> Difference:
    """A fact that a compared factor brings about is no second cause: the kernel sets it along with a setting, a layout
    is another device."""
    reasons = causes(difference.name, compared) if difference.kind is DifferenceKind.CONFOUNDED else []
    return _follows(difference, f": it follows from {' and '.join(reasons)}.") if reasons else difference


def _fact_text(name: str) -> Callable[[ResultRow], str]:
    return lambda row: row.facts.get(name, UNKNOWN)


def _judged(candidate: _Candidate, holdings: _Holdings) -> list[Difference]:
    holding = holdings.by(candidate.of)
    texts = {key: text for key, row in holding.rows.items() if (text := candidate.text(row)) is not None}
    if len(set(texts.values())) < 2:
        return []
    seen = {cell: frozenset(texts[key] for key in keys if key in texts) for cell, keys in holding.cells.items()}
    seen = {cell: texts for cell, texts in seen.items() if texts}
    judged = []
    if series := _confounded(seen, candidate.several_are_repeats):
        judged.append(_difference(DifferenceKind.CONFOUNDED, candidate, _per_series(series, holdings.grouped)))
    pooled = {text for texts in seen.values() if len(texts) > 1 for text in texts}
    if pooled and not candidate.several_are_repeats:
        judged.append(_difference(DifferenceKind.POOLED, candidate, _list(pooled)))
    if not judged and not candidate.several_are_repeats and _along_x(seen):
        judged.append(
            _difference(DifferenceKind.ALONG_X, candidate, _list({t for texts in seen.values() for t in texts}))
        )
    return judged


def _confounded(seen: Mapping[CellKey, frozenset[str]], disjoint: bool) -> dict[str, frozenset[str]]:
    """Series key -> levels, at the first chart point where two series differ; empty if there is none.

    With `disjoint`, overlapping levels are no difference.
    """
    points: dict[tuple[str, str], dict[str, frozenset[str]]] = {}
    for (panel, series, x), texts in seen.items():
        points.setdefault((panel, x), {})[series] = texts
    for levels in points.values():
        first = next(iter(levels.values()))
        if any(not (first & texts) if disjoint else first != texts for texts in levels.values()):
            return levels
    return {}


def _along_x(seen: Mapping[CellKey, frozenset[str]]) -> bool:
    """Whether it changes between the chart points of one series in one chart."""
    charts: dict[tuple[str, str], set[frozenset[str]]] = {}
    for (panel, series, _), texts in seen.items():
        charts.setdefault((panel, series), set()).add(texts)
    return any(len(texts) > 1 for texts in charts.values())


def _per_series(levels: Mapping[str, frozenset[str]], grouped: Grouped) -> str:
    texts = [f"{series.text}: {_list(levels[series.key])}" for series in grouped.series if series.key in levels]
    return "; ".join(texts[:_LISTED]) + (" …" if len(texts) > _LISTED else "")


def _list(texts: Iterable[str]) -> str:
    known = sorted(texts, key=lambda text: (len(text), text))
    return ", ".join(known[:_LISTED]) + (f" and {len(known) - _LISTED} more" if len(known) > _LISTED else "")


_MAY_BE = ", so it may cause the difference."
_SENTENCES = {
    DifferenceKind.CONFOUNDED: "{label} differs between series ({levels})" + _MAY_BE,
    DifferenceKind.POOLED: "{label} has several levels in one point ({levels}); the mean covers all of them.",
    DifferenceKind.ALONG_X: "{label} also changes along x ({levels}).",
}


def _difference(kind: DifferenceKind, candidate: _Candidate, levels: str) -> Difference:
    text = _SENTENCES[kind].format(label=candidate.label, levels=levels)
    return Difference(kind=kind, name=candidate.name, label=candidate.label, text=text)


def verdict(query: CompareQuery, differing: Sequence[Difference], *, series: int) -> tuple[bool, str]:
    """Whether the series differ in one factor only, and a sentence about it."""
    confounding = [difference.label for difference in differing if difference.kind is DifferenceKind.CONFOUNDED]
    pooled = [
        difference.label
        for difference in differing
        if difference.kind is DifferenceKind.POOLED and difference.label not in confounding
    ]
    if series < 2:
        return not pooled, "Only one series: nothing to compare." if not pooled else f"Pooled over {_list(pooled)}."
    by = " and ".join(label_of(name) for name in query.series)
    if confounding:
        return False, f"Confounded by {', '.join(confounding)}."
    if len(query.series) > 1:
        return False, f"Series differ in {by} together."
    if pooled:
        return False, f"Series differ in {by} alone; pooled over {', '.join(pooled)}."
    return True, f"Single-factor: series differ in {by} alone."
