"""The most bytes that a plan writes. Pure.

Exact for an amount or a file size. For a trial with a run time, the bound is what the fastest current drive
(PCIe 5.0 x4) could write in that time, and less for small blocks. A rebuild counts with the capacity of one member,
even if its run time ends first. Each trial counts once. New attempts of lost trials write again (`may_write_again`);
the worker's limit `max_write_bytes` counts them.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby

from webapp.plans.expand import Expansion, PlannedTrial
from webapp.plans.expected_time import written_again, written_by_steps
from webapp.plans.file_sets import FileSet
from webapp.plans.layouts import member_bytes
from worker.contract.workload import TargetKind, Workload

FASTEST_BYTES_PER_S = 15.75e9  # PCIe 5.0 x4 after 128b/130b: 4 lanes x 32 GT/s x 128/130 / 8 bit
FASTEST_IOPS = 3.5e6  # IOPS of one such drive


def written_most(
    expansion: Expansion, *, before: Mapping[str, int], limits: Mapping[str, float] | None = None
) -> Mapping[str, int]:
    """Maximum bytes by target id, with those `before` the measurements, and with steps that are done again after failed
    trials. `limits`: the targets' known upper bounds in bytes/s."""
    total = Counter(before) + Counter(written_again(expansion.trials, expansion.targets, expansion.stop_after))
    for trial, count in expansion.distinct:
        for target_id, most in written_in(trial, limits or {}).items():
            total[target_id] += count * (most + rebuilt_in(trial, expansion))
    return total


def may_write_again(expansion: Expansion, most: Mapping[str, int]) -> bool:
    """Whether new attempts of lost trials may write: only trials that write nothing, or into a directory, have them."""
    directories = (target.id for target in expansion.targets if target.kind is TargetKind.DIRECTORY)
    return bool(expansion.retries) and any(most.get(target) for target in directories)


def written_before_trials(expansion: Expansion, sets: Sequence[FileSet]) -> Mapping[str, int]:
    return Counter(_prefilled(expansion, sets)) + Counter(written_by_steps(expansion.trials, expansion.targets))


def _prefilled(expansion: Expansion, sets: Sequence[FileSet]) -> Mapping[str, int]:
    """Maximum bytes of prefilled files by target id.

    If the files of all sizes do not fit into a directory together, the worker removes some of them, and writes them
    again when a later trial needs them.
    """
    total = Counter[str]()
    for file_set in sets:
        total[file_set.target_id] += file_set.filled_bytes
    for target in expansion.targets:
        of_target = [file_set for file_set in sets if file_set.target_id == target.id and not file_set.build]
        if target.size_bytes and sum(file_set.space_bytes for file_set in of_target) > target.size_bytes:
            total[target.id] = _filled_in_order(expansion.trials, target.id, of_target)
    return total


def written_in(trial: PlannedTrial, limits: Mapping[str, float]) -> Mapping[str, int]:
    """Maximum bytes that a trial writes, by target id, without rebuilds."""
    bytes_by_target: dict[str, int] = {}
    for target in trial.target_ids:
        fastest = min(limits.get(target, FASTEST_BYTES_PER_S), FASTEST_BYTES_PER_S)
        workloads = [stream.workload for stream in trial.streams if stream.target_id == target]
        works = [work for work in workloads if not work.replaces_member]
        bytes_by_target[target] = sum([written_by(work, fastest) for work in works])
        if len(works) > 1:
            bytes_by_target[target] = min(bytes_by_target[target], _written_together(works, fastest))
    return bytes_by_target


def rebuilt_in(trial: PlannedTrial, expansion: Expansion) -> int:
    """Bytes that the rebuild of a trial writes to the drives of its only target; 0 without a rebuild."""
    rebuilds = [work for work in trial.workloads if work.replaces_member]
    layout = trial.layouts[0]
    if not rebuilds or layout is None:
        return 0
    drives = next(target.drives for target in expansion.targets if target.id == trial.target_id)
    return member_bytes(layout, drives) or sum(map(written_by, rebuilds))


def _written_together(works: Iterable[Workload], fastest: float) -> int:
    """Maximum bytes of streams that share the rate of their target."""
    writing = [work for work in works if work.writes]
    timed = [work for work in writing if work.moved_bytes is None]
    exact = sum(written_by(work) for work in writing if work.moved_bytes is not None)
    seconds = max((work.time_s for work in timed), default=0)
    return exact + sum(work.load_bytes for work in timed) + round(seconds * fastest)


def _filled_in_order(trials: Sequence[PlannedTrial], target_id: str, sets: Sequence[FileSet]) -> int:
    """Bytes if only the files of one trial are kept at a time."""
    filled = {(file_set.stream, file_set.size_bytes, file_set.is_new): file_set.filled_bytes for file_set in sets}
    needed = [
        tuple(
            (each.name, each.workload.size_bytes or 0, each.workload.creates_files)
            for each in trial.streams
            if each.target_id == target_id
        )
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
