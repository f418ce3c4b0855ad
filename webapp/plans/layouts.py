"""Applies a layout to the drives of a pool: the resulting target, its capacity, and the commands. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from worker.contract.layouts import FileSystem, Layout
from worker.contract.workload import TargetKind
from worker.recipes.layouts import geometry
from worker.recipes.layouts.commands import Drive, Removal, Step, build_steps, tear_down_steps
from worker.recipes.layouts.geometry import Alignment, Verdict, capacity_share, whole_width_bytes
from worker.recipes.layouts.text import write

# The key in displayed commands. Each run has a different key.
KEY, MOUNT_POINT = "KEY", "/var/lib/sweetspot-worker/layouts/KEY"


@dataclass(frozen=True)
class DriveFacts:
    """A drive of a pool. `size_bytes` 0 is unknown; `path` of a slot is its name in the controller's tool."""

    name: str  # for people: host/target
    path: str
    size_bytes: int
    kind: TargetKind = TargetKind.BLOCK
    model: str = ""
    destroy: bool = True
    purges: Mapping[str, str] = field(default_factory=dict)  # as TargetFacts has them


def made_kind(kind: TargetKind, layout: Layout | None) -> TargetKind:
    """The kind of target that a workload uses: a layout turns a pool's drives into a directory or a device."""
    if layout is None:
        return kind
    return TargetKind.BLOCK if layout.file_system is FileSystem.NONE else TargetKind.DIRECTORY


def usable_bytes(layout: Layout, drives: Sequence[DriveFacts]) -> int:
    """The maximum capacity, without the file system's overhead; the smallest drive counts. 0 if a size is unknown."""
    used = drives[: layout.drives]
    smallest = min((drive.size_bytes for drive in used), default=0)
    return round(smallest * len(used) * capacity_share(layout))


def member_bytes(layout: Layout, drives: Sequence[DriveFacts]) -> int:
    """The capacity of one member of its arrays; the smallest drive counts. 0 if a size is unknown."""
    smallest = min((drive.size_bytes for drive in drives[: layout.drives]), default=0)
    return round(smallest * layout.share_percent / 100)


@dataclass(frozen=True)
class LayoutPlan:
    """One layout on one pool, with the commands that build and remove it."""

    line: str
    pool: str
    drives: tuple[DriveFacts, ...]
    usable_bytes: int
    width_bytes: int | None  # data stripe width of the whole layout
    alignment: tuple[Alignment, ...]
    build: tuple[Step, ...]
    take_down: tuple[Removal, ...]
    purge: str = ""  # contract.purge.PurgeMethod: before each trial, remove the layout, purge, rebuild

    @property
    def models(self) -> tuple[str, ...]:
        """The models of its drives: with several models, a sweep over the number of drives also compares models."""
        return tuple(dict.fromkeys(drive.model or "unknown model" for drive in self.drives))

    @property
    def by_controller(self) -> bool:
        """Whether a RAID controller's tool builds it. No such tool has been tested on real hardware."""
        return any(step.by_controller for step in self.build)

    @property
    def misaligned(self) -> bool:
        return any(layer.verdict is Verdict.MISALIGNED for layer in self.alignment)


def layout_plan(layout: Layout, pool: str, drives: Sequence[DriveFacts], purge: str = "") -> LayoutPlan:
    """`drives` are the pool's drives, at least as many as the layout uses."""
    used = tuple(drives[: layout.drives])
    given = tuple(Drive(drive.path, drive.size_bytes) for drive in used)
    return LayoutPlan(
        line=write(layout),
        pool=pool,
        drives=used,
        usable_bytes=usable_bytes(layout, used),
        width_bytes=whole_width_bytes(layout),
        alignment=geometry.alignment(layout),
        build=build_steps(layout, given, key=KEY, mount_point=MOUNT_POINT),
        take_down=tear_down_steps(layout, given, key=KEY, mount_point=MOUNT_POINT),
        purge=purge,
    )
