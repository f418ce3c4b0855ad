"""The space that directories of a plan need together on one file system.

Test files stay for later trials. The worker removes those of other sizes only in the directory of the trial, so each
directory must fit beside the files of the others (worker.guard.directories). Trials that are used at once need all of
it at the same time, also their temporary folders.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from webapp.core.formatting import bytes_binary
from webapp.plans.document import PlanDocument
from webapp.plans.fitness import TargetFacts, Workloads
from webapp.plans.problems import FieldProblem
from worker.contract.layouts import Layout
from worker.contract.workload import TargetKind

FileSizes = tuple[int | None, ...]  # of each workload: the names of test files contain their size


@dataclass(frozen=True)
class SharedSpace:
    """A file system that is too small for its directories together. `always`: in every order of the trials."""

    targets: tuple[str, ...]
    needed_bytes: int  # of all, without test files that exist
    room_bytes: int
    parts: tuple[int, ...]  # numbers of the parts that use it
    always: bool

    @property
    def words(self) -> str:
        verb = "need" if self.always else "may need"
        return (
            f"{', '.join(self.targets)} are on one file system with {bytes_binary(self.room_bytes)} of free space. "
            f"Their new test files {verb} {bytes_binary(self.needed_bytes)} together."
        )


@dataclass(frozen=True)
class Use:
    """One point on one directory, or on several at once."""

    part: int
    layout: Layout | None
    on_each: Sequence[tuple[TargetFacts, Workloads]]


def shared_spaces(uses: Iterable[Use]) -> list[SharedSpace]:
    """The file systems of several chosen directories that are too small for them together."""
    by_file_system: dict[tuple[str, str], _FileSystem] = defaultdict(_FileSystem)
    for use in uses:
        together: dict[tuple[str, str], int] = defaultdict(int)
        for target, workloads in use.on_each if use.layout is None else ():
            if target.kind is TargetKind.DIRECTORY and target.file_system and target.size_bytes:
                place = (target.host_id, target.file_system)
                together[place] += by_file_system[place].add(use.part, target, workloads)
        for place, needed in together.items():
            by_file_system[place].at_once = max(by_file_system[place].at_once, needed)
    found = (each.problem() for each in by_file_system.values() if len(each.targets) > 1)
    return [each for each in found if each is not None]


class _FileSystem:
    def __init__(self) -> None:
        self.targets: dict[str, TargetFacts] = {}
        self.at_once = 0  # the most bytes of one trial
        self._parts: set[int] = set()
        self._kept: dict[str, dict[FileSizes, int]] = defaultdict(dict)  # bytes of the files that stay, by target

    def add(self, part: int, target: TargetFacts, workloads: Workloads) -> int:
        """The bytes that the workloads need on the target, without test files that exist."""
        self.targets[target.id] = target
        self._parts.add(part)
        sizes = tuple(work.size_bytes for work in workloads)
        kept = sum(work.kept_bytes for work in workloads)
        self._kept[target.id][sizes] = max(kept, self._kept[target.id].get(sizes, 0))
        return _new(kept, target) + sum(work.space_bytes for work in workloads) - kept

    def problem(self) -> SharedSpace | None:
        room = max(each.size_bytes - each.test_file_bytes for each in self.targets.values())
        most = {key: _new(max(sets.values()), self.targets[key]) for key, sets in self._kept.items()}
        always = max(self.at_once, sum(most.values()))
        kept = {key: _new(sum(sets.values()), self.targets[key]) for key, sets in self._kept.items()}
        needed = max(always, *(most[key] + sum(kept.values()) - kept[key] for key in most))
        if needed <= room:
            return None
        names = tuple(each.shown for each in self.targets.values())
        is_always = always > room
        return SharedSpace(names, always if is_always else needed, room, tuple(sorted(self._parts)), is_always)


def _new(needed: int, target: TargetFacts) -> int:
    return max(0, needed - target.test_file_bytes)


def space_warnings(document: PlanDocument, spaces: Iterable[SharedSpace]) -> tuple[FieldProblem, ...]:
    """At the size of each part that uses the file system, or at the common size."""
    found = (_warning(document, number, f"Size: {space.words}") for space in spaces for number in space.parts)
    return tuple(dict.fromkeys(found))


def _warning(document: PlanDocument, number: int, words: str) -> FieldProblem:
    part = document.parts[number]
    if "size" not in part.factors and "size" in document.common:
        return FieldProblem("common.size", words)
    place = ".factors.size" if "size" in part.factors else ""
    return FieldProblem(f"parts.{number}{place}", words, part.name)
