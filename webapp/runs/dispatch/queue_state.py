"""What the database knows about the queue, and when its runs can start.

Times are estimated from the run's finished trials (`pace`); before the first one ends, from the plan's run times. A
trial with a fixed amount then makes the estimate unknown.
"""

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from uuid import UUID

from django.db.models import Max
from django.utils import timezone

from webapp.hosts.maintenance_windows import open_windows
from webapp.hosts.models import Host, HostState
from webapp.plans.expected_time import OVERHEAD_S
from webapp.runs.dispatch.backfill import Busy, Job, Start, planned_starts
from webapp.runs.dispatch.locks import keys_of, wanting
from webapp.runs.dispatch.queue import HEARD_WITHIN_SECONDS, queued_runs, waits_for_arming
from webapp.runs.forecast.pace import Pace, paces, work_of
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
)

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
        self.windows = open_windows({host for _, host in self.loads})
        for key in self.closing:
            self.loads.setdefault(key, Load(0, 0, 0.0))
        self.hosts = {host.pk: host for host in Host.objects.filter(pk__in={host for _, host in self.loads})}
        self._active = list(
            Attempt.objects.filter(state__in=ACTIVE_ATTEMPT_STATES).values_list("run", "host", "kind", "created_at")
        )

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
        return Busy(resource, left, position=place, started_s=(started - self.now).total_seconds())

    def jobs(self) -> Iterator[Job]:
        """Runs that wait on hosts that take trials, in the order in which hosts take them."""
        places = sorted(enumerate(self.runs), key=lambda each: not (each[1].one_at_a_time and each[1].started_at))
        for place, run in places:
            hosts = self.hosts_of(run)
            if not self.can_continue(run) or any(self.is_under_way(run, host) for host in hosts if run.one_at_a_time):
                continue
            for group in [hosts] if run.one_at_a_time else [[host] for host in hosts]:
                usable = not any(self.host_trouble(host) for host in group)
                if group and usable and not self.works(run, group[0]) and self.loads[run.pk, group[0]].left:
                    yield self._job(run, group, place)

    def _job(self, run: Run, hosts: Sequence[UUID], place: int) -> Job:
        seconds, margin_s = self._expected(run, hosts[0])
        keys = {key for host in hosts for key in self.wanted.get((run.pk, host), ()) if not self._own(run, host, key)}
        return Job(
            key=(run.pk, hosts[0]), resources=frozenset([*hosts, *keys]), seconds=seconds, margin_s=margin_s,
            position=place, queued_s=(run.created_at - self.now).total_seconds(),
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
    planned = planned_starts(list(state.jobs()), state.uses())
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
    found: dict[RunOnHost, Load] = {}
    for (run, host, state), work in work_of(unended, "run_id", "host_id", "state").items():
        before = found.get((run, host), Load(0, 0, 0.0))
        seconds = known.get(run, Pace()).seconds(work, besides_s=OVERHEAD_S)
        found[run, host] = Load(
            left=before.left + work.trials,
            active=before.active + (work.trials if state in ACTIVE_TRIAL_STATES else 0),
            seconds=None if seconds is None or before.seconds is None else before.seconds + seconds,
            measured=run in known,
        )
    return found | _of_all_hosts(found)


def _of_all_hosts(loads: Mapping[RunOnHost, Load]) -> dict[RunOnHost, Load]:
    """A run whose trials never overlap keeps each of its hosts for as long as all of them take."""
    runs = Run.objects.filter(state__in=OPEN_RUN_STATES, one_at_a_time=True)
    hosts = Run.targets.through.objects.filter(run__in=runs).values_list("run_id", "target__host_id").distinct()
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
    found: dict[RunOnHost, set[str]] = defaultdict(set)
    trials = wanting(left, taken).order_by().distinct("run", "host", "target", "point__at_once")
    for trial in trials.select_related("target"):
        found[trial.run_id, trial.host_id] |= keys_of(trial).intersection(taken)
    return found
