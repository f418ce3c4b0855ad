"""What a plan will cost before it runs: time, bytes written, space. Pure.

Time: the times of all trials with their ramps, OVERHEAD_S for each, and the files that are written first at
PREFILL_BYTES_PER_S. Hosts work side by side, so the longest host counts. A trial that is bound by an amount takes
as long as the drive takes: it counts with nothing, and `unknown_trials` says how many there are.

Bytes written: exact where an amount or a file size says so. Where a time ends the trial, nobody knows; the bound
is what the fastest single drive of today could take in that time (PCIe 5.0 x4), and less for small blocks.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from webapp.plans.expand import Expansion, PlannedTrial
from webapp.plans.factors import FACTORS
from webapp.plans.fitness import TargetFacts
from worker.contract.workload import TargetKind, Workload

OVERHEAD_S = 0.4  # from the end of one trial to the start of the next, and fio's own start and end
PREFILL_BYTES_PER_S = 200e6  # a slow drive's sequential writes: an estimate that is rather too long
FASTEST_BYTES_PER_S = 15.75e9  # PCIe 5.0 x4 after 128b/130b: 4 lanes x 32 GT/s x 128/130 / 8 bit
FASTEST_IOPS = 3.5e6  # of one such drive


@dataclass(frozen=True)
class Estimate:
    trials: int
    seconds: float  # at least: see `unknown_trials`
    unknown_trials: int  # bound by an amount, their time is not in `seconds`
    bytes_written_max: int
    space_bytes: int  # in directories, while the run lasts
    settings_changed: tuple[str, ...]  # in words: a/loop: I/O scheduler


def estimate(expansion: Expansion) -> Estimate:
    targets = {target.id: target for target in expansion.targets}
    files = _file_sets(expansion.trials, targets)
    return Estimate(
        trials=len(expansion.trials),
        seconds=_seconds(expansion.trials, targets, files),
        unknown_trials=sum(trial.workload.runtime_s is None for trial in expansion.trials),
        bytes_written_max=sum(_written(trial.workload) for trial in expansion.trials) + _total(files, filled=True),
        space_bytes=_total(files),
        settings_changed=_settings(expansion.trials, targets),
    )


@dataclass(frozen=True)
class _FileSet:
    """Files of one size in a directory; trials share them, the largest number counts."""

    target_id: str
    size_bytes: int
    files: int
    filled: bool


def _file_sets(trials: Sequence[PlannedTrial], targets: dict[str, TargetFacts]) -> list[_FileSet]:
    sets: dict[tuple[str, int], _FileSet] = {}
    for trial in trials:
        if targets[trial.target_id].kind is not TargetKind.DIRECTORY:
            continue
        key = (trial.target_id, trial.workload.size_bytes or 0)
        old = sets.get(key, _FileSet(*key, files=0, filled=False))
        sets[key] = _FileSet(*key, max(old.files, trial.workload.files), old.filled or trial.workload.prefill)
    return list(sets.values())


def _total(files: Sequence[_FileSet], *, filled: bool = False) -> int:
    """Bytes of all files; with `filled`, of those that are written first."""
    return sum(one.size_bytes * one.files for one in files if one.filled or not filled)


def _seconds(trials: Sequence[PlannedTrial], targets: dict[str, TargetFacts], files: Sequence[_FileSet]) -> float:
    hosts = dict.fromkeys((target.host_id for target in targets.values()), 0.0)
    for trial in trials:
        hosts[targets[trial.target_id].host_id] += (trial.workload.runtime_s or 0) + trial.workload.ramp_s + OVERHEAD_S
    for one in files:
        if one.filled:
            hosts[targets[one.target_id].host_id] += one.size_bytes * one.files / PREFILL_BYTES_PER_S
    return max(hosts.values(), default=0.0)


def _written(workload: Workload) -> int:
    """At most, by the trial itself."""
    if not workload.pattern.writes:
        return 0
    share = 1 - (workload.read_percent or 0) / 100
    if workload.amount_bytes is not None:
        return round(workload.amount_bytes * share)
    largest = max((part.block_bytes for part in workload.block_split), default=workload.block_bytes)
    rate = min(FASTEST_BYTES_PER_S, FASTEST_IOPS * largest)
    return round(((workload.runtime_s or 0) + workload.ramp_s) * rate * share)


def _settings(trials: Sequence[PlannedTrial], targets: dict[str, TargetFacts]) -> tuple[str, ...]:
    pairs = dict.fromkeys((trial.target_id, name) for trial in trials for name in trial.settings)
    return tuple(f"{targets[target].shown}: {FACTORS[name].label}" for target, name in sorted(pairs))
