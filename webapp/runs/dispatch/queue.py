"""What the database knows about the queue, and when its runs can start.

Times are estimated from the run's finished trials (`pace`); before the first one ends, from the plan's run times. A
trial with a fixed amount then makes the estimate unknown.
"""

import math
from collections import defaultdict
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from types import MappingProxyType
from uuid import UUID

from django.db import connection
from django.db.models import Exists, F, Max, Min, OuterRef, Q, QuerySet
from django.utils import timezone

from webapp.hosts.maintenance_windows import coming_spans, open_windows
from webapp.hosts.models import Host, HostState
from webapp.hosts.sessions import HEARD_WITHIN
from webapp.plans.expected_time import OVERHEAD_S
from webapp.runs.dispatch.locks import keys_of, wanting
from webapp.runs.durations import Pace, paces, work_of
from webapp.runs.models import (
    ACTIVE_ATTEMPT_STATES,
    ACTIVE_TRIAL_STATES,
    ENDED_TRIAL_STATES,
    OPEN_RUN_STATES,
    Attempt,
    AttemptKind,
    AttemptState,
    Run,
    RunState,
    TargetLock,
    Trial,
    TrialState,
)

# When waiting runs can start: the queue in order, with gaps filled by later runs that end in time.
#
# A run that needs several hosts waits until all of them are free. Meanwhile a later run may use one of them if it is
# expected to end before the waiting run can start. This is conservative backfilling: every waiting run has a
# reservation, and a later run must not overlap the reservation of any run before it. With true estimates no run
# starts later than without backfilling.
#
#     now                      limit          start
#      |------ gap ------------|-- reservation ------------|
#      a later run fits here   nothing starts here         the next run
#
# In a maintenance window, a host takes no trials: a run starts after it, and a run that it interrupts takes longer.
# A run on several hosts whose window is open is expected at its end; until then, its other hosts are free for runs
# that end in time.
#
# Estimates may be wrong. A run is never interrupted, so a run that started ahead and is late moves the start of the
# waiting run. It does not move `limit`: only runs that do not overtake count for it. So the next run that is let
# ahead must end before the same moment, and a waiting run waits at most for the runs that started ahead before its
# limit. Without an estimate nothing starts ahead.
#
# Sources: D. Lifka, "The ANL/IBM SP Scheduling System", JSSPP 1995 (EASY backfilling, with one reservation); A.
# Mu'alem and D. Feitelson, "Utilization, Predictability, Workloads, and User Runtime Estimates in Scheduling the IBM
# SP2 with Backfilling", IEEE TPDS 12(6), 2001 (conservative backfilling, and the effect of wrong estimates).

Resource = Hashable  # a host, or a drive that several hosts see
_SHORTEST_S = 1.0


@dataclass(frozen=True)
class Job:
    """A waiting run, on one host or on all its hosts at once. Times are in seconds from now."""

    key: Hashable
    resources: frozenset[Resource]
    seconds: float | None  # expected; None: unknown
    margin_s: float = 0.0  # more time that must be free before the next reservation
    position: int = 0  # in the queue
    queued_s: float = 0.0  # when it came, below 0

    @property
    def length_s(self) -> float:
        return math.inf if self.seconds is None else max(self.seconds, _SHORTEST_S)


@dataclass(frozen=True)
class Busy:
    """A resource in use by a run or an action."""

    resource: Resource
    seconds: float | None  # until it is free; None: unknown
    position: int = -1  # of its run in the queue
    started_s: float = -math.inf  # below 0

    def overtook(self, job: Job) -> bool:
        """Whether it started ahead of a job that was waiting already."""
        return self.position > job.position and self.started_s > job.queued_s


@dataclass(frozen=True)
class Start:
    """`at_s`: when the job is expected to start, None: unknown. `overtakes`: jobs before it in the queue that share a
    resource and start later."""

    at_s: float | None
    overtakes: tuple[Hashable, ...] = ()


Closed = Mapping[Resource, Sequence[tuple[float, float]]]  # maintenance windows, in seconds from now


