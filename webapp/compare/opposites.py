"""Differences in both directions: points where a series is higher for certain, and points where it is lower.

Their mean describes neither, so a sentence names both sides instead.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

from webapp.compare.claims import Claim
from webapp.compare.comparison import Level
from webapp.compare.dimensions import PARTS
from webapp.compare.grouping import is_clear

_LISTED = 3

Where = Callable[[Collection[str], Collection[str]], str]
"""Names levels of x by their keys; the second argument has the levels to tell them apart from."""


@dataclass(frozen=True)
class Side:
    """Points that differ for certain in one direction."""

    where: str  # 4 KiB to 64 KiB
    ratios: tuple[float, ...]


Found = Mapping[str, tuple[float, Claim]]
"""Ratio and claim by key of x."""


def opposites(found: Found, where: Where) -> tuple[Side, Side] | None:
    """The higher and the lower side; None if all certain differences have one direction."""
    higher = [key for key, (ratio, claim) in found.items() if claim.different and ratio > 1]
    lower = [key for key, (ratio, claim) in found.items() if claim.different and ratio < 1]
    if not higher or not lower:
        return None
    return _side(higher, found, where), _side(lower, found, where)


def _side(keys: Sequence[str], found: Found, where: Where) -> Side:
    return Side(where(keys, found.keys() - set(keys)), tuple(found[key][0] for key in keys))


def by_range(levels: Sequence[Level], label: str) -> Where:
    """`4 KiB to 64 KiB` if no other point is between, else a list. `label` names x where a level alone is not clear:
    `queue depth 1 to 8`."""

    def where(keys: Collection[str], others: Collection[str]) -> str:
        mine = [level for level in levels if level.key in keys]
        before = "" if all(map(is_clear, mine)) else f"{label} "
        inside = levels[levels.index(mine[0]) : levels.index(mine[-1])]
        if len(mine) > 2 and mine[0].number is not None and not any(level.key in others for level in inside):
            return f"{before}{mine[0].text} to {mine[-1].text}"
        return before + listed([level.text for level in mine])

    return where


def by_parts(levels: Sequence[Level]) -> Where:
    """For levels of several parts (`dimensions.PARTS`): the first part that tells both sides apart, such as
    `Queue depth 1`, or else a list of levels."""
    parts = {level.key: (level.key.split(PARTS), level.text.split(PARTS)) for level in levels}

    def where(keys: Collection[str], others: Collection[str]) -> str:
        mine = [level.key for level in levels if level.key in keys]
        for place in range(min(len(each) for pair in parts.values() for each in pair)):
            if {parts[key][0][place] for key in mine}.isdisjoint(parts[key][0][place] for key in others):
                return listed(list(dict.fromkeys(parts[key][1][place] for key in mine)))
        return listed([PARTS.join(parts[key][1]) for key in mine])

    return where


def listed(texts: Sequence[str]) -> str:
    more = len(texts) - _LISTED
    if more > 0:
        return f"{', '.join(texts[:_LISTED])} and {more} more"
    return " and ".join(filter(None, (", ".join(texts[:-1]), texts[-1])))
