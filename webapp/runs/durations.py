"""Durations: of earlier runs on a host beyond the trials' run times, and of what remains of a run.

From the last `RUNS_LOOKED_AT` ended runs on the host: all trials that were done at the first attempt. All times are by
the server's clock, so wrong clocks of hosts have no effect:

    turnover   (ended - dispatched) - (runtime + ramp): order, settings, the engine's start and end, report; each run's
               median, because a trial during an outage is not representative. Of a run whose trials all end by an
               amount: engine started - dispatched, because the rest is part of the amount's time. The longest is that
               of the run's mean, with the median time from the end of a trial to the next order. In the mean, a trial
               counts with at most twice the median, because of outages.
    prefill    (engine started - dispatched) - the run's median of it, for a run's first trial on a set of files; bytes
               of the set / that time. Less than `MIN_PREFILL_S` means that the files existed already.
               Trials with steps before them count in neither.
    layout     build time reported by the worker, by line; not included in the two above.
    stop       ended - engine started, for trials with a stop rule, by targets and workload.
    load       (ended - engine started) - runtime, for trials that load a database, by targets and bytes; their turnover
               is engine started - dispatched.
    amount     bytes / (ended - engine started), for trials with an amount, by targets at once and workload.

Each run gives one value; `experience.Span` is the smallest, the median and the largest of them.
"""

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from statistics import fmean, median
from typing import Any
from uuid import UUID

import msgspec
from django.contrib.postgres.expressions import ArraySubquery
from django.db.models import (
    Aggregate,
    Avg,
    Count,
    ExpressionWrapper,
    F,
    FloatField,
    OuterRef,
    Q,
    QuerySet,
    Subquery,
    Sum,
)
from django.db.models.fields.json import KeyTextTransform
from django.db.models.functions import Cast, Coalesce, Extract

from webapp.hosts.models import Target
from webapp.plans.expected_time import Experience, Span
from webapp.runs.models import Attempt, AttemptKind, AttemptState, FurtherTarget, Run, SettingChange, Trial
from webapp.runs.states import ENDED_RUN_STATES
from worker.contract.workload import AnyWorkload, TargetKind, Workload

# Estimates the remaining time of a run from its done trials.
#
#     timed     run times and ramps, plus the median overhead for each trial
#     amounts   the median duration of trials with an amount, for each trial
#
# A trial that ends by time has `runtime_s` in its workload, and perhaps `ramp_s`, whatever its engine; PostgreSQL
# adds them up. Durations are from the order to the end, by the server's clock. Medians, because a trial during an
# outage, whose end is reported late, is not representative. Run times are summed separately, because a plan may mix
# long and short trials. A stop rule ends trials early, so their overhead beyond the maximum time may be negative.


class Median(Aggregate):
    """PostgreSQL's percentile_cont(0.5): the mean of the two middle values if their number is even."""

    function = "percentile_cont"
    template = "%(function)s(0.5) within group (order by %(expressions)s)"
    arity = 1


@dataclass(frozen=True)
class Work:
    """Remaining trials."""

    trials: int
    timed: int  # trials with a run time
    own_s: float  # the sum of their times and ramps


@dataclass(frozen=True)
class Pace:
    """Medians of a run's done trials; None if there is no trial of the kind."""

    besides_s: float | None = None
    amount_s: float | None = None

    def seconds(self, work: Work, *, besides_s: float | None = None) -> float | None:
        """Estimated seconds of the work; None if unknown. `besides_s`: the overhead before a timed trial is done."""
        besides = besides_s if self.besides_s is None else self.besides_s
        amounts = work.trials - work.timed
        if (work.timed and besides is None) or (amounts and self.amount_s is None):
            return None
        return max(0.0, work.own_s + work.timed * (besides or 0.0)) + amounts * (self.amount_s or 0.0)


def _own(workload: str) -> Any:
    """The run time of a trial in seconds; null for an amount."""
    ramp = Coalesce(Cast(KeyTextTransform("ramp_s", workload), FloatField()), 0.0)
    return Cast(KeyTextTransform("runtime_s", workload), FloatField()) + ramp


def work_of(trials: QuerySet[Trial], *by: str) -> Mapping[tuple[Any, ...], Work]:
    """The trials' work, grouped by these columns."""
    seconds = _own("workload")
    rows = trials.order_by().values_list(*by).annotate(trials=Count("pk"), timed=Count(seconds), total_s=Sum(seconds))
    return {tuple(key): Work(count, timed, own_s or 0.0) for *key, count, timed, own_s in rows}


