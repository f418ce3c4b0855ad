"""Warnings about factors that have no effect in a plan, shown at the factor. They do not prevent a run.

RULES is the table. A rule applies to a part if it applies to all points and all kinds of target of the part. The rule
about schedulers names the targets concerned. Every rule has its source.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import msgspec

from webapp.core.formatting import bytes_binary
from webapp.plans.document import Part, PlanDocument
from webapp.plans.factors import BEFORE, FACTORS, PURGE, Factor, FactorKind, name_layout
from webapp.plans.fitness import ALIGNED, TargetFacts, is_misaligned
from webapp.plans.grids import FieldProblem, PartGrid, grids_of
from webapp.plans.layouts import made_kind
from webapp.plans.part_levels import factor_texts
from webapp.plans.points import DIRECTORIES_ONLY, Point, workloads_of
from webapp.plans.setting_rows import scheduler_needed
from webapp.plans.steps import steps_before
from webapp.plans.values import LayoutLine, Value
from worker.contract.layouts import FileSystem, Layout
from worker.contract.workload import IoEngine, TargetKind, Workload
from worker.recipes.steps import writes

_OF_WORKLOAD = (FactorKind.WORKLOAD, FactorKind.OPTION, FactorKind.STREAMS)
Schedulers = Mapping[str, tuple[str, ...]]  # target id -> schedulers that its device offers


@dataclass(frozen=True)
class Case:
    """One part: its points, the levels of its factors, including defaults, and its targets."""

    points: Sequence[Point]
    levels: Mapping[str, tuple[Value, ...]]
    kinds: frozenset[TargetKind]  # as the workload uses them: a layout turns a pool into a device or a directory
    targets: Sequence[TargetFacts] = ()  # the chosen ones
    schedulers: Schedulers = field(default_factory=dict)

    def of(self, factor: str) -> frozenset[Value]:
        return frozenset(self.levels.get(factor, ()))

    @cached_property
    def workloads(self) -> list[Workload]:
        """The workloads of all points, one of those that differ only in numbers; [] if the contract does not allow one
        of them. No rule depends on a number, except on the share of reads."""
        names = [name for name, levels in self.levels.items() if len(levels) > 1 and _tells_apart(FACTORS[name])]
        try:
            return [
                work
                for point in {tuple(map(point.get, names)): point for point in self.points}.values()
                for work in workloads_of(point, seed=1)
            ]
        except msgspec.ValidationError:
            return []

    @property
    def only_reads(self) -> bool:
        return bool(self.workloads) and not any(work.writes for work in self.workloads)

    @property
    def only_direct(self) -> bool:
        """All I/O is direct and stays so below: no part of it uses the page cache."""
        return bool(self.workloads) and all(work.direct for work in self.workloads) and not self._becomes_buffered

    @property
    def _becomes_buffered(self) -> bool:
        """Loop devices use the page cache for their file, and some file systems for direct I/O.

        Sources: losetup(8), --direct-io is off by default; Linux, Documentation/filesystems/ext4: data=journal
        disables O_DIRECT; btrfs(5): direct I/O with compression or checksums may be buffered; f2fs, mode=lfs.
        """
        on_loops = any(target.stable_id.startswith("loop:") or _has_loops(target) for target in self.targets)
        return on_loops or any(
            layout.file_system in (FileSystem.BTRFS, FileSystem.F2FS) or "data=journal" in layout.mount_options
            for layout in _layouts(self.levels)
            if layout is not None
        )

    @property
    def writes_no_dirty_pages(self) -> bool:
        """Direct writes to files leave dirty metadata in memory."""
        return self.only_reads or (self.only_direct and self.kinds == {TargetKind.BLOCK})

    @property
    def in_directories(self) -> bool:
        return TargetKind.DIRECTORY in self.kinds


def _tells_apart(factor: Factor) -> bool:
    return factor.kind in _OF_WORKLOAD and (not factor.numeric or factor.name == "read_percent")


@dataclass(frozen=True)
class Rule:
    """`holds` and `why` get the case and the factor. `why` is a clause."""

    factors: tuple[str, ...]
    holds: Callable[[Case, str], bool]
    why: Callable[[Case, str], str] | str
    source: str
    claim: str = "has no effect here"

    def words(self, case: Case, factor: str) -> str:
        why = self.why if isinstance(self.why, str) else self.why(case, factor)
        return f"{FACTORS[factor].label} {self.claim}: {why}."


@dataclass(frozen=True)
class _PartWarnings:
    part: Part
    inherited: frozenset[str]  # common factors that the part does not override
    varied: frozenset[str]  # factors with several levels
    by_factor: Mapping[str, str]


def factor_warnings(
    document: PlanDocument,
    targets: Sequence[TargetFacts] = (),
    schedulers: Schedulers | None = None,
    grids: Sequence[PartGrid] | None = None,
) -> tuple[FieldProblem, ...]:
    """Warnings with their places in the document. Parts with problems and plans that are too large are left out.

    Without targets, the kinds of target in the part count. A warning about a common factor is shown at that factor if
    it applies to all parts that use the factor. Otherwise it is shown at the parts concerned, and only if the factor
    varies: their trials are then repeated without a reason.
    """
    grids = grids_of(document) if grids is None else grids
    parts = [_in_part(document, grid, targets, schedulers or {}) for grid in grids]
    common = {factor: words for factor in document.common if (words := _in_all(factor, parts))}
    warnings = [FieldProblem(f"common.{factor}", words) for factor, words in common.items()]
    for number, part in enumerate(parts):
        for factor, words in part.by_factor.items():
            if factor not in part.inherited:
                warnings.append(FieldProblem(f"parts.{number}.factors.{factor}", words, part.part.name))
            elif factor in part.varied and factor not in common:
                warnings.append(FieldProblem(f"parts.{number}", words, part.part.name))
    return tuple(warnings)


def _in_all(factor: str, parts: Sequence[_PartWarnings]) -> str:
    """The warning about a common factor if every part that uses it has the same one, else ""."""
    words = {part.by_factor.get(factor, "") for part in parts if factor in part.inherited}
    return words.pop() if len(words) == 1 else ""


def _in_part(
    document: PlanDocument, grid: PartGrid, targets: Sequence[TargetFacts], schedulers: Schedulers
) -> _PartWarnings:
    part, texts = grid.part, factor_texts(document, grid.part)
    chosen = [target for target in targets if target.kind in grid.kinds]
    kinds = {target.kind for target in chosen} or {TargetKind(kind) for kind in grid.kinds if kind in {*TargetKind}}
    case = Case(grid.points, grid.levels, frozenset(_made_kinds(kinds, grid.levels)), chosen, schedulers)
    warnings = {
        factor: rule.words(case, factor)
        for factor in texts
        for rule in RULES
        if not (grid.found or grid.over) and factor in rule.factors and rule.holds(case, factor)
    }
    varied = frozenset(name for name, levels in grid.levels.items() if len(levels) > 1)
    return _PartWarnings(part, frozenset(texts) - frozenset(part.factors), varied, warnings)


def _made_kinds(kinds: set[TargetKind], levels: Mapping[str, tuple[Value, ...]]) -> set[TargetKind]:
    return {made_kind(kind, layout) for kind in kinds for layout in _layouts(levels) or [None]}


def _layouts(levels: Mapping[str, tuple[Value, ...]]) -> list[Layout | None]:
    """Those of the part and of its streams."""
    return [LayoutLine().layout(value) for name in levels if name_layout([name]) for value in levels[name]]


# ---- conditions that are longer than a line


def _has_loops(pool: TargetFacts) -> bool:
    return any(drive.path.startswith("/dev/loop") for drive in pool.drives)


def _no_scheduler(case: Case) -> list[str]:
    """Names of the chosen targets whose device offers only `none`."""
    return [target.shown for target in case.targets if case.schedulers.get(target.id) == ("none",)]


def _misaligned(case: Case, factor: str) -> list[TargetFacts]:
    """The targets whose sectors are larger than a level, or not a divisor of it."""
    if not any(work.sector_multiples for work in case.workloads):
        return []
    return [
        target
        for target in case.targets
        if any(is_misaligned(factor, level, target.logical_block_bytes) for level in case.of(factor))
    ]


def _sectors(case: Case, factor: str) -> str:
    """A file system may use the page cache for I/O that is not aligned, as btrfs and f2fs do."""
    targets = _misaligned(case, factor)
    named = ", ".join(f"{each.shown} ({bytes_binary(each.logical_block_bytes)})" for each in targets)
    fails = "fails" if TargetKind.BLOCK in case.kinds else "may fail"
    return f"direct I/O {fails} unless it is a multiple of the sectors of {named}"


def _priority_unused(case: Case) -> bool:
    """Priorities of class rt can also reach SATA drives as NCQ priorities, without a scheduler."""
    schedulers = case.of("scheduler")
    real_time = any(str(level).startswith("rt") for level in case.of("ionice"))
    return bool(schedulers) and schedulers <= {"none", "kyber"} and not real_time


def _other_scheduler(case: Case, factor: str) -> bool:
    return "scheduler" in case.levels and scheduler_needed(factor) not in case.of("scheduler")


def _no_depth_to_replace(case: Case) -> bool:
    engines = {IoEngine(str(level)) for level in case.of("ioengine")}
    return all(engine.asynchronous for engine in engines) or case.of("iodepth") == {1}


def _reads_after_purge(case: Case) -> bool:
    purges = bool(case.of(PURGE) - {"none"})
    fills = any(writes(steps_before(str(level)).each.steps) for level in case.of(BEFORE))
    return purges and not fills and not case.in_directories and any(work.reads for work in case.workloads)


_SYSFS = "Linux, Documentation/ABI/stable/sysfs-block"
_VM = "Linux, Documentation/admin-guide/sysctl/vm.rst"
_DIRTY = tuple(name for name in FACTORS if name.startswith("vm.dirty_"))
_TUNABLES = tuple(name for name in FACTORS if scheduler_needed(name))
_FSYNC = "fio(1): `fsync` and `end_fsync` sync a file that is written; open(2): O_SYNC and O_DSYNC are for writes"

RULES = (
    Rule(
        ALIGNED,
        lambda case, factor: bool(_misaligned(case, factor)),
        _sectors,
        "open(2), O_DIRECT; Linux, block/fops.c, blkdev_dio_invalid: EINVAL",
        claim="has levels that are not whole sectors",
    ),
    Rule(
        ("read_ahead_kb", "read_ahead_sectors"),
        lambda case, _: case.only_direct,
        "it applies only to reads through the page cache, and all I/O here is direct",
        "Linux, mm/readahead.c: read-ahead brings content into the page cache; open(2): O_DIRECT does not use it",
    ),
    Rule(
        _DIRTY,
        lambda case, _: case.writes_no_dirty_pages,
        "only buffered writes leave dirty pages in memory, and there are no buffered writes",
        f"{_VM}: dirty_* define when dirty pages of the page cache are written back",
    ),
    Rule(
        ("wbt_lat_usec",),
        lambda case, _: case.writes_no_dirty_pages,
        "the kernel throttles only buffered writes and discards, and there are no such requests",
        "Linux, block/blk-wbt.c, wbt_should_throttle: direct writes and reads are not throttled",
    ),
    Rule(
        ("write_cache",),
        lambda case, _: case.only_reads,
        "it controls whether the kernel sends flushes after writes, and there are only reads",
        f"{_SYSFS}: write_cache; Documentation/block/writeback_cache_control.rst",
    ),
    Rule(
        ("drive_write_cache", "nvme.write_cache"),
        lambda case, _: case.only_reads,
        "it caches only writes, and there are only reads",
        "ACS-4 and SBC-4: volatile write cache (WCE); NVM Express base specification: feature 06h",
    ),
    Rule(
        ("sync", "fsync_every", "end_fsync", "fsync_on_close"),
        lambda case, _: case.only_reads,
        "it applies only to written data, and there are only reads",
        _FSYNC,
    ),
    Rule(
        ("buffers",),
        lambda case, _: case.only_reads and not case.in_directories,
        "it is the content of written data, and there are only reads",
        "fio(1), Buffers and memory; worker.recipes.steps: only files in directories are prefilled",
    ),
    Rule(
        tuple(DIRECTORIES_ONLY),
        lambda case, _: not case.in_directories,
        "it applies only to files that Sweetspot creates in a directory",
        "worker.recipes.steps: devices and files of other owners are never prefilled",
    ),
    Rule(
        ("drop_caches",),
        lambda case, _: case.only_direct and case.kinds == {TargetKind.BLOCK},
        "direct I/O on a block device uses neither the page cache nor the caches of a file system",
        f"{_VM}: drop_caches frees page cache, dentries and inodes; open(2): O_DIRECT",
    ),
    Rule(
        ("scheduler",),
        lambda case, _: bool(_no_scheduler(case)),
        lambda case, _: f"{', '.join(_no_scheduler(case))} offers only the scheduler none",
        "Linux, Documentation/block/switching-sched.rst: queue/scheduler lists the schedulers that can be set",
    ),
    Rule(
        _TUNABLES,
        _other_scheduler,
        lambda _, factor: f"the scheduler {scheduler_needed(factor)} is not among the levels of I/O scheduler",
        "Linux, Documentation/block/switching-sched.rst: queue/iosched has the files of the active scheduler",
    ),
    Rule(
        ("ionice",),
        lambda case, _: _priority_unused(case),
        "only bfq and mq-deadline use priorities, and neither is among the levels of I/O scheduler",
        "Linux, Documentation/block/ioprio.rst; include/uapi/linux/ioprio.h for class rt",
    ),
    Rule(
        ("sync_depth",),
        lambda case, _: _no_depth_to_replace(case),
        "it applies only to I/O engines without a queue (psync) at depths above 1, and there is no such point",
        "docs/understanding/decisions/0005-depth-without-a-queue.md",
    ),
    Rule(
        ("io_poll",),
        lambda case, _: "hipri" in case.levels and case.of("hipri") == {False},
        "it applies only to I/O with `hipri`, which is off",
        f"{_SYSFS}: io_poll; fio(1): hipri sets RWF_HIPRI",
    ),
    Rule(
        (PURGE,),
        lambda case, _: _reads_after_purge(case),
        "a purged drive can answer reads without reading its flash. Fill the drive before a part that reads it",
        "NVM Express NVM command set specification, deallocated logical blocks; ACS-4, deterministic read after trim",
        claim="leaves nothing to read",
    ),
)
