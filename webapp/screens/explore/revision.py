"""Fit the address of Explore: choices that do not fit are dropped and named, so that no change is refused.

A filter with levels that cannot be read, or with a misspelled name, is refused in an address that somebody wrote:
without it, the page would show other results. One that was typed into the form is dropped with the reason, so that
the page still shows the comparison before this change.
The form and the links of the page also send `before`: x, series and panel before the change. It decides which choice
of two is the newer one, and tells a form from a written address.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from urllib.parse import parse_qsl, urlencode

from webapp.analysis.comparing import Selected, for_latencies
from webapp.analysis.dimensions import dimension, label_of
from webapp.analysis.latency import chart_points
from webapp.analysis.question import KEYS, MAX_SERIES_FACTORS, OPTION_KEYS, Pairs, ViewOptions, read_options, read_query
from webapp.core.errors import Refusal, nearest
from webapp.plans.factors import FACTORS
from webapp.results.reading.filter import FACT_PREFIX, FACTOR_PREFIX, FilterRefused, read_filter
from webapp.results.reading.filter import KEYS as FILTER_KEYS

BEFORE = "before"
_ROLES = {"x": "x axis", "series": "series", "panel": "charts"}
_KEYS = {*KEYS, *OPTION_KEYS, *FILTER_KEYS}
_CHECKED = ("metric", "ratios", "margin")  # by `read_query`, each alone
Slot = tuple[str, str]  # role and name of a dimension


@dataclass(frozen=True)
class Fitted:
    """The pairs that fit, and the others in words."""

    pairs: list[tuple[str, str]]
    dropped: tuple[str, ...] = ()

    @property
    def sentence(self) -> str:
        return f"Dropped choices that do not fit: {'; '.join(self.dropped)}." if self.dropped else ""


def before_of(pairs: Pairs) -> str:
    """The value of `before` in the form."""
    return urlencode([pair for pair in pairs if pair[0] in _ROLES])


def fitted(pairs: Pairs) -> Fitted:
    """Without unknown keys and choices, dimensions that have two roles, and filters on one level of a new dimension."""
    given = [pair for pair in pairs if pair[0] != BEFORE and pair[1]]
    unknown = [pair for pair in given if not _is_known(pair)]
    given = [pair for pair in given if pair not in unknown]
    unread = _unread(given) if any(key == BEFORE for key, _ in pairs) else {}
    given = [pair for pair in given if pair not in unread]
    before = _known_slots(parse_qsl(next((value for key, value in pairs if key == BEFORE), "")))
    now = _last_slots(_named(given))
    axes = _each_once(now, _last_slots(before) or now)
    if [slot for slot in axes if slot] != _named(given):
        axis_pairs = [slot for slot in axes if slot]
        given = [*axis_pairs, *(pair for pair in given if pair[0] not in _ROLES)]
    added = {slot[1] for slot in axes if slot} - {name for _, name in before} if before else set[str]()
    pinned = [pair for pair in given if _is_pinned(pair, added, given)]
    lost = [slot for slot, left in zip(now, axes, strict=True) if left is None]
    choices = [*map(_choice_in_words, unknown), *unread.values()]
    dropped = [*choices, *map(_slot_in_words, lost), *map(_filter_in_words, pinned)]
    return Fitted([pair for pair in given if pair not in pinned], tuple(dropped))


def still_there(pairs: Pairs, selected: Selected, options: ViewOptions) -> Fitted:
    """Without a baseline that is not a series, and without a chart point that has no results."""
    known = {"baseline": {*(series.key for series in selected.grouped.series), *(key[1] for key in selected.mixed)}}
    if options.chart_point:
        known["chart_point"] = {*chart_points(for_latencies(selected) if options.view == "latency" else selected)}
    gone = [(key, text) for key, text in pairs if key in known and text not in known[key]]
    if not selected.rows and not selected.mixtures:
        gone = []  # nothing matches: the page says that, and the choices return with the results
    return Fitted([pair for pair in pairs if pair not in gone], tuple(map(_choice_in_words, gone)))


def _is_known(pair: tuple[str, str]) -> bool:
    key, text = pair
    if key not in _KEYS and not key.startswith((FACTOR_PREFIX, FACT_PREFIX)):
        return _resembles_a_filter(key)
    try:
        read_options([pair])
        if key in _CHECKED:
            read_query([("x", next(iter(FACTORS))), pair])
    except Refusal:
        return False
    return key not in _ROLES or all(dimension(name.strip()) for name in text.split(",") if name.strip())


def _unread(pairs: Pairs) -> dict[tuple[str, str], str]:
    """The filters that cannot be read, with the reason in words."""
    reasons = {}
    for pair in pairs:
        if pair[0] not in (*KEYS, *OPTION_KEYS):
            try:
                read_filter([pair])
            except FilterRefused as refusal:
                reason = str(refusal).removeprefix(f"{pair[0]}: ").removesuffix(".")  # it names the factor
                reasons[pair] = f"filter {reason}"
    return reasons


def _resembles_a_filter(key: str) -> bool:
    """`hots` for host, `block_size` for factor.block_size, `factors.size`: the reader of filters refuses it."""
    names = (*FILTER_KEYS, *FACTORS, FACTOR_PREFIX.rstrip("."))
    return key in names or bool(nearest(key.partition(".")[0], names, cutoff=0.7))


def _choice_in_words(pair: tuple[str, str]) -> str:
    key, text = pair
    return f"{_ROLES.get(key, key.replace('_', ' '))} {text}"


def _slot_in_words(slot: Slot) -> str:
    return f"{_ROLES[slot[0]]} {label_of(slot[1])}"


def _filter_in_words(pair: tuple[str, str]) -> str:
    return f"filter {label_of(pair[0].removeprefix(FACTOR_PREFIX))} {pair[1]}"


def _named(pairs: Pairs) -> list[Slot]:
    named = [(role, name.strip()) for role, text in pairs if role in _ROLES for name in text.split(",")]
    return [slot for slot in named if slot[1]]


def _known_slots(pairs: Pairs) -> list[Slot]:
    return [slot for slot in _named(pairs) if dimension(slot[1])]


def _last_slots(slots: Iterable[Slot]) -> list[Slot]:
    """Of x and panel the last one."""
    known = list(slots)
    last = dict(known)
    return [slot for slot in known if slot[0] == "series" or slot[1] == last[slot[0]]]


def _each_once(now: list[Slot], before: list[Slot]) -> list[Slot | None]:
    """A dimension in two roles keeps the newer role; the other role gets the dimension that was replaced, or None.
    Likewise for a series dimension too many."""
    replaced = [name for _, name in before if name not in {name for _, name in now}]
    made, used = list[Slot | None]([None] * len(now)), set[str]()
    for index in sorted(range(len(now)), key=lambda index: now[index] in before):
        role, name = now[index]
        if name in used:
            name = replaced.pop(0) if replaced else ""
        full = role == "series" and sum(slot is not None and slot[0] == role for slot in made) >= MAX_SERIES_FACTORS
        if name and not full:
            made[index] = (role, name)
            used.add(name)
    return made


def _is_pinned(pair: tuple[str, str], added: set[str], given: Pairs) -> bool:
    """A filter on one level of a dimension that was just chosen for comparison leaves nothing to compare."""
    key, text = pair
    alone = sum(other[0] == key for other in given) == 1 and "," not in text and ".." not in text
    return alone and key.startswith((FACTOR_PREFIX, FACT_PREFIX)) and key.removeprefix(FACTOR_PREFIX) in added
