"""The queue of each host: running and waiting runs, their order, and why they wait.

A fixed number of queries for any number of runs. Times are estimated from the run's finished trials (`pace`); before
the first one ends, from the plan's run times. A trial with a fixed amount then makes the estimate unknown.
"""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from django.db.models import Max
from django.utils import timezone

from webapp.hosts.maintenance_windows import OpenWindow, open_windows
from webapp.hosts.models import Host, HostState
from webapp.plans.experience import OVERHEAD_S
from webapp.runs.dispatch.dispatcher import HEARD_WITHIN_SECONDS, waits_for_arming
from webapp.runs.dispatch.locks import keys_of, wanting
from webapp.runs.dispatch.queue import queued_runs
from webapp.runs.forecast.pace import Pace, paces, work_of
from webapp.runs.models import (
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


@dataclass(frozen=True)
class Load:
    """The remaining work of a run on one host."""

    left: int
    active: int  # 0 or 1
    seconds: float | None  # None: unknown


@dataclass(frozen=True)
class Entry:
    """One run in the queue of one host."""

    run: Run
    load: Load
    working: bool  # the host is working on it, or still has its settings
    waits_for: str  # why it cannot continue, in words; "" if it can
    starts_at: datetime | None
    ends_at: datetime | None
    before: int | None = None  # number of the run that it would swap positions with, going up
    after: int | None = None


@dataclass(frozen=True)
class HostQueue:
    host: Host
    trouble: str  # why no run can continue here; "" if one can
    entries: tuple[Entry, ...]


def queues() -> list[HostQueue]:
    """Hosts with work, by name."""
    known = _Known()
    hosts = Host.objects.filter(pk__in={host for _, host in known.loads}).order_by("slug")
    return [_host_queue(host, known) for host in hosts]


class _Known:
    """All data from the database, each read once."""

    def __init__(self) -> None:
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
    )


def _holding() -> set[RunOnHost]:
    """Hosts on which a run has changed settings that are not restored yet."""
    counted = Attempt.objects.filter(run__state__in=OPEN_RUN_STATES).order_by()
    counted = counted.exclude(kind=AttemptKind.CLOSE_RUN, state=AttemptState.LOST)
    last: dict[RunOnHost, dict[str, datetime]] = defaultdict(dict)
    for run, host, kind, at in counted.values_list("run_id", "host_id", "kind").annotate(at=Max("created_at")):
        if run is not None:
            last[run, host][kind] = at
    return {key for key, at in last.items() if AttemptKind.TRIAL in at and _later(at)}


def _later(at: Mapping[str, datetime]) -> bool:
    closed = at.get(AttemptKind.CLOSE_RUN)
    return closed is None or at[AttemptKind.TRIAL] > closed


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


def _host_queue(host: Host, known: _Known) -> HostQueue:
    runs = [run for run in known.runs if (run.pk, host.pk) in known.loads]
    runs.sort(key=lambda run: not _works(run, host, known))  # stable sort: otherwise the order of the queue
    entries: list[Entry] = []
    free_at: datetime | None = timezone.now()
    trouble = _host_trouble(host, known.windows.get(host.pk))
    for run in runs:
        entry = _entry(run, host, known, entries, None if trouble else free_at)
        if not entry.waits_for or entry.starts_at:
            free_at = entry.ends_at
        entries.append(entry)
    return HostQueue(host, trouble, tuple(_with_neighbours(entries)))


def _works(run: Run, host: Host, known: _Known) -> bool:
    return (run.pk, host.pk) in known.closing or (run.state != RunState.PAUSED and (run.pk, host.pk) in known.holding)


def _host_trouble(host: Host, window: OpenWindow | None) -> str:
    if host.state != HostState.ACTIVE:
        return f"{host} is in maintenance" if host.state == HostState.MAINTENANCE else f"{host} was revoked"
    if window:
        return f"{host} is {window}"
    heard_since = timezone.now() - timedelta(seconds=HEARD_WITHIN_SECONDS)
    return "" if host.last_seen_at and host.last_seen_at >= heard_since else f"{host} is offline"


def _entry(run: Run, host: Host, known: _Known, ahead: Sequence[Entry], free_at: datetime | None) -> Entry:
    load = known.loads[run.pk, host.pk]
    blocked = _blocked(run, host, known)
    first = next((entry for entry in ahead if entry.starts_at or entry.working), None)
    starts = None if blocked else free_at
    ends = starts + timedelta(seconds=load.seconds) if starts and load.seconds is not None else None
    waits = blocked or (f"run {first.run.number} goes first" if first else "")
    return Entry(run, load, _works(run, host, known), waits, starts, ends)


def _blocked(run: Run, host: Host, known: _Known) -> str:
    """What must change before the run can continue; "" if it only waits for its turn."""
    if run.cancel_requested_at:
        return "it is being cancelled"
    if (run.pk, host.pk) in known.closing:
        return "its settings are being restored"
    if run.state == RunState.PAUSED:
        return f"paused by {run.paused_by.username}" if run.paused_by else (run.pause_reason or "paused")
    if run.pk in known.unarmed:
        return "its arming has expired: arm it again on its page"
    return _lock_trouble(host, known, known.wanted.get((run.pk, host.pk), set()))


def _lock_trouble(host: Host, known: _Known, keys: Collection[str]) -> str:
    """Another host is at a drive that both see."""
    for key in sorted(keys):
        attempt = known.locks[key].attempt
        if attempt.host_id != host.pk and attempt.run is not None:
            if attempt.ended_at:
                return (
                    f"its drive may still hold a layout of run {attempt.run.number} that {attempt.host} could not "
                    f"remove: run “sweetspot-worker restore” on {attempt.host}"
                )
            return f"its drive is in use by run {attempt.run.number} on {attempt.host}"
    return ""


def _with_neighbours(entries: Sequence[Entry]) -> list[Entry]:
    """Which run each could swap positions with: only with runs that the host has not started."""
    waiting = [entry for entry in entries if not entry.working]
    made = [entry for entry in entries if entry.working]
    for index, entry in enumerate(waiting):
        above = waiting[index - 1].run.number if index else None
        below = waiting[index + 1].run.number if index + 1 < len(waiting) else None
        made.append(Entry(entry.run, entry.load, False, entry.waits_for, entry.starts_at, entry.ends_at, above, below))
    return made
