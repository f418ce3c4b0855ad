"""The summary of each trend, stored once and read by the overview and the list of trends, so that both agree.

A periodic task (`trends.tasks`) makes the summaries whose trend has a new ended run, all of them after results were
marked as invalid or valid, and all when the rules change.
"""

import logging
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from itertools import pairwise
from statistics import fmean
from time import monotonic

import msgspec
from django.db.models import Max

from webapp.hosts.models import Host, Target
from webapp.plans.models import Plan
from webapp.results.metrics import METRICS, Metric, default_metric
from webapp.results.models import Result
from webapp.results.validity import marks_changed
from webapp.runs.models import Run, Trial
from webapp.runs.states import ENDED_RUN_STATES
from webapp.trends.models import TrendSummary
from webapp.trends.run_values import ended_runs, read_history
from webapp.trends.trend import Trend, trend
from worker.contract.steadiness import Verdict

log = logging.getLogger(__name__)

VERSION = 4  # raise it if the rules or Summary change: all summaries are made again
SHOWN_RUNS = 21


class State(StrEnum):
    """The most serious first. A step within the shown runs decides, or a gradual change since the last step. The newest
    run decides whether the target froze, or is worse than the runs before it, if they had no step to a lower level."""

    FROZE = "froze"
    SLOWER = "slower"
    WORSE = "worse"
    FASTER = "faster"
    UNCERTAIN = "uncertain"  # no certain change, but the runs vary too much to exclude one
    STEADY = "steady"
    SHORT = "short"  # too few runs for a search for steps

    @property
    def tone(self) -> str:
        """Its class of CSS."""
        calm = (State.SHORT, State.UNCERTAIN)
        return State.SLOWER.value if self is State.WORSE else State.STEADY.value if self in calm else self.value


class Step(msgspec.Struct, frozen=True, kw_only=True):
    """The last step of a trend, its fall, or its gradual change. `run` is the place of the first shown run on the new
    level, or of the change."""

    run: int
    at: datetime
    ratio: float  # new level by old level
    better: bool
    changed: tuple[str, ...]  # labels of what changed before that run: kernel release
    over: int = 0  # runs of a gradual change; 0 for a step


class Summary(msgspec.Struct, frozen=True, kw_only=True):
    """The newest SHOWN_RUNS runs, oldest first. `level` is the level before the step, or the only one; `spread` is the
    standard deviation of ln(value) around the levels or the line, None for fewer than three runs."""

    metric: str
    values: tuple[float, ...]
    times: tuple[datetime, ...]
    level: float
    spread: float | None
    step: Step | None
    state: State

    @property
    def ratios(self) -> tuple[float, ...]:
        """Values by the level."""
        return tuple(value / self.level for value in self.values)

    @property
    def text(self) -> str:
        """The newest value with its unit."""
        return METRICS[self.metric].format(self.values[-1])


@dataclass(frozen=True)
class Row:
    """A trend in a list."""

    plan: Plan
    target: Target
    newest_run: int
    summary: Summary


def make_due(budget_s: float) -> int:
    """Make missing and outdated summaries until the time is used up. Return their number."""
    until, made = monotonic() + budget_s, 0
    for plan, target, newest in _due():
        if monotonic() >= until:
            break
        make(plan, target, newest)
        made += 1
    return made


def make(plan: Plan, target: Target, newest_run: int) -> None:
    """Make and store the summary of a trend. A fault is logged, and not repeated until the next run."""
    marks = marks_changed()
    try:
        summary = summarise(plan, target)
    except Exception:
        log.exception("the trend of %s on %s could not be summarised.", plan.slug, target)
        summary = None
    values = {
        "newest_run": newest_run, "version": VERSION, "marks": marks,
        "content": msgspec.to_builtins(summary) if summary else {},
    }  # fmt: skip
    TrendSummary.objects.update_or_create(plan=plan, target=target, defaults=values)


def _due() -> Iterator[tuple[Plan, Target, int]]:
    """Trends whose summary is missing or outdated, those with the newest runs first."""
    marks = marks_changed()
    known = {
        (plan, target): newest
        for plan, target, newest in TrendSummary.objects.filter(version=VERSION, marks=marks).values_list(
            "plan", "target", "newest_run"
        )
    }
    ended = Run.objects.filter(state__in=ENDED_RUN_STATES, targets__isnull=False).order_by()
    trends = ended.values_list("version__plan", "targets").annotate(newest=Max("number")).order_by("-newest")
    due = [(plan, target, newest) for plan, target, newest in trends if known.get((plan, target)) != newest]
    plans = Plan.objects.in_bulk({plan for plan, _, _ in due})
    targets = Target.objects.select_related("host").in_bulk({target for _, target, _ in due})
    yield from ((plans[plan], targets[target], newest) for plan, target, newest in due)


