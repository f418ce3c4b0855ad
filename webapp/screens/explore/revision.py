"""Changes of the query on the page: choices that no longer apply are dropped, so that no change is refused.

The form and the links of the page send `before`: x, series and panel before the change. An address without `before`
was typed or saved by a person and is used unchanged.
"""

from urllib.parse import parse_qsl, urlencode

from webapp.compare.chart_points import chart_points
from webapp.compare.dimensions import dimension
from webapp.compare.options import Pairs, read_options, split
from webapp.compare.query import read_query
from webapp.compare.selectors import for_latencies, select
from webapp.core.errors import Refusal
from webapp.results.reading.filter import FACTOR_PREFIX

BEFORE = "before"
_ROLES = ("x", "series", "panel")
Slot = tuple[str, str]  # role and name of a dimension


def before_of(pairs: Pairs) -> str:
    """The value of `before` in the form."""
    return urlencode([pair for pair in pairs if pair[0] in _ROLES])


def revised(pairs: Pairs) -> list[tuple[str, str]]:
    """The pairs of an address with `before`, changed so that the page accepts them."""
    given = [pair for pair in pairs if pair[0] != BEFORE and pair[1]]
    now = _slots(given)
    before = _slots(parse_qsl(next((value for key, value in pairs if key == BEFORE), ""))) or now
    axes = _each_once(now, before)
    added = {name for _, name in axes} - {name for _, name in before}
    if axes != _named(given):
        given = [*axes, *(pair for pair in given if pair[0] not in _ROLES)]
    return _still_there([pair for pair in given if not _is_pinned(pair, added, given)])


def _named(pairs: Pairs) -> list[Slot]:
    return [(role, name.strip()) for role, text in pairs if role in _ROLES for name in text.split(",")]


def _slots(pairs: Pairs) -> list[Slot]:
    """Known dimensions by role; of x and panel the last one."""
    known = [slot for slot in _named(pairs) if dimension(slot[1])]
    last = dict(known)
    return [slot for slot in known if slot[0] == "series" or slot[1] == last[slot[0]]]


def _each_once(now: list[Slot], before: list[Slot]) -> list[Slot]:
    """A dimension in two roles keeps the newer role; the other role gets the dimension that was replaced."""
    replaced = [name for _, name in before if name not in {name for _, name in now}]
    made, used = dict[int, Slot](), set[str]()
    for index in sorted(range(len(now)), key=lambda index: now[index] in before):
        role, name = now[index]
        if name in used:
            name = replaced.pop(0) if replaced else ""
        if name:
            made[index] = (role, name)
            used.add(name)
    return [made[index] for index in sorted(made)]


def _is_pinned(pair: tuple[str, str], added: set[str], given: Pairs) -> bool:
    """A filter on one level of a dimension that was just chosen for comparison leaves nothing to compare."""
    key, text = pair
    alone = sum(one[0] == key for one in given) == 1 and "," not in text and ".." not in text
    return alone and key.startswith(FACTOR_PREFIX) and key.removeprefix(FACTOR_PREFIX) in added


def _still_there(pairs: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """Without a baseline that is not a series, and without a chart point that has no results."""
    asked = dict(pairs)
    if "baseline" not in asked and "chart_point" not in asked:
        return pairs
    try:
        query, options = read_query([pair for pair in split(pairs)[0] if pair[0] != "baseline"]), read_options(pairs)
        selected = select(query)
    except Refusal:  # the page shows the message; it does not concern these two
        return [pair for pair in pairs if pair[0] not in ("baseline", "chart_point")]
    known = {
        "baseline": {series.key for series in selected.grouped.series},
        "chart_point": set(chart_points(for_latencies(selected) if options.view == "latency" else selected)),
    }
    return [(key, text) for key, text in pairs if key not in known or text in known[key]]
