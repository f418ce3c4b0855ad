"""The shares that the streams of a run keep beside others, in words."""

from dataclasses import dataclass

from webapp.compare.shares import Share, shares_of
from webapp.core.formatting import percent
from webapp.plans.factors import BESIDE
from webapp.results.metrics import METRICS
from webapp.runs.models import Run
from webapp.screens import points

METRIC = METRICS["iops"]


@dataclass(frozen=True)
class ShareRow:
    name: str
    target: str
    direction: str
    words: str
    claimed: bool


def share_rows(run: Run) -> list[ShareRow]:
    return [_row(share) for share in shares_of(run, METRIC)]


def _row(share: Share) -> ShareRow:
    several = len(share.streams) > 1
    name = f"Sum of {' and '.join(share.streams)}" if several else points.in_words(share.point)
    return ShareRow(name, BESIDE.join(share.targets), share.direction, words(share), share.ratio is not None)


def words(share: Share) -> str:
    """`38 % of its IOPS alone (95 % CI 35 % to 41 %, n = 5)`, or why nothing is claimed."""
    if share.ratio is None:
        return f"no share: {share.why_not}" + (f" (n = {share.n})" if share.n else "")
    label = share.metric.label
    of = f"the sum of their {label}" if len(share.streams) > 1 else f"its {label}"
    low, high = share.ratio.low, share.ratio.high
    sure = f"95 % CI {_percent(low)} to {_percent(high)}, " if low is not None and high is not None else ""
    said = f"{_percent(share.ratio.value)} of {of} alone ({sure}n = {share.n})"
    return "; ".join([said, *share.cautions])


def _percent(value: float) -> str:
    return percent(100 * value)
