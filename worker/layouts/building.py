"""Build a layout: from unused drives to a device or a mounted directory."""

import logging
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from worker import guard
from worker.contract.layouts import FileSystem, Layout
from worker.inventory import sysfs
from worker.journal import Journal, LayoutDrive, LayoutRecord
from worker.layouts import steps, virtual_drives
from worker.layouts.steps import LayoutFailed
from worker.layouts.taking_down import is_busy, take_down
from worker.policy import PolicyEntry
from worker.recipes import layouts
from worker.recipes.layouts import Drive, Names, Step

log = logging.getLogger(__name__)


class DriveTaken(LayoutFailed):
    """Another program started to use a drive after the guard's check. Nothing was built, so nothing is undone."""


class Built(msgspec.Struct, frozen=True):
    """A built layout. Trials use the directory `mount_point`, or `device` if the layout is raw."""

    record: LayoutRecord
    device: str  # device node without links; for btrfs on several drives the first one
    mount_point: str  # "" for a raw layout
    members: tuple[str, ...]  # kernel names of the drives, or of a controller's virtual drives


def build(
    layout: Layout,
    entries: Sequence[PolicyEntry],
    armed_serials: tuple[str, ...],
    *,
    key: str,
    run: str,
    state: Path,
    journal: Journal,
    go_on: Callable[[], None] = lambda: None,
) -> Built:
    """Build the layout on the policy's drives, in their order. After a failure, take everything down again.

    `go_on` is called before each command; it may raise to stop.

    Raises GuardRefused for a drive that may not be used, LayoutFailed for a command that fails.
    """
    if len(entries) != layout.drives:
        raise LayoutFailed("layout_refused", f"The layout needs {layout.drives} drives, but {len(entries)} were given.")
    claimed = guard.claim_drives(entries, armed_serials, virtual=virtual_drives.is_made(layout))
    mount_point = _mount_point(layout, key, state)
    record = LayoutRecord(
        key=key,
        run=run,
        line=layouts.write(layout),
        drives=tuple(_noted(entry, found) for entry, found in zip(entries, claimed, strict=True)),
        mount_point=mount_point,
    )
    journal.save_layout(record)
    try:
        drives = tuple(Drive(c.path, c.size_bytes) for c in claimed)
        made: tuple[str, ...] = ()
        members = tuple(c.name for c in claimed)
        if virtual_drives.is_made(layout):
            record, members = virtual_drives.make(layout, drives, record, journal=journal, go_on=go_on)
            made = virtual_drives.nodes(members, key)
        device = _run(layout, drives, made, record, state, go_on)
        return Built(record, device, mount_point, members)
    except DriveTaken:
        _forget(record, journal)
        raise
    except BaseException:
        _undo(key, state, journal)
        raise


def _noted(entry: PolicyEntry, found: guard.Claim) -> LayoutDrive:
    """Record a slot by its own path, because the controller's tool may rename it."""
    if not found.name:
        return LayoutDrive(entry.identity, entry.serial, entry.path)
    return LayoutDrive(sysfs.stable_id(found.name), sysfs.serial(found.name), found.path)


def _mount_point(layout: Layout, key: str, state: Path) -> str:
    if layout.file_system is FileSystem.NONE:
        return ""
    point = state / "layouts" / key
    point.mkdir(mode=0o700, parents=True, exist_ok=True)
    return str(point)


def _run(
    layout: Layout,
    drives: tuple[Drive, ...],
    made: tuple[str, ...],
    record: LayoutRecord,
    state: Path,
    go_on: Callable[[], None],
) -> str:
    for step in layouts.build_steps(layout, drives, key=record.key, mount_point=record.mount_point, made=made):
        if step.by_controller:
            continue
        go_on()
        log.info("Layout %s: %s: %s", record.key, step.words, step.line)
        try:
            steps.run(step, state=state)
        except LayoutFailed as error:
            _refuse_taken(step, error, made)
            raise
        steps.wait_for_udev(state=state)
        if step.makes:
            steps.await_node(step.makes)
    return steps.await_node(layouts.top_path(layout, drives, Names(record.key, made)))


def _refuse_taken(step: Step, error: LayoutFailed, made: tuple[str, ...]) -> None:
    """Raises DriveTaken if a drive could not be wiped because it is in use. `made`: nodes of virtual drives."""
    if step.wipes and not made and is_busy(step.wipes):
        words = (
            f"{step.wipes} was mounted or opened by another program after the check. Nothing on it was "
            f"changed. Stop using the drive, then start again. {error.message}"
        )
        raise DriveTaken("layout_held", words) from error


def _forget(record: LayoutRecord, journal: Journal) -> None:
    if record.mount_point:
        Path(record.mount_point).rmdir()
    journal.drop_layout(record.key)


def _undo(key: str, state: Path, journal: Journal) -> None:
    """Take the layout down. If that fails, it stays in the journal for the next start."""
    try:
        for record in journal.layouts():
            if record.key == key:
                take_down(record, state=state, journal=journal)
    except LayoutFailed as error:
        log.error("Layout %s could not be taken down: %s", key, error)
