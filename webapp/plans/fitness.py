"""The space that directories of a plan need together on one file system.

Test files stay for later trials. The worker removes those of other sizes only in the directory of the trial, so each
directory must fit beside the files of the others (worker.guard.directories). Trials that are used at once need all of
it at the same time, also their temporary folders.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from webapp.core.formatting import bytes_binary
from webapp.plans.document import PlanDocument
from webapp.plans.factors import FACTORS
from webapp.plans.grids import FieldProblem
from webapp.plans.layouts import DriveFacts, made_kind, usable_bytes
from webapp.plans.setting_rows import SETTING_ROWS
from webapp.plans.steps import NO_PREPARATION, Preparation
from webapp.plans.values import BlockRange, BlockSplit, Value
from worker.contract.layouts import FileSystem, Layout, Maker
from worker.contract.workload import AnyWorkload, TargetKind, Workload, WriteStep
from worker.recipes import path_problem, workload_problems
from worker.recipes.layouts.problems import array_problem
from worker.recipes.layouts.text import write
from worker.recipes.steps import step_problems, step_words, step_workload

# Checks whether a point can run on a target: the recipe's rules, the host's policy, the free space.

# Whether I/O consists of whole logical sectors of the device (`Workload.sector_multiples`).

ALIGNED = (
    "block_size", "write_block_size", "block_split", "write_block_split", "block_range", "skip", "offset",
    "offset_increment", "blockalign",
)  # fmt: skip


def misalignments(work: Workload, sector_bytes: int) -> Iterator[str]:
    """The values of the workload that are not multiples of the sector, as noun phrases; none if it is unknown."""
    if sector_bytes:
        yield from (f"{what} of {bytes_binary(size)}" for what, size in work.sector_multiples if size % sector_bytes)


def is_misaligned(factor: str, level: Value, sector_bytes: int) -> bool:
    """Whether a level of one of the factors ALIGNED is not a multiple of the sector."""
    return bool(sector_bytes) and any(size % sector_bytes for size in _sizes(factor, level))


def _sizes(factor: str, level: Value) -> tuple[int, ...]:
    values = FACTORS[factor].values
    if isinstance(values, BlockSplit):
        return tuple(size for size, _percent in values.shares(level))
    if isinstance(values, BlockRange):
        return values.ends(level)
    return (level,) if isinstance(level, int) else ()


_ALL = "*"
Workloads = tuple[AnyWorkload, ...]
HOST_WIDE = frozenset(row.name for row in SETTING_ROWS if row.host_wide)


@dataclass(frozen=True)
class TargetFacts:
    """The target's facts for the expansion. `size_bytes` 0 is unknown; for a directory it is the free space."""

    id: str
    kind: TargetKind
    path: str
    stable_id: str
    serial: str
    size_bytes: int
    settings_allowed: tuple[str, ...]
    destroy: bool
    host_settings_allowed: tuple[str, ...] = ()  # kernel-wide settings of its host
    name: str = ""  # for people: host/target
    purges: Mapping[str, str] = field(default_factory=dict)  # method -> why it cannot be used now; "" if it can
    host_id: str = ""  # trials of different hosts run in parallel
    drives: tuple[DriveFacts, ...] = ()  # pool: in its order
    memory_bytes: int = 0  # of its host, only if the plan needs it
    opens: str = ""  # block: the device node of its path at the last registration
    file_system: str = ""  # directory: common to those of a host that are on one file system
    test_file_bytes: int = 0  # directory: the part of `size_bytes` that its test files take now
    logical_block_bytes: int = 0  # of the device; 0 is unknown

    @property
    def shown(self) -> str:
        return self.name or self.path


@dataclass(frozen=True)
class Fitness:
    """Caches the results for equal workloads: most points differ only in values that do not matter here."""

    _known: dict[tuple[Workload, TargetKind], list[str]] = field(default_factory=dict)

    def problems(
        self,
        workloads: Workloads,
        settings: dict[str, str],
        target: TargetFacts,
        layout: Layout | None = None,
        before: Preparation = NO_PREPARATION,
    ) -> list[str]:
        """Reasons why a point cannot run on the target, as sentences, besides those of its combination of levels.
        `workloads` are those that use the target at the same time."""
        kind = made_kind(target.kind, layout)
        return [
            *_path_problems(target),
            *_drive_problems(layout, target),
            *[text for work in workloads for text in _reflink_problems(work, layout)],
            *_space_problems(workloads, target, kind, room_of(target, layout)),
            *dict.fromkeys([text for work in workloads for text in _alignment_problems(work, target, kind)]),
            *dict.fromkeys([text for work in workloads for text in _destroy_problems(work, before, target)]),
            *[text for work in workloads for text in self._step_problems(work, before, target, layout)],
            *purge_problems(before.purge, target, layout),
            *_settings_problems(settings, target),
        ]

    def _step_problems(
        self, workload: Workload, before: Preparation, target: TargetFacts, layout: Layout | None
    ) -> list[str]:
        if not before.steps or workload.needs_array:  # the steps prepare what the other streams use
            return []
        kind, capacity = made_kind(target.kind, layout), room_of(target, layout)
        problems = [f"{target.shown}: {text}." for text in step_problems(before.steps, workload, capacity)]
        writing = [step for step in before.steps if isinstance(step, WriteStep)] if not problems else []
        return problems + [
            f"Step `{step_words(step)}` on {target.shown}: {text}"
            for step in writing
            for text in self.combination_problems(step_workload(step, workload, kind, capacity), kind)
        ]

    def combination_problems(self, workload: Workload, kind: TargetKind) -> list[str]:
        """Reasons why this combination of levels cannot run on any target of the kind."""
        problems = self._known.get((workload, kind))
        if problems is None:
            problems = self._known[workload, kind] = [f"{problem}." for problem in workload_problems(workload, kind)]
        return problems


