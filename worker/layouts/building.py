"""Build a layout: from unused drives to a device or a mounted directory."""

import logging
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path

import msgspec

from worker import guard
from worker.contract.layouts import FileSystem, Layout
from worker.guard import Lease
from worker.journal import Journal, LayoutDrive, LayoutRecord
from worker.layouts import steps, virtual_drives, wiping
from worker.layouts.steps import LayoutFailed
from worker.layouts.taking_down import take_down
from worker.policy import Policy, PolicyEntry
from worker.recipes import layouts
from worker.recipes.layouts import Drive, Names, Step

log = logging.getLogger(__name__)


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
    allowed: Policy,
    key: str,
    run: str,
    state: Path,
    journal: Journal,
    go_on: Callable[[], None] = lambda: None,
    stop_if_asked: Callable[[], None] = lambda: None,
) -> Built:
    """Build the layout on the policy's drives, in their order. After a failure, take everything down again.

    `go_on` is called before each command, `stop_if_asked` during commands; each may raise to stop.

    Raises GuardRefused for a drive that may not be used, LayoutFailed for a command that fails.
    """
    if len(entries) != layout.drives:
        raise LayoutFailed("layout_refused", f"The layout needs {layout.drives} drives, but {len(entries)} were given.")
    record: LayoutRecord | None = None
    try:
        with guard.lease_drives(entries, allowed, armed_serials, virtual=virtual_drives.is_made(layout)) as leases:
            guard.refuse_quarantined([lease.stable_id for lease in leases], state)
            record = LayoutRecord(
                key=key,
                run=run,
                line=layouts.write(layout),
                drives=tuple(_noted(entry, lease) for entry, lease in zip(entries, leases, strict=True)),
                mount_point=_mount_point(layout, key, state),
            )
            journal.save_layout(record)
            drives = tuple(Drive(lease.path, lease.size_bytes) for lease in leases)
            made: tuple[str, ...] = ()
            members = tuple(lease.name for lease in leases)
            if virtual_drives.is_made(layout):
                record, members = virtual_drives.make(layout, drives, record, journal=journal, go_on=go_on)
                made = virtual_drives.nodes(members, key)
            device = _run(layout, leases, made, record, state, go_on, stop_if_asked)
            return Built(record, device, record.mount_point, members)
    except BaseException:
        if record is not None:
            _undo(key, state, journal)
        raise


def _noted(entry: PolicyEntry, lease: Lease) -> LayoutDrive:
    """Record a slot by its own path, because the controller's tool may rename it."""
    if not lease.name:
        return LayoutDrive(entry.identity, entry.serial, entry.path)
    return LayoutDrive(lease.stable_id, lease.serial, lease.path)


def _mount_point(layout: Layout, key: str, state: Path) -> str:
    if layout.file_system is FileSystem.NONE:
        return ""
    point = state / "layouts" / key
    point.mkdir(mode=0o700, parents=True, exist_ok=True)
    return str(point)


def _run(
    layout: Layout,
    leases: tuple[Lease, ...],
    made: tuple[str, ...],
    record: LayoutRecord,
    state: Path,
    go_on: Callable[[], None],
    stop_if_asked: Callable[[], None],
) -> str:
    drives = tuple(Drive(lease.path, lease.size_bytes) for lease in leases)
    for step in layouts.build_steps(layout, drives, key=record.key, mount_point=record.mount_point, made=made):
        if step.by_controller:
            continue
        go_on()
        log.info("Layout %s: %s: %s", record.key, step.words, step.line)
        if step.wipes:
            _wipe(step.wipes, leases, state)
        else:
            _run_step(step, leases, state, stop_if_asked)
        steps.wait_for_udev(state=state)
        if step.makes:
            steps.await_node(step.makes)
    return steps.await_node(layouts.top_path(layout, drives, Names(record.key, made)))


def _wipe(path: str, leases: tuple[Lease, ...], state: Path) -> None:
    """A drive is wiped through its lease; a new virtual drive has none."""
    held = next((lease for lease in leases if lease.path == path), None)
    if held is not None:
        wiping.wipe(path, held.fd, state=state)
        return
    with wiping.held_exclusively(path) as fd:
        wiping.wipe(path, fd, state=state)


def _run_step(step: Step, leases: tuple[Lease, ...], state: Path, stop_if_asked: Callable[[], None]) -> None:
    """Hand over the drives that the command opens; all others stay held meanwhile."""
    with ExitStack() as handed_over:
        for lease in leases:
            if lease.name and (step.opens_all or not {lease.path, layouts.part_path(lease.path)}.isdisjoint(step.argv)):
                handed_over.enter_context(lease.handed_over())
        drives = tuple(lease.stable_id for lease in leases)
        steps.run(step, state=state, drives=drives, stop_if_asked=stop_if_asked)


def _undo(key: str, state: Path, journal: Journal) -> None:
    """Take the layout down. If that fails, it stays in the journal for the next start."""
    try:
        for record in journal.layouts():
            if record.key == key:
                take_down(record, state=state, journal=journal)
    except LayoutFailed as error:
        log.error("Layout %s could not be taken down: %s", key, error)