def planned_starts(
    jobs: Sequence[Job], busy: Iterable[Busy], closed: Closed = MappingProxyType({})
) -> dict[Hashable, Start]:
    """By key. `jobs` are in the order of the queue."""
    in_use: dict[Resource, list[Busy]] = defaultdict(list)
    for use in busy:
        in_use[use.resource].append(use)
    reserved: dict[Resource, _Intervals] = defaultdict(_Intervals)
    starts: dict[Hashable, Start] = {}
    waiting: dict[Resource, list[Job]] = defaultdict(list)
    for job in jobs:
        uses = [use for resource in job.resources for use in in_use[resource]]
        reservations = [reserved[resource] for resource in job.resources]
        windows = _Intervals(span for resource in job.resources for span in closed.get(resource, ()))
        start_s = _earliest(job, uses, reservations, windows)
        limit_s = _earliest(job, [use for use in uses if not use.overtook(job)], reservations, windows)
        end_s = math.inf if start_s == math.inf else windows.end_of_work(start_s, job.length_s)
        for reservation in reservations:
            reservation.add(0.0 if limit_s == math.inf else limit_s, end_s)
        before = {other.key: other for resource in job.resources for other in waiting[resource]}
        overtakes = tuple(key for key in before if _later(starts[key].at_s, start_s))
        starts[job.key] = Start(None if start_s == math.inf else start_s, overtakes)
        for resource in job.resources:
            waiting[resource].append(job)
    return starts


def _later(other_s: float | None, start_s: float) -> bool:
    return start_s < (math.inf if other_s is None else other_s)


def _earliest(job: Job, uses: Collection[Busy], reservations: Collection["_Intervals"], windows: "_Intervals") -> float:
    """Seconds until the job finds a gap on all its resources; infinite: unknown."""
    start_s = max((math.inf if use.seconds is None else use.seconds for use in uses), default=0.0)
    while start_s < math.inf:
        end_s = windows.end_of_work(start_s, job.length_s + job.margin_s)
        ends = [reservation.end_of_overlap(start_s, end_s) for reservation in reservations]
        latest = max([windows.end_of_overlap(start_s, start_s), *ends])
        if latest == start_s:
            break
        start_s = latest
    return start_s


class _Intervals:
    """Times of one resource that are reserved, in order. Intervals that touch are one."""

    def __init__(self, intervals: Iterable[tuple[float, float]] = ()) -> None:
        self._intervals: list[tuple[float, float]] = []
        for begin_s, end_s in intervals:
            self.add(begin_s, end_s)

    def add(self, begin_s: float, end_s: float) -> None:
        apart = []
        for begin, end in self._intervals:
            if end < begin_s or end_s < begin:
                apart.append((begin, end))
            else:
                begin_s, end_s = min(begin_s, begin), max(end_s, end)
        self._intervals = sorted([*apart, (begin_s, end_s)])

    def end_of_overlap(self, begin_s: float, end_s: float) -> float:
        """Where the last interval ends that overlaps; `begin_s` without one."""
        overlapping = [end for begin, end in self._intervals if begin_s < end and (begin < end_s or begin == begin_s)]
        return max(overlapping, default=begin_s)

    def end_of_work(self, begin_s: float, length_s: float) -> float:
        """Where work of this length ends that stops in each interval."""
        end_s = begin_s + length_s
        for begin, end in self._intervals:
            if begin_s < end and begin < end_s:
                end_s += end - max(begin, begin_s)
        return end_s


# The queue of runs: one for all hosts.
#
# Hosts take runs in the order of `Run.queue_position`, which is unique. A host finishes a started run first, unless
# it is paused. The priority of a run decides its initial position. While a run waits for other hosts, a later one may
# start ahead of it.

HEARD_WITHIN_SECONDS = HEARD_WITHIN.total_seconds()
_QUEUE_LOCK = 0x71_7565_7565


def queued_runs() -> QuerySet[Run]:
    """Open runs in the order of the queue."""
    open_runs = Run.objects.filter(state__in=OPEN_RUN_STATES)
    return open_runs.order_by(F("queue_position").asc(nulls_last=True), "number")


def waits_for_arming() -> Q:
    """Runs with destructive trials left that are not armed: never, no longer, or too late."""
    stale = (
        Q(armed_until=None) | Q(started_at=None, armed_until__lt=timezone.now()) | Q(started_at__gt=F("armed_until"))
    )
    left = Trial.objects.filter(run=OuterRef("pk"), state=TrialState.PLANNED, destructive=True)
    return (Q(armed_serials=[]) | stale) & Q(Exists(left))


