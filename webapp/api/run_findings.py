"""Conclusions about one run: the steady state over its rounds, and the shares of its streams."""

from typing import Any

from django.http import HttpRequest
from ninja import Router, Schema

from webapp.api.runs import run_with
from webapp.compare.shares import Share, shares_of
from webapp.results.metrics import METRICS
from webapp.results.rounds import Tracked, tracked_points

router = Router(tags=["runs"])


class RoundsOut(Schema):
    """A tracked point of a part with `rounds until steady`. Range and change are of the bandwidth over the last five
    rounds, in percent of its mean. `steady`, `range_percent` and `change_percent` are null unless the last five rounds
    are complete."""

    part: str
    target: str
    point: dict[str, Any]
    rounds: int
    steady: bool | None
    range_percent: float | None
    change_percent: float | None

    @staticmethod
    def resolve_target(tracked: Tracked) -> str:
        return tracked.trial.place

    @staticmethod
    def resolve_rounds(tracked: Tracked) -> int:
        return tracked.count

    @staticmethod
    def resolve_steady(tracked: Tracked) -> bool | None:
        return tracked.verdict.steady if tracked.verdict else None

    @staticmethod
    def resolve_range_percent(tracked: Tracked) -> float | None:
        return tracked.verdict.range_percent if tracked.verdict else None

    @staticmethod
    def resolve_change_percent(tracked: Tracked) -> float | None:
        return tracked.verdict.change_percent if tracked.verdict else None


class ShareOut(Schema):
    """The IOPS of a stream beside others, divided by its IOPS alone; for several `streams`, the ratio of their sums.

    `metric` is `iops`, or the default metric of the engine for results without IOPS.

    `ratio` is the geometric mean over `n` repeats, `low` and `high` its 95 % interval. Without a ratio, `why_not` is
    the reason. `cautions` are reasons to doubt it.
    """

    streams: tuple[str, ...]
    targets: tuple[str, ...]
    point: dict[str, Any]
    direction: str
    metric: str
    ratio: float | None
    low: float | None
    high: float | None
    n: int
    why_not: str
    cautions: tuple[str, ...]

    @staticmethod
    def resolve_metric(share: Share) -> str:
        return share.metric.key

    @staticmethod
    def resolve_ratio(share: Share) -> float | None:
        return share.ratio.value if share.ratio else None

    @staticmethod
    def resolve_low(share: Share) -> float | None:
        return share.ratio.low if share.ratio else None

    @staticmethod
    def resolve_high(share: Share) -> float | None:
        return share.ratio.high if share.ratio else None


@router.get("/runs/{number}/rounds", response=list[RoundsOut])
def rounds(request: HttpRequest, number: int) -> list[Tracked]:
    """Whether the tracked points of the run's rounds are steady. Empty if its plan has no rounds."""
    return tracked_points(run_with(number))


@router.get("/runs/{number}/shares", response=list[ShareOut])
def shares(request: HttpRequest, number: int) -> list[Share]:
    """The share of its speed alone that each stream keeps beside others. Empty without named streams."""
    return shares_of(run_with(number), METRICS["iops"])
