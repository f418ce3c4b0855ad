"""From an address of Explore to the selected results: fit the choices, add the defaults, read the results."""

from dataclasses import dataclass

from webapp.compare.dimensions import DIMENSIONS
from webapp.compare.options import Pairs, ViewOptions, read_options, split
from webapp.compare.query import KEYS, read_query
from webapp.compare.selectors import Selected, select
from webapp.results.reading.filter import FACTOR_PREFIX, ResultFilter, read_filter, write_level
from webapp.results.reading.points import target_points
from webapp.results.reading.query import ResultQuery
from webapp.results.selectors import newest_run
from webapp.screens.explore.defaults import choose_for
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
    chosen. None without results."""
    compared, shown = split(pairs)
    asked = read_filter([pair for pair in compared if pair[0] not in KEYS])
    if any(key == "x" for key, _ in compared):
        return pairs
    newest = newest_run() if asked == ResultFilter() else None
    if newest is not None:
        compared = [*compared, ("run", str(newest))]
        asked = ResultFilter(runs=(newest,))
    found = target_points(ResultQuery.of(asked))
    if not found:
        return None
    taken = {name.strip() for key, text in compared if key in ("series", "panel") for name in text.split(",")}
    chosen = choose_for([each.without(taken) for each in found])
    axes = [("x", next(name for name in (chosen.x, *DIMENSIONS) if name not in taken))]
    axes += [(key, name) for key, name in (("series", chosen.series), ("panel", chosen.panel)) if name not in taken]
    made = [("target", chosen.target), *axes, ("metric", chosen.metric)]
    made += [(f"{FACTOR_PREFIX}{name}", write_level(name, level)) for name, level in chosen.fixed.items()]
    given = {key for key, _ in compared}
    return [*compared, *(pair for pair in made if pair[1] and pair[0] not in given), *shown]