def paces(attempts: QuerySet[Attempt]) -> Mapping[UUID, Pace]:
    """Pace by run, from the done trials among these attempts. One query."""
    done = attempts.filter(kind=AttemptKind.TRIAL, state=AttemptState.DONE)
    done = done.filter(ended_at__gt=F("created_at"))  # not if the server's clock was set back meanwhile
    took = Extract(F("ended_at") - F("created_at"), "epoch")
    besides = ExpressionWrapper(took - F("own"), output_field=FloatField())
    rows = done.annotate(own=_own("trial__workload")).order_by().values_list("run_id")
    medians = rows.annotate(besides=Median(besides), amount=Median(took, filter=Q(own=None)))
    return {run: Pace(besides_s, amount_s) for run, besides_s, amount_s in medians if run is not None}


RUNS_LOOKED_AT = 10
MAX_TRIALS = 1000
MIN_TRIALS = 3  # trials that a run needs for a value of turnover
MIN_PREFILL_S = 0.5


@dataclass(frozen=True)
class _Done:
    """A done trial; seconds by the server's clock."""

    run_id: UUID
    host_id: str
    target_ids: tuple[str, ...]  # targets used at once
    kind: str
    work: Workload
    before_s: float  # from the order to the engine's start, without building layouts
    lasted_s: float  # from the order to the end, likewise
    layout: str  # line of its layout, "" without one
    build_s: float | None  # build time of the layout, mean of its pools; None if it already existed
    steps: str | None  # before it: their time is part of `before_s`
    created: datetime  # the order
    ended: datetime

    @property
    def own_s(self) -> float:
        if self.work.may_end_early or self.work.load_bytes:
            return self.lasted_s - self.before_s
        return self.work.time_s

    @property
    def files(self) -> set[tuple[object, ...]]:
        """The prefilled sets of files, one per target."""
        if self.kind != TargetKind.DIRECTORY or not self.work.prefill:
            return set()
        return {(each, self.work.size_bytes, self.work.files, self.work.buffers) for each in self.target_ids}


def experience_of(targets: Sequence[Target]) -> dict[str, Experience]:
    """Experience by host id; hosts without earlier runs are left out. Two queries."""
    hosts = {target.host_id for target in targets}
    ended = Run.objects.filter(targets__host__in=hosts, state__in=ENDED_RUN_STATES, trial_count__lte=MAX_TRIALS)
    runs = list(ended.order_by("-number").distinct().values_list("pk", flat=True)[:RUNS_LOOKED_AT])
    per_host: dict[str, dict[UUID, list[_Done]]] = defaultdict(lambda: defaultdict(list))
    for done in _trials(runs, hosts):
        per_host[done.host_id][done.run_id].append(done)
    by_host = {host: _learned(list(by_run.values())) for host, by_run in per_host.items()}
    return {host: learned for host, learned in by_host.items() if learned is not None}


def _trials(runs: Sequence[UUID], hosts: Collection[UUID]) -> Iterator[_Done]:
    attempts = Attempt.objects.filter(
        run__in=runs,
        host__in=hosts,
        kind=AttemptKind.TRIAL,
        state=AttemptState.DONE,
        number=1,
        started_at__gte=F("created_at"),  # not if the server's clock was set back meanwhile
        ended_at__gte=F("started_at"),
        trial__further_workloads=[],  # streams with different workloads slow each other down
    )
    built = SettingChange.objects.filter(attempt=OuterRef("pk"), name="layout", restoring=False)
    further = FurtherTarget.objects.filter(trial=OuterRef("trial_id")).order_by("stream")
    times = built.order_by().values("attempt")
    attempts = attempts.annotate(
        layout=Subquery(built.values("asked")[:1]),
        all_builds_s=Subquery(times.annotate(all=Sum("took_s")).values("all")),
        build_s=Subquery(times.annotate(one=Avg("took_s")).values("one")),
        further=ArraySubquery(further.values("target_id")),
    )  # fmt: skip
    of_trial = ("trial__target_id", "further", "trial__target__kind", "trial__workload", "trial__point__before")
    fields = ("run_id", "host_id", *of_trial, "layout", "all_builds_s", "build_s")
    moments = ("created_at", "started_at", "ended_at")
    rows = attempts.order_by("-sequence").values_list(*fields, *moments)[:MAX_TRIALS]
    for run, host, target, others, kind, work, steps, layout, all_s, one_s, created, started, ended in reversed(rows):
        before, lasted = ((until - created).total_seconds() - (all_s or 0) for until in (started, ended))
        yield _Done(
            run, str(host), tuple(map(str, (target, *others))), kind, msgspec.convert(work, AnyWorkload),
            before, lasted, layout or "", one_s, steps, created, ended,
        )  # fmt: skip


