"""From an address of Explore to the selected results: fit the choices, add the defaults, read the results."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from webapp.analysis.comparing import Selected, select
from webapp.analysis.dimensions import DIMENSIONS
from webapp.analysis.question import KEYS, Pairs, ViewOptions, read_options, read_query, split
from webapp.results.reading.filter import FACTOR_PREFIX, NOT_SET, ResultFilter, read_filter, write_level
from webapp.results.reading.points import MAX_RESULTS_READ, target_points
from webapp.results.reading.query import ResultQuery
from webapp.results.reading.rows import read_rows
from webapp.results.selectors import newest_import, newest_run
from webapp.screens.explore.defaults import Chosen, choose_for
from webapp.screens.explore.import_defaults import choose_for_imports
from webapp.screens.explore.revision import Fitted, fitted, still_there


@dataclass(frozen=True)
class Resolved:
    """`selected` is None if there are no results to choose defaults for."""

    fitted: Fitted  # the complete address, and what was dropped
    options: ViewOptions
    selected: Selected | None


def resolved(pairs: Pairs) -> Resolved:
    """Raises Refusal for a filter that cannot be read, and for too many results or series."""
    first = fitted(pairs)
    options = read_options(first.pairs)
    complete = with_defaults(first.pairs)
    if complete is None:
        return Resolved(first, options, None)
    selected = select(read_query(split(complete)[0]))
    then = still_there(complete, selected, options)
    if then.dropped:
        options = read_options(then.pairs)
        selected = select(read_query(split(then.pairs)[0]))
    return Resolved(Fitted(then.pairs, (*first.dropped, *then.dropped)), options, selected)


def with_defaults(pairs: list[tuple[str, str]]) -> list[tuple[str, str]] | None:
    """Unchanged with an x, else with the default comparison of the chosen results, or of the newest run if none are
    chosen, or of the newest import if there is no run. None without results."""
    compared, shown = split(pairs)
    asked = read_filter([pair for pair in compared if pair[0] not in KEYS])
    if any(key == "x" for key, _ in compared):
        return pairs
    if asked == ResultFilter():
        compared = [*compared, *_newest()]
        asked = read_filter([pair for pair in compared if pair[0] not in KEYS])
    given: dict[str, list[str]] = {}
    for key, text in compared:
        given.setdefault(key, []).extend(name.strip() for name in text.split(",") if name.strip())
    chosen = _chosen(ResultQuery.of(asked), given)
    return [*compared, *_made(chosen, given), *shown] if chosen else None


def _newest() -> list[tuple[str, str]]:
    if (run := newest_run()) is not None:
        return [("run", str(run))]
    imported = newest_import()
    return [] if imported is None else [("import", str(imported))]


def _chosen(found: ResultQuery, given: Mapping[str, Sequence[str]]) -> Chosen | None:
    if found.results.filter(origin__isnull=False).order_by().exists():
        return choose_for_imports(read_rows(found.results[:MAX_RESULTS_READ]), given)
    taken = {*given.get("series", ()), *given.get("panel", ())}
    measured = [each.without(taken) for each in target_points(found)]
    return choose_for(measured) if measured else None


def _made(chosen: Chosen, given: Mapping[str, Sequence[str]]) -> list[tuple[str, str]]:
    """The pairs that the address lacks."""
    taken = {*given.get("series", ()), *given.get("panel", ())}
    axes = [("x", next(name for name in (chosen.x, *DIMENSIONS) if name not in taken))]
    axes += [(key, name) for key, name in (("series", chosen.series), ("panel", chosen.panel)) if name not in taken]
    made = [("target", chosen.target), *axes, ("metric", chosen.metric)]
    fixed = [*chosen.fixed.items(), *((name, NOT_SET) for name in sorted(chosen.or_absent))]
    made += [(f"{FACTOR_PREFIX}{name}", write_level(name, level)) for name, level in fixed]
    return [pair for pair in made if pair[1] and pair[0] not in given]
