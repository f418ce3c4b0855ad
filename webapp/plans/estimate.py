"""Estimates the cost of a plan: time, bytes written, space. Pure.

Time: the run times of all trials with their ramps, the turnover of each trial (from the end of its run time to the
start of the next one), the prefill of files, and the steps before trials, whose writes count like prefill. Hosts work
in parallel, so the slowest host counts; with hosts at once trials never overlap, so the sum counts. Turnover and
prefill speed come from earlier runs on each host (`Experience`, from `runs.forecast.experience`): the smallest, the
median and the largest mean of a run give the range. A host without earlier runs counts with OVERHEAD_S and
PREFILL_BYTES_PER_S, or the measured speed of sequential writes, and `learned_runs` is 0. The time of a trial with an
amount depends on the drive: if the same workload ran on the same target before, its rates are used, else those of the
nearest measured workload (`results.speeds`); else the trial is not counted, and `unknown_trials` is the number of such
trials. The time of purges is not counted.

A trial with a stop rule takes between its minimum and its maximum time. It counts with the times of earlier trials of
the same workload on the same target; without them with its maximum, and `unknown_stops` is the number of such trials.

A layout counts with its earlier build time on that host, including the removal of the previous layout. A layout that
was never built there is not counted, and `unknown_builds` is the number of such builds.

Bytes written: exact for an amount or a file size. For a trial with a run time, the bound is what the fastest current
drive (PCIe 5.0 x4) could write in that time, and less for small blocks.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from statistics import median

import msgspec

from webapp.plans.expand import Expansion, PlannedTrial
from webapp.plans.factors import FACTORS, HOSTS_AT_ONCE
from webapp.plans.fitness import TargetFacts
from webapp.plans.points import hosts_at_once
from webapp.plans.step_costs import pauses_s, written_by_steps
from worker.contract.layouts import Layout
from worker.contract.workload import TargetKind, Workload
from worker.recipes.layouts import write

OVERHEAD_S = 0.4  # from the end of one trial to the start of the next, and the engine's own start and end
COMMON_START_S = 4.0  # from the moment at which all hosts of a trial are ready to their common start
PREFILL_BYTES_PER_S = 200e6  # sequential writes of a slow drive, so that the estimate is too long rather than too short
FASTEST_BYTES_PER_S = 15.75e9  # PCIe 5.0 x4 after 128b/130b: 4 lanes x 32 GT/s x 128/130 / 8 bit
FASTEST_IOPS = 3.5e6  # IOPS of one such drive

Times = tuple[float, float, float]  # seconds: smallest, median, largest


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
    # (target id, point key) -> bytes/s of the nearest measured workload, if there is no rate in `amounts`
    nearest: Mapping[tuple[str, str], Span] = field(default_factory=dict)
    sequential_writes: Mapping[str, Span] = field(default_factory=dict)  # target id -> bytes/s measured
    builds_s: Mapping[str, Span] = field(default_factory=dict)  # line of a layout -> seconds to build it


@dataclass(frozen=True)
class Estimate:
    trials: int
    seconds: float  # at least: see `unknown_trials`
    seconds_low: float
    seconds_high: float
    learned_runs: int  # earlier runs behind the range, on the host with the fewest; 0: none
    unknown_trials: int  # trials with an amount whose time is not in `seconds`
    stop_trials: int  # trials with a stop rule
    stop_seconds: tuple[int, int]  # minimum and maximum time of such a trial
    unknown_stops: int  # those that count with their maximum time
    written_most: Mapping[str, int]  # bytes by target id
    written_before: Mapping[str, int]  # thereof before measurements, exactly: prefilled files and steps
    open_ended: frozenset[str]  # ids of targets with only a bound: a time limits trials that write
    space_bytes: int  # in directories, while the run lasts
    layouts_built: int  # number of layout builds
    unknown_builds: int  # builds of layouts that are new on their host; their time is not in `seconds`
    settings_changed: tuple[str, ...]  # in words: a/loop: I/O scheduler

    @property
    def bytes_written_max(self) -> int:
        return sum(self.written_most.values())


def estimate(expansion: Expansion, experience: Mapping[str, Experience] | None = None) -> Estimate:
    """`experience` by host id."""
    targets = {target.id: target for target in expansion.targets}
    builds = _builds(expansion.trials)
    files = _file_sets(expansion.trials, builds)
    written_before = _written_before(expansion, files)
    one_at_a_time = any(HOSTS_AT_ONCE in trial.point for trial, _ in expansion.distinct)
    clock = _Clock(targets, experience or {}, one_at_a_time=one_at_a_time)
    for trial, count in expansion.distinct:
        clock.add_trial(trial, count)
    for one in files:
        clock.add_files(one)
    first = {build: trial for trial, build in zip(expansion.trials[::-1], builds[::-1], strict=True) if build}
    for trial in first.values():
        clock.add_build(trial)
    low, typical, high = clock.longest()
    stops = [(trial.workload, count) for trial, count in expansion.distinct if trial.workload.may_end_early]
    return Estimate(
        trials=len(expansion.trials),
        seconds=typical,
        seconds_low=low,
        seconds_high=high,
        learned_runs=clock.learned_runs(),
        unknown_trials=clock.unknown_trials,
        stop_trials=sum(count for _, count in stops),
        stop_seconds=(min((w.least_time_s for w, _ in stops), default=0), max((w.time_s for w, _ in stops), default=0)),
        unknown_stops=clock.unknown_stops,
        written_most=written_most(expansion, before=written_before),
        written_before=written_before,
        open_ended=frozenset(
            stream.target_id for trial, _ in expansion.distinct for stream in trial.streams if _is_open(stream.workload)
        ),
        space_bytes=sum(one.space_bytes for one in files if not one.build),
        layouts_built=len(first),
        unknown_builds=clock.unknown_builds,
        settings_changed=_settings(expansion.trials, targets),
    )


NOTHING_LEARNED = Experience(runs=0, turnover_s=Span.of([OVERHEAD_S]))
_SLOW_PREFILL = Span.of([PREFILL_BYTES_PER_S])


@dataclass(frozen=True)
class _FileSet:
    """Files of one size in a directory. Trials share them, so the largest number counts."""

    stream: str  # a named stream has its own files
    target_id: str
    size_bytes: int
    build: int  # number of the layout that contains them; 0: none. They are deleted with it.
    files: int
    filled: bool
    space_bytes: int  # with what the workload adds, such as copies

    @property
    def filled_bytes(self) -> int:
        return self.size_bytes * self.files if self.filled else 0


def _builds(trials: Sequence[PlannedTrial]) -> list[int]:
    """For each trial the number of its layout in build order, from 1; 0: none.

    A host keeps a layout until a trial needs another one or purges its drives.
    """
    last: dict[str, Layout | None] = {}
    numbers: dict[str, int] = {}
    found, count = [], 0
    for trial in trials:
        if trial.layout is None:
            found.append(0)
        else:
            if trial.before.purge or last.get(trial.target_id) != trial.layout:
                count += 1
                numbers[trial.target_id] = count
            found.append(numbers[trial.target_id])
        last[trial.target_id] = trial.layout
    return found


def _file_sets(trials: Sequence[PlannedTrial], builds: Sequence[int]) -> list[_FileSet]:
    sets: dict[tuple[str, str, int, int], _FileSet] = {}
    for trial, build in zip(trials, builds, strict=True):
        for stream in trial.streams if trial.kind is TargetKind.DIRECTORY else ():
            work = stream.workload
            key = (stream.name, stream.target_id, work.size_bytes or 0, build)
            old = sets.get(key, _FileSet(*key, files=0, filled=False, space_bytes=0))
            sets[key] = _FileSet(
                *key,
                files=max(old.files, work.files),
                filled=old.filled or work.prefill,
                space_bytes=max(old.space_bytes, work.space_bytes),
            )
    return list(sets.values())


class _Clock:
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
        each = [self._stream(trial, work, known, count) for work in trial.workloads]
        times = (max(t[0] for t in each), max(t[1] for t in each), max(t[2] for t in each))
        unknown = (_amount_rate(trial, work, known) is None for work in trial.workloads if work.moved_bytes is not None)
        self.unknown_trials += count if any(unknown) else 0
        times = _plus(times, (turnover.low, turnover.typical, turnover.high))
        if hosts_at_once(trial.point) > 1:
            times = _plus(times, (COMMON_START_S, COMMON_START_S, COMMON_START_S))
        times = _plus(times, self._steps(trial, known))
        self._add(trial.target_id, (times[0] * count, times[1] * count, times[2] * count))

    def _steps(self, trial: PlannedTrial, known: Experience) -> Times:
        """Steps write to one target after another, at the speed of the prefill."""
        paused = float(pauses_s(trial.before.steps))
        written = sum(written_by_steps([trial], [self._targets[each] for each in trial.target_ids]).values())
        return _plus((paused, paused, paused), _moved(written, known.prefill_bytes_per_s or _SLOW_PREFILL))

    def _stream(self, trial: PlannedTrial, work: Workload, known: Experience, count: int) -> Times:
        """The time of one workload of a trial: its run time, and that of its amount if its rate is known."""
        own = self._own(trial, work, known, count)
        if work.load_bytes:
            own = _plus(own, _moved(work.load_bytes, known.prefill_bytes_per_s or _SLOW_PREFILL))
        if work.moved_bytes is None:
            return own
        return _plus(own, _moved(work.moved_bytes, _amount_rate(trial, work, known)))

    def _own(self, trial: PlannedTrial, work: Workload, known: Experience, count: int) -> Times:
        """The run time of a trial."""
        most = float(work.time_s)
        if not work.may_end_early:
            return most, most, most
        stopped = known.stops_s.get((trial.target_ids, msgspec.structs.replace(work, seed=1)))
        self.unknown_stops += count if stopped is None else 0
        return (float(work.least_time_s), most, most) if stopped is None else (stopped.low, stopped.typical, most)

    def add_files(self, files: _FileSet) -> None:
        if files.filled:
            known = self._known[self._hosts[files.target_id]]
            rate = known.prefill_bytes_per_s or known.sequential_writes.get(files.target_id, _SLOW_PREFILL)
            self._add(files.target_id, _moved(files.size_bytes * files.files, rate))

    def add_build(self, trial: PlannedTrial) -> None:
        """The layout that must be built for the trial."""
        known = self._known[self._hosts[trial.target_id]].builds_s.get(write(trial.layout)) if trial.layout else None
        if known is None:
            self.unknown_builds += 1
        else:
            self._add(trial.target_id, (known.low, known.typical, known.high))

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
        return 0.0, 0.0, 0.0
    return amount_bytes / rate.high, amount_bytes / rate.typical, amount_bytes / rate.low


def _plus(one: Times, other: Times) -> Times:
    return one[0] + other[0], one[1] + other[1], one[2] + other[2]


def written_most(
    expansion: Expansion, *, before: Mapping[str, int], limits: Mapping[str, float] | None = None
) -> Mapping[str, int]:
    """Maximum bytes by target id, with those `before` the measurements. `limits`: the targets' known upper bounds in
    bytes/s."""
    total = Counter(before)
    for trial, count in expansion.distinct:
        for target_id, most in written_in(trial, limits or {}).items():
            total[target_id] += count * most
    return total


def _written_before(expansion: Expansion, sets: Sequence[_FileSet]) -> Mapping[str, int]:
    return Counter(_prefilled(expansion, sets)) + Counter(written_by_steps(expansion.trials, expansion.targets))


def _prefilled(expansion: Expansion, sets: Sequence[_FileSet]) -> Mapping[str, int]:
    """Maximum bytes of prefilled files by target id.

    If the files of all sizes do not fit into a directory together, the worker removes some of them, and writes them
    again when a later trial needs them.
    """
    total = Counter[str]()
    for one in sets:
        total[one.target_id] += one.filled_bytes
    for target in expansion.targets:
        own = [one for one in sets if one.target_id == target.id and not one.build]
        if target.size_bytes and sum(one.space_bytes for one in own) > target.size_bytes:
            total[target.id] = _filled_in_order(expansion.trials, target.id, own)
    return total


def written_in(trial: PlannedTrial, limits: Mapping[str, float]) -> Mapping[str, int]:
    """Maximum bytes that a trial writes, by target id. Streams on one target share its rate."""
    found: dict[str, int] = {}
    for target in trial.target_ids:
        works = [stream.workload for stream in trial.streams if stream.target_id == target and stream.workload.writes]
        fastest = min(limits.get(target, FASTEST_BYTES_PER_S), FASTEST_BYTES_PER_S)
        exact = sum(written_by(work, fastest) for work in works if work.moved_bytes is not None)
        timed = [work for work in works if work.moved_bytes is None]
        loaded = sum(work.load_bytes for work in timed)
        bound = round(max((work.time_s for work in timed), default=0) * fastest)
        found[target] = exact + loaded + min(bound, sum(written_by(work, fastest) for work in timed) - loaded)
    return found


def _filled_in_order(trials: Sequence[PlannedTrial], target_id: str, sets: Sequence[_FileSet]) -> int:
    """Bytes if only the files of one trial are kept at a time."""
    filled = {(one.stream, one.size_bytes): one.filled_bytes for one in sets}
    needed = [
        tuple((each.name, each.workload.size_bytes or 0) for each in trial.streams if each.target_id == target_id)
        for trial in trials
        if target_id in trial.target_ids
    ]
    return sum(filled[key] for keys, _ in groupby(needed) for key in keys)


def written_by(workload: Workload, fastest: float = FASTEST_BYTES_PER_S) -> int:
    """Maximum bytes written by the trial itself; exact if it has an amount."""
    if not workload.writes:
        return 0
    if workload.moved_bytes is not None:
        return round(workload.moved_bytes * workload.write_share)
    rate = min(fastest, FASTEST_BYTES_PER_S, FASTEST_IOPS * workload.largest_io_bytes)
    return workload.load_bytes + round(workload.time_s * rate * workload.write_share)


def _is_open(work: Workload) -> bool:
    return work.writes and work.moved_bytes is None


def _settings(trials: Sequence[PlannedTrial], targets: dict[str, TargetFacts]) -> tuple[str, ...]:
    pairs = dict.fromkeys((each, name) for trial in trials for each in trial.target_ids for name in trial.settings)
    return tuple(f"{targets[target].shown}: {FACTORS[name].label}" for target, name in sorted(pairs))
