"""Who leads, and who cannot be told from the leader.

A leader is claimed only if it is better than every other entry: each interval of the ratio is outside the margin, and
each p-value, times the number of other entries, is at most 5 %. The true best entry is one of the others whenever a
claim is false, so the chance of a false leader is at most 5 % (R. L. Berger: Multiparameter hypothesis testing and
acceptance sampling, Technometrics 24, 1982, for the intersection of tests; Bonferroni for the choice of the leader).

Fewer than three blocks are never a claim. Beyond the margin, the entry is then called the highest, not the leader.
"""

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from webapp.analysis.answer import MIN_TESTED
from webapp.analysis.cells import Measured
from webapp.analysis.claims import ALPHA, Contrast, contrast, same_order
from webapp.analysis.question import MARGIN
from webapp.core.statistics import Ratio

Values = Sequence[Measured]  # of one entry: a value for each workload


class Standing(StrEnum):
    FIRST = "first"
    LEVEL = "level"  # cannot be told from the first
    BEHIND = "behind"
    SEEN_BEHIND = "seen_behind"  # behind by more than the margin, in too few repeats for a claim
    NOT_COMPARED = "not_compared"  # a value is 0


class Lead(StrEnum):
    CLAIMED = "claimed"
    SEEN = "seen"  # in too few repeats for a claim
    NONE = "none"  # others cannot be told from the first
    ALONE = "alone"  # there is no other entry


@dataclass(frozen=True)
class Ranked:
    """`place` is the index among the entries as given; `ratio` is by which factor the first is better: above 1,
    also for latencies. None for the first, and if a value is 0."""

    place: int
    standing: Standing
    ratio: Ratio | None = None
    blocks: int = 0  # on the smaller side


@dataclass(frozen=True)
class Order:
    """The best first; equal values in the order that was given, and values of 0 last."""

    ranked: tuple[Ranked, ...]
    lead: Lead
    in_one_order: bool = False  # the first was measured before or after the others, so drift may be the reason

    def level_with(self, places: Collection[int]) -> "Order":
        """The same, but the entries at these places cannot be told from the first."""
        first, *others = self.ranked
        if not any(entry.place in places for entry in others):
            return self
        ranked = [
            Ranked(entry.place, Standing.LEVEL, None, entry.blocks) if entry.place in places else entry
            for entry in others
        ]
        return Order((first, *ranked), Lead.NONE)


def order_of(entries: Sequence[Values], *, lower_is_better: bool = False, weights: Sequence[float] = ()) -> Order:
    """`weights`: of the workloads, with the sum 1; equal without them."""
    sign = -1 if lower_is_better else 1
    values = [sign * _mean_log(entry, weights) if _is_positive(entry) else -math.inf for entry in entries]
    places = sorted(range(len(entries)), key=lambda place: -values[place])
    first, *others = places
    ranked = [
        _against(entries[first], entries[place], place, len(others), lower_is_better=lower_is_better, weights=weights)
        for place in others
    ]
    standings = {entry.standing for entry in ranked}
    lead = Lead.CLAIMED
    if not others:
        lead = Lead.ALONE
    elif standings & {Standing.LEVEL, Standing.NOT_COMPARED}:
        lead = Lead.NONE
    elif Standing.SEEN_BEHIND in standings:
        lead = Lead.SEEN
    drift = lead is Lead.CLAIMED and any(
        same_order(zip(entries[first], entries[place], strict=True)) for place in others
    )
    return Order((Ranked(first, Standing.FIRST), *ranked), lead, drift)


def _is_positive(entry: Values) -> bool:
    return all(value.positive for value in entry)


def _mean_log(entry: Values, weights: Sequence[float]) -> float:
    shares = weights or [1 / len(entry)] * len(entry)
    return math.fsum(share * math.log(value.mean) for share, value in zip(shares, entry, strict=True))


def _against(
    first: Values, other: Values, place: int, others: int, *, lower_is_better: bool, weights: Sequence[float]
) -> Ranked:
    if not (_is_positive(first) and _is_positive(other)):
        return Ranked(place, Standing.NOT_COMPARED)
    log_ratio = contrast(list(zip(first, other, strict=True)), weights)
    better = replace(log_ratio, value=-log_ratio.value) if lower_is_better else log_ratio
    return Ranked(place, _standing(better, others), better.ratio, better.n)


def _standing(better: Contrast, others: int) -> Standing:
    ratio = better.ratio
    if better.n < MIN_TESTED or ratio.low is None:
        beyond = ratio.value > 1 + MARGIN and (ratio.low is None or ratio.low > 1)
        return Standing.SEEN_BEHIND if beyond else Standing.LEVEL
    is_behind = ratio.low > 1 + MARGIN and others * better.p_different() <= ALPHA
    return Standing.BEHIND if is_behind else Standing.LEVEL