def summarise(plan: Plan, target: Target) -> Summary | None:
    """Of the metric, the points and the runs that the page of the trend shows first. None without values."""
    runs = ended_runs(plan, target)
    metric = _metric(runs[-1:], target)
    history = read_history(runs, target, metric)
    keys = frozenset(key for run in history.runs for key, *_ in run.values.cells)
    target_trend = trend(history, metric, keys)
    return _summary(target_trend, target) if target_trend.runs else None


def _metric(newest: Sequence[Run], target: Target) -> Metric:
    trials = Trial.objects.filter(run__in=newest, target=target)
    return default_metric(trials.order_by("point_key").distinct("point_key").values_list("point", flat=True))


def _summary(target_trend: Trend, target: Target) -> Summary:
    shown = target_trend.runs[-SHOWN_RUNS:]
    first = len(target_trend.runs) - len(shown)
    last = target_trend.steps[-1] if target_trend.steps else None
    is_lasting = last is not None and last.after in shown and _is_worse(last.ratio, target_trend)
    fall = None if is_lasting else target_trend.fall
    last = fall or last
    at = target_trend.runs.index(last.after) - first if last else 0
    level = last.old_level if last else math.exp(fmean(math.log(run.value) for run in target_trend.runs))
    step = None
    if last and at >= 0:
        step = Step(
            run=at,
            at=last.after.at,
            ratio=last.ratio,
            better=not _is_worse(last.ratio, target_trend),
            changed=tuple(change.label for change in last.changed),
        )
    elif last:
        level = last.new_level
    if (step is None or step.better) and (gradual := _gradual(target_trend, first, step)):
        step, level = gradual, math.exp(target_trend.drift.start) if target_trend.drift else level
    return Summary(
        metric=target_trend.metric.key,
        values=tuple(run.value for run in shown),
        times=tuple(run.at for run in shown),
        level=level,
        spread=_spread(target_trend),
        step=step,
        state=_state(target_trend, target, step, is_fall=fall is not None),
    )


def _gradual(target_trend: Trend, first_shown: int, step: Step | None) -> Step | None:
    """The gradual change since the last step; a better one does not hide a step."""
    drift = target_trend.drift
    if drift is None:
        return None
    first = target_trend.runs[-drift.runs]
    ratio = math.exp(drift.change)
    better = not _is_worse(ratio, target_trend)
    if step and better:
        return None
    place = max(0, len(target_trend.runs) - drift.runs - first_shown)
    return Step(run=place, at=first.at, ratio=ratio, better=better, changed=(), over=drift.runs)


def _is_worse(ratio: float, target_trend: Trend) -> bool:
    return (ratio < 1) != target_trend.metric.lower_is_better


def _spread(target_trend: Trend) -> float | None:
    if (drift := target_trend.drift) and drift.runs == len(target_trend.runs):
        return drift.spread
    logs = [math.log(run.value) for run in target_trend.runs]
    ends = [0, *(target_trend.runs.index(step.after) for step in target_trend.steps), len(logs)]
    levels = [logs[start:end] for start, end in pairwise(ends) if end > start]
    freedom = len(logs) - len(levels)
    if freedom < 2:
        return None
    return math.sqrt(sum((value - fmean(level)) ** 2 for level in levels for value in level) / freedom)


def _state(target_trend: Trend, target: Target, step: Step | None, *, is_fall: bool) -> State:
    newest = Result.objects.filter(run=target_trend.runs[-1].run.pk, target=target, invalid=False)
    if newest.filter(steadiness=Verdict.STALLED).exists():
        return State.FROZE
    if step:
        return State.FASTER if step.better else State.WORSE if is_fall else State.SLOWER
    if target_trend.runs_missing:
        return State.SHORT
    return State.STEADY if target_trend.is_steady else State.UNCERTAIN


def summaries(host: Host | None = None, newest: Run | None = None) -> list[Row]:
    """All trends with values at targets in a policy (of one host, or that end with this run), hosts and targets by
    name. One query."""
    rows = TrendSummary.objects.filter(
        version=VERSION, plan__deleted_at=None, target__in_policy=True, target__host__archived_at=None
    ).exclude(content={})
    if host is not None:
        rows = rows.filter(target__host=host)
    if newest is not None:
        rows = rows.filter(plan__versions=newest.version_id, newest_run=newest.number)
    rows = rows.select_related("plan", "target__host").order_by("target__host__slug", "target__slug", "plan__title")
    return list(_rows(rows))


def _rows(stored: Iterable[TrendSummary]) -> Iterator[Row]:
    for each in stored:
        try:
            summary = msgspec.convert(each.content, Summary)
        except msgspec.ValidationError:
            continue  # of another version; it is made again soon
        yield Row(each.plan, each.target, each.newest_run, summary)


def worst_by_target(rows: Sequence[Row]) -> list[Row]:
    """One trend for each target, in their order: the most serious one; of equals, that with the newest run."""
    order = list(State)
    worst: dict[object, Row] = {}
    for row in rows:
        known = worst.get(row.target.pk)
        rank = (order.index(row.summary.state), -row.newest_run)
        if known is None or rank < (order.index(known.summary.state), -known.newest_run):
            worst[row.target.pk] = row
    return list(worst.values())
