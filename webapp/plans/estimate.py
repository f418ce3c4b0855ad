"""Estimates the bytes that a plan will write from earlier results. Pure. The bound is `bytes_written.written_most`.

A trial with a run time is expected to write as fast as the nearest earlier results of its kind, whatever their plan.
The kind is random or sequential, the same share of reads, direct or not, and the same layout. Results of the same
target are preferred, else results of other targets with the same drive model. Results of several targets at
once are ignored, because only their sum is known. An amount or a file size is exact, as in the bound, and a rebuild
counts as in the bound.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import ceil, inf, log2
from statistics import median

from webapp.plans.bytes_written import may_write_again, rebuilt_in, written_before_trials, written_by, written_most
from webapp.plans.document import PlanDocument
from webapp.plans.engines import ENGINE, ENGINES, engine_of, name_of
from webapp.plans.expand import Expansion, PlannedTrial
from webapp.plans.expected_time import OVERHEAD_S, Clock, Experience
from webapp.plans.factors import FACTORS, HOSTS_AT_ONCE
from webapp.plans.file_sets import file_sets, layout_builds
from webapp.plans.fitness import TargetFacts
from webapp.plans.goal import budget_of
from webapp.plans.grids import PartGrid, grids_of
from webapp.plans.search_space import within_budget
from webapp.plans.streams import of_stream, own_point
from webapp.plans.values import Value
from worker.contract.workload import Workload

# Estimates the cost of a plan: time, bytes written, space. Pure.
#
# Time: the run times of all trials with their ramps, the turnover of each trial (from the end of its run time to the
# start of the next one), the prefill of files, and the steps before trials, whose writes count like prefill. Hosts
# work in parallel, so the slowest host counts; with hosts at once trials never overlap, so the sum counts. Turnover
# and prefill speed come from earlier runs on each host (`Experience`, from `runs.durations`): the smallest,
# the median and the largest mean of a run give the range. A host without earlier runs counts with OVERHEAD_S and
# PREFILL_BYTES_PER_S, or the measured speed of sequential writes, and `learned_runs` is 0. The time of a trial with
# an amount depends on the drive: if the same workload ran on the same target before, its rates are used, else those
# of the nearest measured workload (`results.speeds`); else the trial is not counted, and `unknown_trials` is the
# number of such trials. The time of purges is not counted.
#
# A trial with a stop rule takes between its minimum and its maximum time. It counts with the times of earlier trials
# of the same workload on the same target; without them with its maximum, and `unknown_stops` is the number of such
# trials.
#
# A layout counts with its earlier build time on that host, including the removal of the previous layout. A layout
# that was never built there is not counted, and `unknown_builds` is the number of such builds.
#
# The bound of the bytes written is that of `bytes_written`.

# The size of a plan before its targets are chosen. Pure.


@dataclass(frozen=True)
class Outline:
    """The size per target: minimum and maximum over the kinds of target that the plan runs on. A trial of several
    targets at once counts for each of them with its share.
    """

    trials_low: int
    trials_high: int
    seconds: float | None  # of the maximum; None if the time depends on the drive


def outline(document: PlanDocument) -> Outline:
    """The outline of a plan; zeros if its levels are invalid."""
    trials: dict[str, int] = defaultdict(int)
    seconds: dict[str, float] = defaultdict(float)
    bound = True
    for grid in grids_of(document):
        count, each = _count(grid) * document.repeats, _seconds(grid)
        count = budget_of(document, ceil(count), each or 0.0) if document.goal and count else count
        for kind in set(grid.kinds) if grid.count else ():
            trials[kind] += ceil(count)
            expected_s = count * ((each or 0.0) + OVERHEAD_S)
            seconds[kind] += min(expected_s, document.budget_s) if document.budget_s else expected_s
        bound = bound and each is not None
    counts = list(trials.values()) or [0]
    return Outline(min(counts), max(counts), max(seconds.values(), default=0.0) if bound else None)


def _seconds(grid: PartGrid) -> float | None:
    """The mean time of a trial, at most; of streams, that of the longest one."""
    if not grid.part.streams or not grid.levels:
        return grid.engine.time_s(grid.levels)
    of_streams = [_of_stream(grid, stream.name) for stream in grid.part.streams]
    return None if None in of_streams else max(seconds for seconds in of_streams if seconds is not None)


def _of_stream(grid: PartGrid, stream: str) -> float | None:
    engine = str((grid.levels.get(f"{stream}.{ENGINE}") or grid.levels[ENGINE])[0])
    return ENGINES[engine].time_s(of_stream(grid.levels, stream, engine))


def _count(grid: PartGrid) -> float:
    """Points of a target: a trial of several targets at once counts with its share."""
    return sum(count / at_once.all_targets for at_once, count in grid.by_targets.items())


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
    written_again: bool  # new attempts of lost trials may write more than `written_most`
    open_ended: frozenset[str]  # ids of targets with only a bound: a time limits trials that write
    space_bytes: int  # in directories, while the run lasts
    layouts_built: int  # number of layout builds
    unknown_builds: int  # builds of layouts that are new on their host; their time is not in `seconds`
    settings_changed: tuple[str, ...]  # in words: a/loop: I/O scheduler

    @property
    def bytes_written_max(self) -> int:
        return sum(self.written_most.values())


def estimate(expansion: Expansion, experience: Mapping[str, Experience] | None = None) -> Estimate:
    """Of a plan with a goal for the trials that its search may run. `experience` by host id."""
    expansion = within_budget(expansion)
    targets = {target.id: target for target in expansion.targets}
    builds = layout_builds(expansion.trials, expansion.targets)
    files = file_sets(expansion.trials, builds)
    written_before = written_before_trials(expansion, files)
    one_at_a_time = any(HOSTS_AT_ONCE in trial.point for trial, _ in expansion.distinct)
    clock = Clock(targets, experience or {}, one_at_a_time=one_at_a_time)
    for trial, count in expansion.distinct:
        clock.add_trial(trial, count)
    for file_set in files:
        clock.add_files(file_set)
    built = {build: target for used in builds for target, build in used.items()}
    for build, target in built.items():
        clock.add_build(target, build.layout)
    low, typical, high = (min(each, expansion.budget_s or inf) for each in clock.longest())
    most = written_most(expansion, before=written_before)
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
        written_most=most,
        written_before=written_before,
        written_again=may_write_again(expansion, most),
        open_ended=frozenset(
            stream.target_id for trial, _ in expansion.distinct for stream in trial.streams if _is_open(stream.workload)
        ),
        space_bytes=sum(file_set.space_bytes for file_set in files if not file_set.build),
        layouts_built=len(built),
        unknown_builds=clock.unknown_builds,
        settings_changed=_settings(expansion.trials, targets),
    )


def _is_open(work: Workload) -> bool:
    return work.writes and work.moved_bytes is None and not work.replaces_member


def _settings(trials: Sequence[PlannedTrial], targets: dict[str, TargetFacts]) -> tuple[str, ...]:
    pairs = dict.fromkeys((each, name) for trial in trials for each in trial.target_ids for name in trial.settings)
    return tuple(f"{targets[target].shown}: {FACTORS[name].label}" for target, name in sorted(pairs))


Point = Mapping[str, Value]
Kind = tuple[Value, ...]


Load = tuple[int, ...]  # block size, queue depth and jobs


@dataclass(frozen=True)
class Speeds:
    """Measured points and their bytes/s."""

    by_load: Mapping[Kind, Mapping[Load, Sequence[tuple[Point, float]]]] = field(default_factory=dict)

    @staticmethod
    def of(measured: Iterable[tuple[Point, float]]) -> "Speeds":
        by_load: dict[Kind, dict[Load, list[tuple[Point, float]]]] = {}
        for point, rate in measured:
            by_load.setdefault(kind_of(point), {}).setdefault(_load(point), []).append((point, rate))
        return Speeds(by_load)

    def nearest(self, point: Point) -> list[float]:
        """Rates of the points of its kind that are nearest in block size, then in queue depth and jobs; of these, those
        with the fewest other factors that differ."""
        by_load, load = self.by_load.get(kind_of(point), {}), _load(point)
        if not by_load:
            return []
        alike = by_load[min(by_load, key=lambda other: [abs(log2(a / b)) for a, b in zip(load, other, strict=True)])]
        differing = [len(dict(point.items() ^ other.items())) for other, _ in alike]
        least = min(differing)
        return [rate for (_, rate), count in zip(alike, differing, strict=True) if count == least]

    def at(self, point: Point) -> float | None:
        """The median of the nearest."""
        rates = self.nearest(point)
        return median(rates) if rates else None


def _load(point: Point) -> Load:
    return tuple(int(point.get(name) or 1) for name in ("block_size", "iodepth", "numjobs"))


@dataclass(frozen=True)
class Earlier:
    """Rates of one target, and of others with the same drive model."""

    of_target: Speeds = Speeds()
    model: Speeds = Speeds()


@dataclass(frozen=True)
class Expected:
    """Expected bytes written to a target; `by_model`: some rates come from other drives of the same model."""

    bytes: int
    by_model: bool


def written_in_total(cost: Estimate, expected: Mapping[str, Expected]) -> int | None:
    """Expected bytes on all targets; None if nothing is known about one of them."""
    if cost.open_ended - expected.keys():
        return None
    return sum(expected[target].bytes if target in expected else most for target, most in cost.written_most.items())


def written_expected(
    expansion: Expansion, written_before: Mapping[str, int], earlier: Mapping[str, Earlier]
) -> dict[str, Expected]:
    """Expected bytes by target id, with those before measurements, if the bound is not exact and all timed trials have
    earlier results."""
    expected: dict[str, Expected] = {}
    unknown: set[str] = set()
    exact = dict(written_before)
    for trial, count, stream in ((each, n, stream) for each, n in expansion.distinct for stream in each.streams):
        target, work = stream.target_id, stream.workload
        if not work.writes:
            continue
        known = earlier.get(target, Earlier())
        if work.replaces_member:
            exact[target] = exact.get(target, 0) + count * rebuilt_in(trial, expansion)
            continue
        if work.moved_bytes is not None:
            exact[target] = exact.get(target, 0) + count * written_by(work)
            continue
        point = own_point(trial.point, stream.name) if stream.name else trial.point
        of_target, of_model = known.of_target.at(point), known.model.at(point)
        rate = of_model if of_target is None else of_target
        if rate is None:
            unknown.add(target)
            continue
        written = min(written_by(work), work.load_bytes + round(work.time_s * rate))
        before = expected.get(target, Expected(0, by_model=False))
        expected[target] = Expected(before.bytes + count * written, before.by_model or of_target is None)
    return {
        target: Expected(each.bytes + exact.get(target, 0), each.by_model)
        for target, each in expected.items()
        if target not in unknown
    }


def kind_of(point: Point) -> Kind:
    """What decides the speed besides the block size. `layout` exists only if the plan names one."""
    return (name_of(point), *engine_of(point).kind(point), point.get("layout"))
