"""The files of a plan's trials in directories, and the layouts that contain them. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass

from webapp.plans.expand import PlannedTrial
from worker.contract.layouts import Layout
from worker.contract.workload import TargetKind


@dataclass(frozen=True)
class FileSet:
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


def layout_builds(trials: Sequence[PlannedTrial]) -> list[int]:
    """For each trial the number of its layout in build order, from 1; 0: none.

    A host keeps a layout until a trial needs another one, purges its drives or rebuilds a member.
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
        altered = any(work.replaces_member for work in trial.workloads)
        last[trial.target_id] = None if altered else trial.layout
    return found


def file_sets(trials: Sequence[PlannedTrial], builds: Sequence[int]) -> list[FileSet]:
    sets: dict[tuple[str, str, int, int], FileSet] = {}
    for trial, build in zip(trials, builds, strict=True):
        for stream in trial.streams if trial.kind is TargetKind.DIRECTORY else ():
            work = stream.workload
            key = (stream.name, stream.target_id, work.size_bytes or 0, build)
            old = sets.get(key, FileSet(*key, files=0, filled=False, space_bytes=0))
            sets[key] = FileSet(
                *key,
                files=max(old.files, work.files),
                filled=old.filled or work.prefill,
                space_bytes=max(old.space_bytes, work.space_bytes),
            )
    return list(sets.values())
