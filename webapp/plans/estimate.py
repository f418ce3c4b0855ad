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

The bound of the bytes written is that of `bytes_written`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from webapp.plans.bytes_written import may_write_again, written_before_trials, written_most
from webapp.plans.expand import Expansion, PlannedTrial
from webapp.plans.expected_time import Clock, Experience
from webapp.plans.factors import FACTORS, HOSTS_AT_ONCE
from webapp.plans.file_sets import file_sets, layout_builds
from webapp.plans.fitness import TargetFacts
from worker.contract.workload import Workload


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
    """`experience` by host id."""
    targets = {target.id: target for target in expansion.targets}
    builds = layout_builds(expansion.trials, expansion.targets)
    files = file_sets(expansion.trials, builds)
    written_before = written_before_trials(expansion, files)
    one_at_a_time = any(HOSTS_AT_ONCE in trial.point for trial, _ in expansion.distinct)
    clock = Clock(targets, experience or {}, one_at_a_time=one_at_a_time)
    for trial, count in expansion.distinct:
        clock.add_trial(trial, count)
    for one in files:
        clock.add_files(one)
    built = {build: target for used in builds for target, build in used.items()}
    for build, target in built.items():
        clock.add_build(target, build.layout)
    low, typical, high = clock.longest()
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
        space_bytes=sum(one.space_bytes for one in files if not one.build),
        layouts_built=len(built),
        unknown_builds=clock.unknown_builds,
        settings_changed=_settings(expansion.trials, targets),
    )


def _is_open(work: Workload) -> bool:
    return work.writes and work.moved_bytes is None and not work.replaces_member


def _settings(trials: Sequence[PlannedTrial], targets: dict[str, TargetFacts]) -> tuple[str, ...]:
    pairs = dict.fromkeys((each, name) for trial in trials for each in trial.target_ids for name in trial.settings)
    return tuple(f"{targets[target].shown}: {FACTORS[name].label}" for target, name in sorted(pairs))
