"""A choice that was changed on the page: choices that no longer apply are dropped, so that no change is refused.

The form and the links of the page send `before`: x, series and panel as they were shown. An address without it was
typed or kept by a person and is taken as it is.
"""

from urllib.parse import parse_qsl, urlencode

from webapp.compare.dimensions import dimension
from webapp.compare.options import Pairs, read_options, split
from webapp.compare.places import places
from webapp.compare.query import read_query
from webapp.compare.selectors import for_latencies, select
from webapp.core.errors import Refusal
from webapp.results.filters import FACTOR_PREFIX

BEFORE = "before"
_ROLES = ("x", "series", "panel")
Slot = tuple[str, str]  # role and name of a dimension


def before_of(pairs: Pairs) -> str:
    """What the form sends as `before`."""
    return urlencode([pair for pair in pairs if pair[0] in _ROLES])


def revised(pairs: Pairs) -> list[tuple[str, str]]:
    """The pairs of an address with `before`, as an address of the page that does not refuse them."""
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
    """A dimension in two roles stays where it was chosen last; the other role takes the dimension that was given up."""
    given_up = [name for _, name in before if name not in {name for _, name in now}]
    made, used = dict[int, Slot](), set[str]()
    for place in sorted(range(len(now)), key=lambda place: now[place] in before):
        role, name = now[place]
        if name in used:
            name = given_up.pop(0) if given_up else ""
        if name:
            made[place] = (role, name)
            used.add(name)
    return [made[place] for place in sorted(made)]


def _is_pinned(pair: tuple[str, str], added: set[str], given: Pairs) -> bool:
    """One level of a dimension that is compared from now on would leave nothing to compare."""
    key, text = pair
    alone = sum(one[0] == key for one in given) == 1 and "," not in text and ".." not in text
    return alone and key.startswith(FACTOR_PREFIX) and key.removeprefix(FACTOR_PREFIX) in added


def _still_there(pairs: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """Without a baseline that is no series, and without a place at which nothing was measured."""
    asked = dict(pairs)
    if "baseline" not in asked and "spot" not in asked:
        return pairs
    try:
        query, options = read_query([pair for pair in split(pairs)[0] if pair[0] != "baseline"]), read_options(pairs)
        selected = select(query)
    except Refusal:  # the page says why; it names neither
        return [pair for pair in pairs if pair[0] not in ("baseline", "spot")]
    known = {
        "baseline": {series.key for series in selected.grouped.series},
        "spot": set(places(for_latencies(selected) if options.view == "latency" else selected)),
    }
    return [(key, text) for key, text in pairs if key not in known or text in known[key]]
