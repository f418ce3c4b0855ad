"""The expected time of trials, prefills and layout builds, summed for each host. Pure."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median

import msgspec

from webapp.plans.expand import PlannedStream, PlannedTrial
from webapp.plans.file_sets import FileSet
from webapp.plans.fitness import TargetFacts, room_of
from webapp.plans.points import hosts_at_once, steps_of
from worker.contract.layouts import Layout
from worker.contract.workload import PauseStep, Step, TargetKind, Workload, WriteStep
from worker.recipes.layouts.text import write
from worker.recipes.steps import step_workload, used_range

# Bytes and time of the steps before a trial. Pure.

MOST_PREPARATIONS = 2


def step_bytes(
    steps: Iterable[Step], measured: Workload, kind: TargetKind, target: TargetFacts, layout: Layout | None
) -> int:
    """Bytes that the steps write to one target."""
    capacity = room_of(target, layout)
    writing = (step_workload(step, measured, kind, capacity) for step in steps if isinstance(step, WriteStep))
    return sum(work.moved_bytes or 0 for work in writing)


def pauses_s(steps: Iterable[Step]) -> int:
    return sum(step.seconds for step in steps if isinstance(step, PauseStep))


def written_by_steps(trials: Sequence[PlannedTrial], targets: Sequence[TargetFacts]) -> Mapping[str, int]:
    """Bytes by target id."""
    return _written([(trial, trial.before.steps, 1) for trial in trials], targets)


def most_preparations(stop_after: int) -> int:
    """How often trials of a part may do its steps that are done once on their targets, if all of them end before they
    measure. The server sends no more (runs.dispatch.failure_limit)."""
    return min(MOST_PREPARATIONS, stop_after or MOST_PREPARATIONS)


def written_again(trials: Sequence[PlannedTrial], targets: Sequence[TargetFacts], stop_after: int) -> Mapping[str, int]:
    """Most bytes by target id of steps that are done once, if trials end before they measure: the next trial of the
    part does them again."""
    prepared = [(trial, steps) for trial in trials if (steps := steps_of(trial.point).once.steps)]
    count = Counter((trial.part, trial.target_ids) for trial, _ in prepared)
    first = {(trial.part, trial.target_ids): (trial, steps) for trial, steps in reversed(prepared)}
    most = most_preparations(stop_after)
    again = [(trial, steps, min(count[key], most) - 1) for key, (trial, steps) in first.items()]
    return _written(again, targets)


def _written(
    done: Iterable[tuple[PlannedTrial, Sequence[Step], int]], targets: Sequence[TargetFacts]
) -> Mapping[str, int]:
    """Bytes by target id of steps before a trial, which are done so many times."""
    by_id = {target.id: target for target in targets}
    total: dict[str, int] = {}
    for trial, steps, times in done:
        for stream in prepared_streams(trial) if steps else ():
            target = by_id[stream.target_id]
            written = times * step_bytes(steps, stream.workload, trial.kind, target, stream.layout)
            total[target.id] = total.get(target.id, 0) + written
    return total


def prepared_streams(trial: PlannedTrial) -> Sequence[PlannedStream]:
    """One stream for each used part that the steps prepare, as `recipes.prepared`. In a directory, each stream has its
    own files."""
    streams: dict[tuple[object, ...], PlannedStream] = {}
    for stream in (each for each in trial.streams if not each.workload.needs_array):
        name = stream.name if trial.kind is TargetKind.DIRECTORY else ""
        streams.setdefault((stream.target_id, name, *used_range(stream.workload)), stream)
    return list(streams.values())


# What earlier runs on a host tell about the time of trials.

OVERHEAD_S = 0.4  # from the end of one trial to the start of the next, and the engine's own start and end
PREFILL_BYTES_PER_S = 200e6  # sequential writes of a slow drive, so that the estimate is too long rather than too short


@dataclass(frozen=True)
class Span:
    """Observed values: the smallest, the median and the largest."""

    low: float
    typical: float
    high: float

    @staticmethod
    def of(values: Sequence[float]) -> "Span":
        return Span(min(values), median(values), max(values))


@dataclass(frozen=True)
class Experience:
    """Durations and rates of earlier runs on one host, as means per run, so one outlier does not widen the range."""

    runs: int
    turnover_s: Span  # of a trial, without its run time
    prefill_bytes_per_s: Span | None = None  # None: no run wrote files
    # (ids of targets used at once, `Workload.rated`) -> bytes/s of each
    amounts: Mapping[tuple[tuple[str, ...], Workload], Span] = field(default_factory=dict)
    # (ids of targets, workload with seed 1) -> seconds from start to end of trials with a stop rule
    stops_s: Mapping[tuple[tuple[str, ...], Workload], Span] = field(default_factory=dict)
    # (ids of targets, `Workload.load_bytes`) -> seconds from the engine's start to the measured part, and after it
    loads_s: Mapping[tuple[tuple[str, ...], int], Span] = field(default_factory=dict)
    # (target id, point key) -> bytes/s of the nearest measured workload, if there is no rate in `amounts`
    nearest: Mapping[tuple[str, str], Span] = field(default_factory=dict)
    sequential_writes: Mapping[str, Span] = field(default_factory=dict)  # target id -> bytes/s measured
    builds_s: Mapping[str, Span] = field(default_factory=dict)  # line of a layout -> seconds to build it


NOTHING_LEARNED = Experience(runs=0, turnover_s=Span.of([OVERHEAD_S]))
SLOW_PREFILL = Span.of([PREFILL_BYTES_PER_S])


COMMON_START_S = 4.0  # from the moment at which all hosts of a trial are ready to their common start

Times = tuple[float, float, float]  # seconds: smallest, median, largest
NO_TIME = (0.0, 0.0, 0.0)


class Clock:
    """Sums the time of each host: smallest, median, largest."""

    def __init__(
        self, targets: Mapping[str, TargetFacts], experience: Mapping[str, Experience], *, one_at_a_time: bool
    ) -> None:
        self._one_at_a_time = one_at_a_time
        self._targets = targets
        self._hosts = {target.id: target.host_id for target in targets.values()}
        self._known = {host: experience.get(host, NOTHING_LEARNED) for host in self._hosts.values()}
        self._spent = {host: [0.0, 0.0, 0.0] for host in self._known}
        self.unknown_trials = 0
        self.unknown_stops = 0
        self.unknown_builds = 0

    def add_trial(self, trial: PlannedTrial, count: int) -> None:
        known = self._known[self._hosts[trial.target_id]]
        turnover = known.turnover_s
        times = NO_TIME
        for work in trial.workloads:
            times = _longer(times, self._stream(trial, work, known, count))
        amounts = [work for work in trial.workloads if work.moved_bytes is not None]
        if any(_amount_rate(trial, work, known) is None for work in amounts):
            self.unknown_trials += count
        times = _plus(times, (turnover.low, turnover.typical, turnover.high))
        if hosts_at_once(trial.point) > 1:
            times = _plus(times, (COMMON_START_S, COMMON_START_S, COMMON_START_S))
        if trial.before.steps:
            times = _plus(times, self._steps(trial, known))
        self._add(trial.target_id, (times[0] * count, times[1] * count, times[2] * count))

    def _steps(self, trial: PlannedTrial, known: Experience) -> Times:
        """Steps write to one target of each host after another, at the speed of the prefill."""
        paused = float(pauses_s(trial.before.steps))
        by_host: Counter[str] = Counter()
        for target, moved in written_by_steps([trial], [self._targets[each] for each in trial.target_ids]).items():
            by_host[self._hosts[target]] += moved
        written = max(by_host.values(), default=0)
        return _plus((paused, paused, paused), _moved(written, known.prefill_bytes_per_s or SLOW_PREFILL))

    def _stream(self, trial: PlannedTrial, work: Workload, known: Experience, count: int) -> Times:
        """The time of one workload of a trial: its run time, and that of its amount if its rate is known."""
        times = self._own(trial, work, known, count)
        if work.load_bytes:
            times = _plus(times, self._load(trial, work, known))
        if work.moved_bytes is None:
            return times
        return _plus(times, _moved(work.moved_bytes, _amount_rate(trial, work, known)))

    def _load(self, trial: PlannedTrial, work: Workload, known: Experience) -> Times:
        """The load before the measured part: as earlier, else at the speed of the prefill."""
        if learned := known.loads_s.get((trial.target_ids, work.load_bytes)):
            return learned.low, learned.typical, learned.high
        start = (work.startup_s, work.startup_s, work.startup_s)
        return _plus(start, _moved(work.load_bytes, known.prefill_bytes_per_s or SLOW_PREFILL))

    def _own(self, trial: PlannedTrial, work: Workload, known: Experience, count: int) -> Times:
        """The run time of a trial."""
        most = float(work.time_s)
        if not work.may_end_early:
            return most, most, most
        stopped = known.stops_s.get((trial.target_ids, msgspec.structs.replace(work, seed=1)))
        self.unknown_stops += count if stopped is None else 0
        return (float(work.least_time_s), most, most) if stopped is None else (stopped.low, stopped.typical, most)

    def add_files(self, files: FileSet) -> None:
        if files.filled:
            known = self._known[self._hosts[files.target_id]]
            rate = known.prefill_bytes_per_s or known.sequential_writes.get(files.target_id, SLOW_PREFILL)
            self._add(files.target_id, _moved(files.size_bytes * files.files, rate))

    def add_build(self, target_id: str, layout: Layout | None) -> None:
        known = self._known[self._hosts[target_id]].builds_s.get(write(layout)) if layout else None
        if known is None:
            self.unknown_builds += 1
        else:
            self._add(target_id, (known.low, known.typical, known.high))

    def _add(self, target_id: str, times: Times) -> None:
        spent = self._spent[self._hosts[target_id]]
        spent[:] = _plus((spent[0], spent[1], spent[2]), times)

    def longest(self) -> Times:
        spent = list(self._spent.values()) or [[0.0, 0.0, 0.0]]
        low, typical, high = zip(*spent, strict=True)
        return (sum(low), sum(typical), sum(high)) if self._one_at_a_time else (max(low), max(typical), max(high))

    def learned_runs(self) -> int:
        return min((known.runs for known in self._known.values()), default=0)


def _amount_rate(trial: PlannedTrial, work: Workload, known: Experience) -> Span | None:
    """Unknown for several workloads at once: they share the target."""
    if len(trial.workloads) > 1:
        return None
    return known.amounts.get((trial.target_ids, work.rated())) or known.nearest.get((trial.target_id, trial.point_key))


def _moved(amount_bytes: int, rate: Span | None) -> Times:
    """The fastest rate gives the shortest time."""
    if rate is None:
        return NO_TIME
    return amount_bytes / rate.high, amount_bytes / rate.typical, amount_bytes / rate.low


def _longer(first: Times, second: Times) -> Times:
    return max(first[0], second[0]), max(first[1], second[1]), max(first[2], second[2])


def _plus(first: Times, second: Times) -> Times:
    return first[0] + second[0], first[1] + second[1], first[2] + second[2]