def _learned(runs: Sequence[Sequence[_Done]]) -> Experience | None:
    turnovers, longest, prefills = [], [], []
    for trials in runs:
        first, later = _split([trial for trial in trials if not trial.steps])
        turnover = _turnovers(later)
        if len(turnover) < MIN_TRIALS:
            continue
        turnovers.append(usual := median(turnover))
        between = [max(0.0, (after.created - trial.ended).total_seconds()) for trial, after in pairwise(trials)]
        longest.append(max(usual, fmean(min(each, 2 * usual) for each in turnover)) + median(between))
        prefills += _prefill_rates(first, median(trial.before_s for trial in later))
    if not turnovers:
        return None
    amounts = _amount_rates([trial for trials in runs for trial in trials])
    return Experience(
        runs=len(turnovers),
        turnover_s=Span(min(turnovers), median(turnovers), max(longest)),
        prefill_bytes_per_s=Span.of(prefills) if prefills else None,
        amounts=amounts,
        stops_s=_stops([trial for trials in runs for trial in trials]),
        loads_s=_loads([trial for trials in runs for trial in trials]),
        builds_s=_builds([trial for trials in runs for trial in trials]),
    )


def _turnovers(trials: Sequence[_Done]) -> list[float]:
    timed = [max(0.0, trial.lasted_s - trial.own_s) for trial in trials if trial.work.moved_bytes is None]
    return timed or [trial.before_s for trial in trials]


def _split(trials: Sequence[_Done]) -> tuple[list[tuple[_Done, int]], list[_Done]]:
    """Trials with new sets of files, with their number, and all other trials."""
    seen: set[tuple[object, ...]] = set()
    first, later = [], []
    for trial in trials:
        if new := trial.files - seen:
            seen |= new
            first.append((trial, len(new)))
        else:
            later.append(trial)
    return first, later


def _prefill_rates(first: Sequence[tuple[_Done, int]], usual_before_s: float) -> list[float]:
    took = [(trial.work, sets, trial.before_s - usual_before_s) for trial, sets in first]
    return [
        (work.size_bytes or 0) * work.files * sets / seconds for work, sets, seconds in took if seconds >= MIN_PREFILL_S
    ]


def _builds(trials: Sequence[_Done]) -> Mapping[str, Span]:
    took: dict[str, list[float]] = defaultdict(list)
    for trial in trials:
        if trial.build_s is not None:
            took[trial.layout].append(trial.build_s)
    return {line: Span.of(seconds) for line, seconds in took.items()}


def _stops(trials: Sequence[_Done]) -> Mapping[tuple[tuple[str, ...], Workload], Span]:
    took: dict[tuple[tuple[str, ...], Workload], list[float]] = defaultdict(list)
    for trial in trials:
        if trial.work.may_end_early:
            took[trial.target_ids, msgspec.structs.replace(trial.work, seed=1)].append(trial.own_s)
    return {key: Span.of(seconds) for key, seconds in took.items()}


def _loads(trials: Sequence[_Done]) -> Mapping[tuple[tuple[str, ...], int], Span]:
    took: dict[tuple[tuple[str, ...], int], list[float]] = defaultdict(list)
    for trial in trials:
        if trial.work.load_bytes:
            took[trial.target_ids, trial.work.load_bytes].append(max(0.0, trial.own_s - trial.work.time_s))
    return {key: Span.of(seconds) for key, seconds in took.items()}


def _amount_rates(trials: Sequence[_Done]) -> Mapping[tuple[tuple[str, ...], Workload], Span]:
    rates: dict[tuple[tuple[str, ...], Workload], list[float]] = defaultdict(list)
    for trial in trials:
        if trial.work.moved_bytes is not None and trial.lasted_s > trial.before_s:
            rates[trial.target_ids, trial.work.rated()].append(
                trial.work.moved_bytes / (trial.lasted_s - trial.before_s)
            )
    return {key: Span.of(values) for key, values in rates.items()}