def lock_queue() -> None:
    """Lock the queue until the commit, to add a run or change the order. So run numbers are unique and have no gaps."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(%s)", [_QUEUE_LOCK])


def position_for(priority: int) -> int:
    """The position before all waiting runs of a lower priority, or the last one. Call it with the queue locked."""
    lower = Run.objects.filter(state=RunState.QUEUED, priority__lt=priority, queue_position__isnull=False)
    position: int | None = lower.aggregate(first=Min("queue_position"))["first"]
    if position is None:
        last: int | None = Run.objects.aggregate(last=Max("queue_position"))["last"]
        return (last or 0) + 1
    Run.objects.filter(queue_position__gte=position).update(queue_position=F("queue_position") + 1)
    return position


RunOnHost = tuple[UUID, UUID]  # run, host
CLOSING_S = 60.0  # for restoring settings, after the last trial
MEASURED_MARGIN = 0.1  # of the time that a run with finished trials is expected to take
_INVENTORY_S = 60.0


@dataclass(frozen=True)
class Load:
    """The remaining work of a run on one host."""

    left: int
    active: int  # 0 or 1
    seconds: float | None  # None: unknown
    measured: bool = False  # from the run's own finished trials


class QueueState:
    """All data from the database, each read once, with a fixed number of queries."""

    def __init__(self) -> None:
        self.now = timezone.now()
        self.runs = list(queued_runs().select_related("version__plan", "created_by", "paused_by"))
        self.unarmed = set(
            Run.objects.filter(waits_for_arming(), state__in=OPEN_RUN_STATES).values_list("pk", flat=True)
        )
        self.loads = _loads()
        self.holding = _holding()
        self.locks = {
            lock.lock_key: lock for lock in TargetLock.objects.select_related("attempt__run", "attempt__host")
        }
        self.wanted = _wanted_keys(list(self.locks))
        self.closing = _closing()
        hosts = {host for _, host in self.loads}
        self.windows = open_windows(hosts, self.now)
        self.closed: Closed = {
            host: [(self._seconds_until(span.opens), self._seconds_until(span.closes)) for span in spans]
            for host, spans in coming_spans(hosts, self.now).items()
        }
        for key in self.closing:
            self.loads.setdefault(key, Load(0, 0, 0.0))
        self.hosts = {host.pk: host for host in Host.objects.filter(pk__in={host for _, host in self.loads})}
        self._active = list(
            Attempt.objects.filter(state__in=ACTIVE_ATTEMPT_STATES).values_list("run", "host", "kind", "created_at")
        )

    def _seconds_until(self, at: datetime) -> float:
        return (at - self.now).total_seconds()

    def works(self, run: Run, host_id: UUID) -> bool:
        """Whether the host is working on the run, or still has its settings."""
        key = (run.pk, host_id)
        return key in self.closing or (run.state != RunState.PAUSED and key in self.holding)

    def is_under_way(self, run: Run, host_id: UUID) -> bool:
        """Whether the run keeps the host: it has begun there, or its trials never overlap and it has begun anywhere."""
        if not run.one_at_a_time:
            return self.works(run, host_id)
        return any(self.works(run, host) for run_id, host in self.holding | self.closing if run_id == run.pk)

    def seconds_left(self, run: Run, host_id: UUID) -> float | None:
        """Of a run that is under way: without the time that its trial has taken already."""
        seconds = self.loads[run.pk, host_id].seconds
        if seconds is None:
            return None
        begun = [
            at for run_id, host, _, at in self._active if run_id == run.pk and (run.one_at_a_time or host == host_id)
        ]
        return max(0.0, seconds - max(((self.now - at).total_seconds() for at in begun), default=0.0))

    def host_trouble(self, host_id: UUID) -> str:
        """Why a host takes no trials; "" if it does."""
        host, window = self.hosts[host_id], self.windows.get(host_id)
        if host.state != HostState.ACTIVE:
            return f"{host} is in maintenance" if host.state == HostState.MAINTENANCE else f"{host} was revoked"
        if window:
            return f"{host} is {window}"
        heard_since = self.now - timedelta(seconds=HEARD_WITHIN_SECONDS)
        return "" if host.last_seen_at and host.last_seen_at >= heard_since else f"{host} is offline"

    def takes_trials(self, host_id: UUID) -> bool:
        """Whether the host takes trials now, or when its maintenance window closes."""
        in_window = host_id in self.windows and self.hosts[host_id].state == HostState.ACTIVE
        return in_window or not self.host_trouble(host_id)

    def end_of_work(self, host_id: UUID, start_s: float, seconds: float) -> float:
        """When work of the host ends that stops in its maintenance windows. Times are in seconds from now."""
        return _Intervals(self.closed.get(host_id, ())).end_of_work(start_s, seconds)

    def can_continue(self, run: Run) -> bool:
        """Whether it waits only for hosts and drives."""
        return run.state != RunState.PAUSED and not run.cancel_requested_at and run.pk not in self.unarmed

    def hosts_of(self, run: Run) -> list[UUID]:
        return [host for run_id, host in self.loads if run_id == run.pk]

    def uses(self) -> Iterator[Busy]:
        """Hosts and drives that are in use."""
        for place, run in enumerate(self.runs):
            for host in self.hosts_of(run):
                if self.is_under_way(run, host):
                    yield self._use(run, host, host, place)
        for run_id, host, kind, _ in self._active:
            if run_id is None:
                yield Busy(host, _INVENTORY_S if kind == AttemptKind.INVENTORY else None)
        places = {run.pk: (place, run) for place, run in enumerate(self.runs)}
        for key, lock in self.locks.items():
            attempt = lock.attempt
            if (
                attempt.ended_at is None
                and attempt.run_id in places
                and (attempt.run_id, attempt.host_id) in self.loads
            ):
                place, run = places[attempt.run_id]
                yield self._use(run, attempt.host_id, key, place)
            else:
                yield Busy(key, None)

    def _use(self, run: Run, host: UUID, resource: object, place: int) -> Busy:
        started = run.started_at or self.now
        left = self.seconds_left(run, host)
        free_s = None if left is None else self.end_of_work(host, 0.0, left)
        return Busy(resource, free_s, position=place, started_s=self._seconds_until(started))

    def jobs(self) -> Iterator[Job]:
        """Runs that wait on hosts that take trials, in the order in which hosts take them."""
        places = sorted(enumerate(self.runs), key=lambda each: not (each[1].one_at_a_time and each[1].started_at))
        for place, run in places:
            hosts = self.hosts_of(run)
            if not self.can_continue(run) or any(self.is_under_way(run, host) for host in hosts if run.one_at_a_time):
                continue
            for group in [hosts] if run.one_at_a_time else [[host] for host in hosts]:
                usable = all(map(self.takes_trials, group))
                if group and usable and not self.works(run, group[0]) and self.loads[run.pk, group[0]].left:
                    yield self._job(run, group, place)

    def _job(self, run: Run, hosts: Sequence[UUID], place: int) -> Job:
        seconds, margin_s = self._expected(run, hosts[0])
        keys = {key for host in hosts for key in self.wanted.get((run.pk, host), ()) if not self._own(run, host, key)}
        return Job(
            key=(run.pk, hosts[0]), resources=frozenset([*hosts, *keys]), seconds=seconds, margin_s=margin_s,
            position=place, queued_s=self._seconds_until(run.created_at),
        )  # fmt: skip

    def _own(self, run: Run, host: UUID, key: str) -> bool:
        """Whether the run may take over the lock of the drive."""
        attempt = self.locks[key].attempt
        return attempt.host_id == host and (attempt.run_id == run.pk or attempt.ended_at is not None)

    def _expected(self, run: Run, host: UUID) -> tuple[float | None, float]:
        """The expected seconds of a waiting run, and its margin: without an estimate it fits into no gap. Before its
        first trial has ended, the estimate of its plan counts, which has prefills, layouts and steps."""
        load = self.loads[run.pk, host]
        if load.measured:
            return load.seconds, CLOSING_S + MEASURED_MARGIN * (load.seconds or 0.0)
        if run.expected_most_s is None:
            return load.seconds, math.inf
        seconds = run.expected_most_s if load.seconds is None else load.seconds
        return seconds, CLOSING_S + max(0.0, run.expected_most_s - seconds)


def starts_of(state: QueueState) -> dict[RunOnHost, Start]:
    """When each waiting run can start on each of its hosts."""
    planned = planned_starts(list(state.jobs()), state.uses(), state.closed)
    runs = {run.pk: run for run in state.runs}
    starts: dict[RunOnHost, Start] = {}
    for key, start in planned.items():
        assert isinstance(key, tuple)
        run_id, host = key
        for each in state.hosts_of(runs[run_id]) if runs[run_id].one_at_a_time else [host]:
            starts[run_id, each] = start
    return starts


def _loads() -> dict[RunOnHost, Load]:
    unended = Trial.objects.filter(run__state__in=OPEN_RUN_STATES).exclude(state__in=ENDED_TRIAL_STATES)
    known = paces(Attempt.objects.filter(run__state__in=OPEN_RUN_STATES))
    loads: dict[RunOnHost, Load] = {}
    for (run, host, state), work in work_of(unended, "run_id", "host_id", "state").items():
        before = loads.get((run, host), Load(0, 0, 0.0))
        seconds = known.get(run, Pace()).seconds(work, besides_s=OVERHEAD_S)
        loads[run, host] = Load(
            left=before.left + work.trials,
            active=before.active + (work.trials if state in ACTIVE_TRIAL_STATES else 0),
            seconds=None if seconds is None or before.seconds is None else before.seconds + seconds,
            measured=run in known,
        )
    return loads | _of_all_hosts(loads)


def _of_all_hosts(loads: Mapping[RunOnHost, Load]) -> dict[RunOnHost, Load]:
    """A run whose trials never overlap keeps each of its hosts for as long as all of them take.

    It does not wait for a revoked host, whose trials are cancelled.
    """
    runs = Run.objects.filter(state__in=OPEN_RUN_STATES, one_at_a_time=True)
    targets = Run.targets.through.objects.filter(run__in=runs).exclude(target__host__state=HostState.REVOKED)
    hosts = targets.values_list("run_id", "target__host_id").distinct()
    return {(run, host): _sum([load for key, load in loads.items() if key[0] == run]) for run, host in hosts}


def _sum(loads: Sequence[Load]) -> Load:
    seconds = [load.seconds for load in loads if load.seconds is not None]
    return Load(
        left=sum(load.left for load in loads),
        active=min(1, sum(load.active for load in loads)),
        seconds=sum(seconds) if len(seconds) == len(loads) else None,
        measured=all(load.measured for load in loads),
    )


def _holding() -> set[RunOnHost]:
    """Hosts on which a run has changed settings that are not restored yet."""
    counted = Attempt.objects.filter(run__state__in=OPEN_RUN_STATES).order_by()
    counted = counted.exclude(kind=AttemptKind.CLOSE_RUN, state=AttemptState.LOST)
    last: dict[RunOnHost, dict[str, int]] = defaultdict(dict)
    for run, host, kind, newest in counted.values_list("run_id", "host_id", "kind").annotate(newest=Max("sequence")):
        if run is not None:
            last[run, host][kind] = newest
    return {
        key for key, newest in last.items() if newest.get(AttemptKind.TRIAL, -1) > newest.get(AttemptKind.CLOSE_RUN, -1)
    }


def _closing() -> set[RunOnHost]:
    """Hosts that are restoring settings now."""
    under_way = Attempt.objects.filter(kind=AttemptKind.CLOSE_RUN, ended_at=None, run__isnull=False)
    return {(run, host) for run, host in under_way.values_list("run_id", "host_id") if run is not None}


def _wanted_keys(taken: Sequence[str]) -> dict[RunOnHost, set[str]]:
    """Drives in use now that a run still needs on a host."""
    left = Trial.objects.filter(run__state__in=OPEN_RUN_STATES).exclude(state__in=ENDED_TRIAL_STATES)
    keys: dict[RunOnHost, set[str]] = defaultdict(set)
    trials = wanting(left, taken).order_by().distinct("run", "host", "target", "point__at_once")
    for trial in trials.select_related("target"):
        keys[trial.run_id, trial.host_id] |= keys_of(trial).intersection(taken)
    return keys