def _path_problems(target: TargetFacts) -> list[str]:
    """A directory's path is not checked: engines run inside the directory with generated file names."""
    by_path = target.kind in (TargetKind.BLOCK, TargetKind.FILE)
    problem = path_problem(target.path) if by_path else ""
    return [f"{target.shown}: {problem}."] if problem else []


def _drive_problems(layout: Layout | None, target: TargetFacts) -> list[str]:
    if layout is None:
        return []
    virtual = layout.maker is Maker.CONTROLLER
    if any((drive.kind is TargetKind.SLOT) is not virtual for drive in target.drives):
        has, takes = ("slots of a controller", "drives that the host sees") if not virtual else (
            "drives that the host sees", "slots of a controller"
        )  # fmt: skip
        return [f"`{write(layout)}` takes {takes}; the pool {target.shown} has {has}."]
    if layout.drives <= len(target.drives):
        return []
    return [f"`{write(layout)}` takes {layout.drives} drives; the pool {target.shown} has {len(target.drives)}."]


def _reflink_problems(workload: Workload, layout: Layout | None) -> list[str]:
    """Without a layout the file system may change: the preview only warns of it, and the worker refuses it."""
    if not workload.needs_reflinks or layout is None or layout.file_system in (FileSystem.XFS, FileSystem.BTRFS):
        return []
    return [f"{layout.file_system} has no reflinks. Use btrfs or xfs, or another copy method."]


def room_of(target: TargetFacts, layout: Layout | None) -> int:
    """Bytes of the device or file, or free bytes of the directory; 0 if unknown."""
    return target.size_bytes if layout is None else usable_bytes(layout, target.drives)


def verification_problems(workloads: Workloads, kind: TargetKind) -> list[str]:
    """A stream cannot verify data that another stream overwrites. In a directory, each stream has its own files. A
    rebuild changes no data of its array."""
    if kind is TargetKind.DIRECTORY or len(workloads) < 2:
        return []
    writers = sum(work.writes and not work.replaces_member for work in workloads)
    if writers < 2 or not any(work.verifies for work in workloads):
        return []
    return ["A stream verifies its data while another stream writes to the same target. Verify on a target of its own."]


def array_problems(workloads: Workloads, layout: Layout | None) -> list[str]:
    """Reasons why the streams cannot act on the array of the layout."""
    acting = [work for work in workloads if work.needs_array]
    problems = [array_problem(layout, replaces_member=work.replaces_member) for work in acting]
    return [f"{text[0].upper()}{text[1:]}." for text in problems if text]


def _space_problems(workloads: Workloads, target: TargetFacts, kind: TargetKind, room: int) -> list[str]:
    """Check the space: a directory needs space for all files, a device must be as large as its used part."""
    if kind is TargetKind.DIRECTORY:
        needed = sum(work.space_bytes for work in workloads)
    else:
        needed = max(work.end_bytes or 0 for work in workloads)
    if not room or needed <= room:
        return []
    there = "free" if target.kind is TargetKind.DIRECTORY else "there"
    words = [bytes_binary(needed), bytes_binary(room)]
    if words[0] == words[1]:
        words = [f"{needed:,} B", f"{room:,} B"]
    return [f"{words[0]} are needed on {target.shown}, {words[1]} are {there}."]


def _alignment_problems(workload: Workload, target: TargetFacts, kind: TargetKind) -> list[str]:
    """The device refuses I/O that does not consist of whole sectors. A file system may buffer it instead."""
    if kind is not TargetKind.BLOCK:
        return []
    return [
        f"{target.shown}: {words} must be a multiple of its sectors of {bytes_binary(target.logical_block_bytes)}."
        for words in misalignments(workload, target.logical_block_bytes)
    ]


def purge_problems(method: str, target: TargetFacts, layout: Layout | None = None) -> list[str]:
    """Reasons why the drive, or a drive under the layout, cannot be purged by this method before a trial."""
    if not method:
        return []
    if layout is None:
        return _purge_problems(method, target.shown, target.kind, destroy=target.destroy, purges=target.purges)
    return [
        problem
        for drive in target.drives[: layout.drives]
        for problem in _purge_problems(method, drive.name, drive.kind, destroy=drive.destroy, purges=drive.purges)
    ]


