"""The files of a plan's trials in directories, and the layouts that contain them. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from webapp.plans.expand import PlannedTrial
from webapp.plans.fitness import TargetFacts
from worker.contract.layouts import Layout
from worker.contract.workload import TargetKind, Workload


class Build(NamedTuple):
    """One build of a layout."""

    number: int  # in build order, from 1
    layout: Layout | None


Builds = Mapping[str, Build]  # by target id; empty without a layout


@dataclass(frozen=True)
class FileSet:
    """Files of one size in a directory. Trials share them, so the largest number counts."""

    stream: str  # a named stream has its own files
    target_id: str
    size_bytes: int
    build: int  # number of the layout that contains them; 0: none. They are deleted with it.
    is_new: bool  # each trial creates them again
    files: int
    filled: bool
    space_bytes: int  # with what the workload adds, such as copies

    @property
    def filled_bytes(self) -> int:
        return self.size_bytes * self.files if self.filled else 0


def layout_builds(trials: Sequence[PlannedTrial], targets: Sequence[TargetFacts]) -> list[Builds]:
    """The builds that each trial uses.

    A host keeps the layouts of a trial until its next trial needs others, or until a trial purges their drives or
    rebuilds a member.
    """
    if not any(map(any, (trial.layouts for trial in trials))):
        return [{}] * len(trials)
    host_of = {target.id: target.host_id for target in targets}
    built: dict[str, Builds] = {}  # by host
    builds: list[Builds] = []
    count = 0
    for trial in trials:
        before, now = built.get(host_of[trial.target_id], {}), dict[str, Build]()
        layouts = {stream.target_id: stream.layout for stream in trial.streams if stream.layout}
        for target, layout in layouts.items():
            build = before.get(target)
            if build is None or build.layout != layout or trial.before.purge:
                count += 1
                build = Build(count, layout)
            now[target] = build
        altered = any(work.replaces_member for work in trial.workloads)
        built |= dict.fromkeys((host_of[target] for target in trial.target_ids), {} if altered else now)
        builds.append(now)
    return builds


def file_sets(trials: Sequence[PlannedTrial], builds: Sequence[Builds]) -> list[FileSet]:
    used: dict[tuple[str, str, int, int, bool], list[Workload]] = {}
    for trial, build in zip(trials, builds, strict=True):
        for stream in trial.streams if trial.kind is TargetKind.DIRECTORY else ():
            work = stream.workload
            number = build[stream.target_id].number if build else 0
            key = (stream.name, stream.target_id, work.size_bytes or 0, number, work.creates_files)
            used.setdefault(key, []).append(work)
    return [
        FileSet(
            *key,
            files=max(work.files for work in works),
            filled=any(work.prefill for work in works),
            space_bytes=max(work.space_bytes for work in works),
        )
        for key, works in used.items()
    ]
