"""When waiting runs can start: the queue in order, with gaps filled by later runs that end in time.

A run that needs several hosts waits until all of them are free. Meanwhile a later run may use one of them if it is
expected to end before the waiting run can start. This is conservative backfilling: every waiting run has a reservation,
and a later run must not overlap the reservation of any run before it. With true estimates no run starts later than
without backfilling.

    now                      limit          start
     |------ gap ------------|-- reservation ------------|
     a later run fits here   nothing starts here         the next run

Estimates may be wrong. A run is never interrupted, so a run that started ahead and is late moves the start of the
waiting run. It does not move `limit`: only runs that do not overtake count for it. So the next run that is let ahead
must end before the same moment, and a waiting run waits at most for the runs that started ahead before its limit.
Without an estimate nothing starts ahead.

Sources: D. Lifka, "The ANL/IBM SP Scheduling System", JSSPP 1995 (EASY backfilling, with one reservation); A. Mu'alem
and D. Feitelson, "Utilization, Predictability, Workloads, and User Runtime Estimates in Scheduling the IBM SP2 with
Backfilling", IEEE TPDS 12(6), 2001 (conservative backfilling, and the effect of wrong estimates).
"""

import math
from collections import defaultdict
from collections.abc import Collection, Hashable, Iterable, Sequence
from dataclasses import dataclass

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


def planned_starts(jobs: Sequence[Job], busy: Iterable[Busy]) -> dict[Hashable, Start]:
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
        start_s = _earliest(job, uses, reservations)
        limit_s = _earliest(job, [use for use in uses if not use.overtook(job)], reservations)
        end_s = math.inf if math.inf in (start_s, job.length_s) else start_s + job.length_s
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


def _earliest(job: Job, uses: Collection[Busy], reservations: Collection["_Intervals"]) -> float:
    """Seconds until the job finds a gap on all its resources; infinite: unknown."""
    start_s = max((math.inf if use.seconds is None else use.seconds for use in uses), default=0.0)
    while start_s < math.inf:
        ends = [reservation.end_of_overlap(start_s, job.length_s + job.margin_s) for reservation in reservations]
        latest = max(ends, default=start_s)
        if latest == start_s:
            break
        start_s = latest
    return start_s


class _Intervals:
    """Times of one resource that are reserved, in order. Intervals that touch are one."""

    def __init__(self) -> None:
        self._intervals: list[tuple[float, float]] = []

    def add(self, begin_s: float, end_s: float) -> None:
        apart = []
        for begin, end in self._intervals:
            if end < begin_s or end_s < begin:
                apart.append((begin, end))
            else:
                begin_s, end_s = min(begin_s, begin), max(end_s, end)
        self._intervals = sorted([*apart, (begin_s, end_s)])

    def end_of_overlap(self, begin_s: float, length_s: float) -> float:
        """Where the last interval ends that overlaps; `begin_s` without one."""
        overlapping = [end for begin, end in self._intervals if begin < begin_s + length_s and begin_s < end]
        return max(overlapping, default=begin_s)
