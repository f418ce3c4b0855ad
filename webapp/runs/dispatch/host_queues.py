"""The queue of each host: running and waiting runs, their order, and why they wait.

A fixed number of queries for any number of runs.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from webapp.hosts.models import Host
from webapp.runs.dispatch.queue import Load, QueueState, RunOnHost, Start, starts_of
from webapp.runs.models import Run, RunState


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
    ahead_of: tuple[int, ...] = ()  # numbers of waiting runs before it in the queue that it starts or started ahead of


@dataclass(frozen=True)
class HostQueue:
    host: Host
    trouble: str  # why no run can continue here; "" if one can
    entries: tuple[Entry, ...]


def queues() -> list[HostQueue]:
    """Hosts with work, by name."""
    state = QueueState()
    starts = starts_of(state)
    return [_host_queue(host, state, starts) for host in sorted(state.hosts.values(), key=lambda host: host.slug)]


def _host_queue(host: Host, state: QueueState, starts: Mapping[RunOnHost, Start]) -> HostQueue:
    runs = [run for run in state.runs if (run.pk, host.pk) in state.loads]
    runs.sort(key=lambda run: not state.works(run, host.pk))  # stable sort: otherwise the order of the queue
    entries: list[Entry] = []
    for run in runs:
        entries.append(_entry(run, host, state, starts, entries))
    return HostQueue(host, state.host_trouble(host.pk), tuple(_with_neighbours(entries)))


def _entry(run: Run, host: Host, state: QueueState, starts: Mapping[RunOnHost, Start], ahead: Sequence[Entry]) -> Entry:
    load, working = state.loads[run.pk, host.pk], state.works(run, host.pk)
    start = starts.get((run.pk, host.pk), Start(None))
    blocked = _blocked(run, host, state)
    at_s, seconds = start.at_s, load.seconds
    if state.is_under_way(run, host.pk):
        at_s, seconds = 0.0, state.seconds_left(run, host.pk)
    if blocked or not state.takes_trials(host.pk):
        at_s = None
    starts_at = None if at_s is None else state.now + timedelta(seconds=at_s)
    ends_at = None
    if at_s is not None and seconds is not None:
        ends_at = state.now + timedelta(seconds=state.end_of_work(host.pk, at_s, seconds))
    locked = _lock_trouble(run, host, state)
    waits = blocked or locked or ("" if working or at_s == 0.0 else _turn(run, host, state, ahead))
    numbers = {each.pk: each.number for each in state.runs}
    ahead_of = tuple(numbers[key[0]] for key in start.overtakes if isinstance(key, tuple)) if at_s == 0.0 else ()
    if working:
        ahead_of = tuple(other.number for other in _overtaken(run, host, state, starts))
    return Entry(run, load, working, waits, starts_at, ends_at, ahead_of=ahead_of)


def _turn(run: Run, host: Host, state: QueueState, ahead: Sequence[Entry]) -> str:
    """What it waits for: a run or a window of this host, or for a run on several hosts also of another host."""
    first = next((entry for entry in ahead if entry.starts_at or entry.working), None)
    if first:
        return f"run {first.run.number} goes first"
    hosts = state.hosts_of(run) if run.one_at_a_time else [host.pk]
    if trouble := next(filter(None, map(state.host_trouble, hosts)), ""):
        return trouble
    for other in hosts if run.one_at_a_time else []:
        for busy in state.runs:
            if busy.pk != run.pk and (busy.pk, other) in state.loads and state.is_under_way(busy, other):
                return f"{state.hosts[other]} is working on run {busy.number}"
    return _first_before(run, host, state)


def _first_before(run: Run, host: Host, state: QueueState) -> str:
    hosts = set(state.hosts_of(run)) if run.one_at_a_time else {host.pk}
    before = state.runs[: state.runs.index(run)]
    first = next((each for each in before if state.can_continue(each) and hosts & set(state.hosts_of(each))), None)
    return f"run {first.number} goes first" if first else "another order of its host or drive is under way"


def _overtaken(run: Run, host: Host, state: QueueState, starts: Mapping[RunOnHost, Start]) -> list[Run]:
    """Runs before it in the queue that were waiting for this host when it started."""
    return [
        other
        for other in state.runs[: state.runs.index(run)]
        if (other.pk, host.pk) in starts and run.started_at and other.created_at < run.started_at
    ]


def _blocked(run: Run, host: Host, state: QueueState) -> str:
    """What must change before the run can continue; "" if it only waits for its turn."""
    if run.cancel_requested_at:
        return "it is being cancelled"
    if (run.pk, host.pk) in state.closing:
        return "its settings are being restored"
    if run.state == RunState.PAUSED:
        return f"paused by {run.paused_by.username}" if run.paused_by else (run.pause_reason or "paused")
    if run.pk in state.unarmed:
        return "its arming has expired: arm it again on its page"
    return ""


def _lock_trouble(run: Run, host: Host, state: QueueState) -> str:
    """Another host is at a drive that both see. A run on several hosts waits for these hosts anyway."""
    hosts = {host.pk, *(state.hosts_of(run) if run.one_at_a_time else ())}
    for key in sorted(state.wanted.get((run.pk, host.pk), ())):
        attempt = state.locks[key].attempt
        if attempt.host_id not in hosts and attempt.run is not None:
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
        made.append(replace(entry, before=above, after=below))
    return made
