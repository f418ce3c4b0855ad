"""What earlier runs on a host took besides the trials' own times: what a preview's range is made of.

From the last `RUNS_LOOKED_AT` runs that have ended and used the host, all trials that are done at their first attempt.
By the server's clock, so that hosts with wrong clocks give no nonsense:

    turnover   (ended - dispatched) - (runtime + ramp): order, settings, fio's start and end, report; each run's
               median, since a trial that lasted through an outage says nothing about others.
    prefill    (fio began - dispatched) - the run's median of that, for a run's first trial on a set of files; bytes
               of the set over that time. Less than `MIN_PREFILL_S` means that the files were there already.
    layout     what the worker says that building took, by line; not in the two above.
    amount     bytes over (ended - fio began), for trials that an amount ends, by targets at once and workload.

Each run gives one figure; `estimate.Span` is the smallest, the median and the largest of them.
"""

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from uuid import UUID

import msgspec
from django.contrib.postgres.expressions import ArraySubquery
from django.db.models import OuterRef, Subquery

from webapp.hosts.models import Target
from webapp.plans.estimate import Experience, Span
from webapp.runs.models import Attempt, AttemptKind, AttemptState, FurtherTarget, Run, SettingChange
from webapp.runs.states import ENDED_RUN_STATES
from worker.contract.workload import AnyWorkload, TargetKind, Workload

RUNS_LOOKED_AT = 10
MAX_TRIALS = 1000
FEWEST_TRIALS = 3  # of a run, to say anything about turnover
MIN_PREFILL_S = 0.5


@dataclass(frozen=True)
class _Done:
    """A trial that is done; seconds by the server's clock."""

    run_id: UUID
    host_id: str
    target_ids: tuple[str, ...]  # used at once
    kind: str
    work: Workload
    before_s: float  # from the order to fio's beginning, without building a layout
    lasted_s: float  # from the order to the end, likewise
    layout: str  # line of the layout that it was on, "" without one
    build_s: float | None  # that it took to build; None where it stood already

    @property
    def own_s(self) -> float:
        return self.work.time_s

    @property
    def files(self) -> set[tuple[object, ...]]:
        """The sets of files that are written before their first use, one a target; none where nothing is."""
        if self.kind != TargetKind.DIRECTORY or not self.work.prefill:
            return set()
        return {(each, self.work.size_bytes, self.work.files, self.work.buffers) for each in self.target_ids}


def experience_of(targets: Sequence[Target]) -> dict[str, Experience]:
    """By host id; hosts without earlier runs are left out. Two queries."""
    hosts = {target.host_id for target in targets}
    ended = Run.objects.filter(targets__host__in=hosts, state__in=ENDED_RUN_STATES, trial_count__lte=MAX_TRIALS)
    runs = list(ended.order_by("-number").distinct().values_list("pk", flat=True)[:RUNS_LOOKED_AT])
    per_host: dict[str, dict[UUID, list[_Done]]] = defaultdict(lambda: defaultdict(list))
    for done in _trials(runs, hosts):
        per_host[done.host_id][done.run_id].append(done)
    found = {host: _learned(list(by_run.values())) for host, by_run in per_host.items()}
    return {host: learned for host, learned in found.items() if learned is not None}


def _trials(runs: Sequence[UUID], hosts: Collection[UUID]) -> Iterator[_Done]:
    attempts = Attempt.objects.filter(
        run__in=runs,
        host__in=hosts,
        kind=AttemptKind.TRIAL,
        state=AttemptState.DONE,
        number=1,
        started_at__isnull=False,
    )
    built = SettingChange.objects.filter(attempt=OuterRef("pk"), name="layout", restoring=False)
    further = FurtherTarget.objects.filter(trial=OuterRef("trial_id")).order_by("stream")
    attempts = attempts.annotate(
        layout=Subquery(built.values("asked")[:1]), took_s=Subquery(built.values("took_s")[:1]),
        further=ArraySubquery(further.values("target_id")),
    )  # fmt: skip
    of_trial = ("trial__target_id", "further", "trial__target__kind", "trial__workload")
    fields = ("run_id", "host_id", *of_trial, "layout", "took_s")
    times = ("created_at", "started_at", "ended_at")
    rows = attempts.order_by("-created_at").values_list(*fields, *times)[:MAX_TRIALS]
    for run, host, target, others, kind, work, layout, took_s, created, started, ended in reversed(rows):
        before, lasted = ((until - created).total_seconds() - (took_s or 0) for until in (started, ended))
        yield _Done(
            run, str(host), tuple(map(str, (target, *others))), kind, msgspec.convert(work, AnyWorkload),
            before, lasted, layout or "", took_s,
        )  # fmt: skip


def _learned(runs: Sequence[Sequence[_Done]]) -> Experience | None:
    turnovers, prefills = [], []
    for trials in runs:
        first, later = _split(trials)
        settled = [max(0.0, one.lasted_s - one.own_s) for one in later if one.work.moved_bytes is None]
        if len(settled) < FEWEST_TRIALS:
            continue
        turnovers.append(median(settled))
        prefills += _prefill_rates(first, median(one.before_s for one in later))
    if not turnovers:
        return None
    amounts = _amount_rates([one for trials in runs for one in trials])
    return Experience(
        runs=len(turnovers),
        turnover_s=Span.of(turnovers),
        prefill_bytes_per_s=Span.of(prefills) if prefills else None,
        amounts=amounts,
        builds_s=_builds([one for trials in runs for one in trials]),
    )


def _split(trials: Sequence[_Done]) -> tuple[list[tuple[_Done, int]], list[_Done]]:
    """Trials that found sets of files for the first time, with how many, and all others."""
    seen: set[tuple[object, ...]] = set()
    first, later = [], []
    for one in trials:
        if new := one.files - seen:
            seen |= new
            first.append((one, len(new)))
        else:
            later.append(one)
    return first, later


def _prefill_rates(first: Sequence[tuple[_Done, int]], usual_before_s: float) -> list[float]:
    took = [(one.work, sets, one.before_s - usual_before_s) for one, sets in first]
    return [
        (work.size_bytes or 0) * work.files * sets / seconds for work, sets, seconds in took if seconds >= MIN_PREFILL_S
    ]


def _builds(trials: Sequence[_Done]) -> Mapping[str, Span]:
    took: dict[str, list[float]] = defaultdict(list)
    for one in trials:
        if one.build_s is not None:
            took[one.layout].append(one.build_s)
    return {line: Span.of(seconds) for line, seconds in took.items()}


def _amount_rates(trials: Sequence[_Done]) -> Mapping[tuple[tuple[str, ...], Workload], Span]:
    rates: dict[tuple[tuple[str, ...], Workload], list[float]] = defaultdict(list)
    for one in trials:
        if one.work.moved_bytes is not None and one.lasted_s > one.before_s:
            rates[one.target_ids, one.work.rated()].append(one.work.moved_bytes / (one.lasted_s - one.before_s))
    return {key: Span.of(values) for key, values in rates.items()}