def _purge_problems(
    method: str, shown: str, kind: TargetKind, *, destroy: bool, purges: Mapping[str, str]
) -> list[str]:
    if kind is TargetKind.SLOT:
        return [
            f"{shown} is behind a RAID controller, which does not forward purges. Purge the drive before you insert it."
        ]
    if kind is not TargetKind.BLOCK:
        return [f"{shown} is not a block device. Only block devices can be purged."]
    if not destroy:
        return [f"A purge destroys all data on {shown}, and its host's policy does not allow that (`destroy`)."]
    problem = purges.get(method, "The drive does not support it.")
    return [f"`{method}` of {shown}: {problem}"] if problem else []


def _destroy_problems(workload: Workload, before: Preparation, target: TargetFacts) -> list[str]:
    if target.destroy or target.kind in (TargetKind.DIRECTORY, TargetKind.POOL):
        return []
    steps = [step_words(step) for step in before.steps if isinstance(step, WriteStep)]
    writing = workload.words if workload.writes else f"The step `{steps[0]}`" if steps else ""
    if not writing:
        return []
    return [
        f"{writing} overwrites {target.shown}, and its host's policy does not allow that (`destroy`). "
        "Remove the writing pattern, or ask the host's administrator."
    ]


def _settings_problems(settings: dict[str, str], target: TargetFacts) -> list[str]:
    refused = [name for name in settings if not _may(name, target)]
    return [
        *[_of_the_target(name, target) for name in refused if name not in HOST_WIDE],
        *[_of_the_host(name, target) for name in refused if name in HOST_WIDE],
    ]


def _may(name: str, target: TargetFacts) -> bool:
    allowed = target.host_settings_allowed if name in HOST_WIDE else target.settings_allowed
    return name in allowed or _ALL in allowed


def _of_the_target(name: str, target: TargetFacts) -> str:
    return f"`{name}` may not be changed on {target.shown}: its host's policy does not list it under `settings`."


def _of_the_host(name: str, target: TargetFacts) -> str:
    return (
        f"`{name}` affects the whole host of {target.shown} and may not be changed: its policy does not list it "
        "under `[host] settings`."
    )


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


OnTarget = tuple[TargetFacts, Workloads, Layout | None]  # what uses a target at the same time, and its layout


@dataclass(frozen=True)
class Use:
    """One point on one directory, or on several at once."""

    part: int
    on_each: Sequence[OnTarget]


def shared_spaces(uses: Iterable[Use]) -> list[SharedSpace]:
    """The file systems of several chosen directories that are too small for them together."""
    by_file_system: dict[tuple[str, str], _FileSystem] = defaultdict(_FileSystem)
    for use in uses:
        together: dict[tuple[str, str], int] = defaultdict(int)
        for target, workloads, _ in use.on_each:
            if target.kind is TargetKind.DIRECTORY and target.file_system and target.size_bytes:
                place = (target.host_id, target.file_system)
                together[place] += by_file_system[place].add(use.part, target, workloads)
        for place, needed in together.items():
            by_file_system[place].at_once = max(by_file_system[place].at_once, needed)
    spaces = (each.problem() for each in by_file_system.values() if len(each.targets) > 1)
    return [each for each in spaces if each is not None]


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
        kept_bytes = sum(work.kept_bytes for work in workloads)
        self._kept[target.id][sizes] = max(kept_bytes, self._kept[target.id].get(sizes, 0))
        return _new(kept_bytes, target) + sum(work.space_bytes for work in workloads) - kept_bytes

    def problem(self) -> SharedSpace | None:
        room = max(each.size_bytes - each.test_file_bytes for each in self.targets.values())
        most = {key: _new(max(sets.values()), self.targets[key]) for key, sets in self._kept.items()}
        always = max(self.at_once, sum(most.values()))
        all_sets = {key: _new(sum(sets.values()), self.targets[key]) for key, sets in self._kept.items()}
        needed = max(always, *(most[key] + sum(all_sets.values()) - all_sets[key] for key in most))
        if needed <= room:
            return None
        names = tuple(each.shown for each in self.targets.values())
        is_always = always > room
        return SharedSpace(names, always if is_always else needed, room, tuple(sorted(self._parts)), is_always)


def _new(needed: int, target: TargetFacts) -> int:
    return max(0, needed - target.test_file_bytes)


def space_warnings(document: PlanDocument, spaces: Iterable[SharedSpace]) -> tuple[FieldProblem, ...]:
    """At the size of each part that uses the file system, or at the common size."""
    warnings = (_warning(document, number, f"Size: {space.words}") for space in spaces for number in space.parts)
    return tuple(dict.fromkeys(warnings))


def _warning(document: PlanDocument, number: int, words: str) -> FieldProblem:
    part = document.parts[number]
    if "size" not in part.factors and "size" in document.common:
        return FieldProblem("common.size", words)
    place = ".factors.size" if "size" in part.factors else ""
    return FieldProblem(f"parts.{number}{place}", words, part.name)
