"""Take a layout down to blank drives, even if a crash left it incomplete; replace a member of its array.

Only parts with the layout's key are removed. A drive with other content is used by someone else: the worker does not
change it, and reports it.
"""

import contextlib
import logging
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec

from worker import temporary
from worker.contract.layouts import Layout
from worker.guard import refuse_quarantined
from worker.guard.lease import open_when_free
from worker.guard.refusal import GuardRefused
from worker.journal import Journal, LayoutDrive, LayoutRecord
from worker.kernel import sysfs, usage
from worker.kernel.targets import LayoutArray
from worker.layouts import steps, virtual_drives
from worker.layouts.steps import LayoutFailed
from worker.process.run import ask
from worker.recipes.layouts import commands
from worker.recipes.layouts.commands import Drive, Names, Part, Removal, Step, tear_down_steps
from worker.recipes.layouts.text import LayoutError, parse

log = logging.getLogger(__name__)

UNMOUNT_LIMIT_S = 10.0


def take_down(record: LayoutRecord, *, state: Path, journal: Journal) -> None:
    """Raises LayoutFailed; the layout then stays in the journal.

    Codes: layout_gone, layout_foreign, layout_held, layout_refused, layout_not_understood.
    """
    try:
        layout = parse(record.line)
    except LayoutError as error:
        words = f"This version of the worker does not understand layout {record.key} (`{record.line}`): {error}."
        raise LayoutFailed("layout_not_understood", words) from error
    try:
        refuse_quarantined([drive.stable_id for drive in record.drives], state)
    except GuardRefused as error:
        raise LayoutFailed("layout_held", error.message) from error
    now = drives_now(layout, record)
    take_down_of = _TakeDown(layout, now.drives, Names(record.key, now.made), record, state)
    take_down_of.run()
    if record.mount_point:
        with contextlib.suppress(OSError):
            Path(record.mount_point).rmdir()
        temporary.drop_folders_in(record.mount_point, journal)
    journal.drop_layout(record.key)
    log.info("Layout %s was taken down. Its drives are blank.", record.key)


class DrivesNow(msgspec.Struct, frozen=True):
    """The current drives of a layout."""

    drives: tuple[Drive, ...]
    members: tuple[str, ...]  # kernel names of its drives, or of its existing virtual drives
    made: tuple[str, ...] = ()  # nodes of its virtual drives


def drives_now(layout: Layout, record: LayoutRecord) -> DrivesNow:
    """Raises LayoutFailed: layout_gone, or layout_foreign if a controller's drives are used by someone else."""
    if not virtual_drives.is_made(layout):
        drives = tuple(_drive(known) for known in record.drives)
        return DrivesNow(drives, tuple(sysfs.name_in(drive.path) for drive in drives))
    arrays = virtual_drives.arrays(layout, record)
    bays = tuple(
        Drive(f"/{array.adapter.name}/{array.controller.number}/{slot}", 0) for array in arrays for slot in array.slots
    )
    disks = tuple(array.disk for array in arrays)
    return DrivesNow(bays, tuple(filter(None, disks)), virtual_drives.nodes(disks, record.key))


def _drive(known: LayoutDrive) -> Drive:
    """Find the drive by its stable id, because a reboot may have changed its kernel name."""
    drive = sysfs.find_drive(known.stable_id, known.serial, sysfs.name_in(known.path))
    if drive is None:
        words = f"{known.stable_id} ({known.serial or 'no serial'})"
        raise LayoutFailed("layout_gone", f"The drive {words} is missing: connect it again.")
    return Drive(drive.path, drive.size_bytes)


class _TakeDown:
    """One pass from the file system down to the drives."""

    def __init__(
        self, layout: Layout, drives: tuple[Drive, ...], names: Names, record: LayoutRecord, state: Path
    ) -> None:
        self._layout = layout
        self._drives = drives
        self._names = names
        self._record = record
        self._state = state

    def run(self) -> None:
        removers: dict[Part, Callable[[Removal], None]] = {
            Part.MOUNT: self._unmount,
            Part.SIGNATURES: self._wipe,
            Part.GROUP: self._remove_group,
            Part.ARRAY: self._stop,
            Part.PARTITIONS: self._forget,
            Part.VIRTUAL_DRIVE: self._delete,
        }
        key, point = self._names.key, self._record.mount_point
        made = self._names.made
        for step in tear_down_steps(self._layout, self._drives, key=key, mount_point=point, made=made):
            removers[step.part](step)
        self._verify()

    def _unmount(self, step: Removal) -> None:
        until = time.monotonic() + UNMOUNT_LIMIT_S
        while os.path.ismount(step.of):
            try:
                self._do(step)
            except LayoutFailed as error:
                if time.monotonic() > until:
                    raise LayoutFailed("layout_held", error.message) from error
                time.sleep(0.2)

    def _wipe(self, step: Removal) -> None:
        if not Path(step.of).exists():
            return
        with steps.held_exclusively(step.of) as fd:  # before its content is read
            content = steps.read_content(step.of)
            if not steps.belongs_to_layout(content, self._names, step.of):
                raise LayoutFailed(
                    "layout_foreign",
                    f"{step.of} contains {content}, which is not part of layout {self._names.key}: someone else uses "
                    "it. The worker did not change it.",
                )
            if not content.blank:
                log.info("Layout %s: %s: %s", self._names.key, step.words, step.line)
                steps.wipe(step.of, fd, state=self._state)
        steps.wait_for_udev(state=self._state)

    def _remove_group(self, step: Removal) -> None:
        output = ask("vgs", "--noheadings", "--options", "vg_name")
        if step.of in output.out.split():
            self._do(step)

    def _stop(self, step: Removal) -> None:
        """Stop the array under its own name, or under the name that it got after a reboot."""
        for device in (step.of, *_arrays_called(step.of.rpartition("/")[2])):
            if Path(device).exists():
                self._do(msgspec.structs.replace(step, argv=(*step.argv[:-1], device)))
                return

    def _delete(self, step: Removal) -> None:
        log.info("Layout %s: %s", self._names.key, step.words)
        virtual_drives.delete(self._layout, self._record, step.of)

    def _forget(self, step: Removal) -> None:
        """Make the kernel read the partition table again after its removal."""
        if sysfs.partitions(sysfs.name_in(step.of)):
            self._do(step)

    def _do(self, step: Removal) -> None:
        log.info("Layout %s: %s: %s", self._names.key, step.words, step.line)
        steps.run(step, state=self._state, drives=tuple(drive.stable_id for drive in self._record.drives))
        steps.wait_for_udev(state=self._state)

    def _verify(self) -> None:
        """Check that the drives are blank and unused."""
        if virtual_drives.is_made(self._layout):
            virtual_drives.verify_free(self._record)
            return
        for drive in self._drives:
            name = sysfs.name_in(drive.path)
            content = steps.read_content(drive.path)
            if not content.blank:
                raise LayoutFailed("layout_refused", f"{drive.path} still contains {content} after it was wiped.")
            if partitions := sysfs.partitions(name):
                raise LayoutFailed("layout_held", f"{drive.path} still has the partitions {', '.join(partitions)}.")
            if holders := sysfs.holders(name):
                raise LayoutFailed("layout_held", f"{drive.path} is still held by {', '.join(holders)}.")
            if usage.read_usage().mounts_of(name):
                raise LayoutFailed("layout_held", f"{drive.path} is still mounted.")
            try:
                os.close(open_when_free(drive.path, os.O_RDONLY))
            except GuardRefused as error:
                raise LayoutFailed("layout_held", error.message) from error


def _arrays_called(name: str) -> Iterator[str]:
    for device in sysfs.names():
        if device.startswith("md"):
            output = ask("mdadm", "--detail", "--export", f"/dev/{device}")
            if array_name(output.out) == name:
                yield f"/dev/{device}"


def array_name(export: str) -> str:
    """The name in md's superblocks, without the host's name before it: of `mdadm --detail --export`."""
    known = dict(line.partition("=")[::2] for line in export.splitlines())
    return known.get("MD_NAME", "").rpartition(":")[2]


# Replace the last member of a layout's md array, so that the kernel rebuilds it.
#
#     journal: altered ─► fail ─► remove ─► erase its superblock, held exclusively ─► add
#
# The journal marks the layout as altered before the first command, so no later trial uses it
# (`layouts.existing_layout`). A layout is never repaired: the next trial that needs it builds it again.

REMOVE_LIMIT_S = 30.0  # a failed member stays busy until its I/O has ended
_AGAIN_S = 0.2


def array_of(record: LayoutRecord, *, state: Path, journal: Journal) -> LayoutArray:
    """The only array of a layout that was built."""
    last = _LastMember(record, state, journal)
    return LayoutArray(name=Path(last.array).resolve().name, remove_member=last.remove, add_member=last.add)


class _LastMember:
    def __init__(self, record: LayoutRecord, state: Path, journal: Journal) -> None:
        self._record = record
        self._state = state
        self._journal = journal
        self._names = Names(record.key)
        self.array = self._names.md(0)

    def remove(self) -> None:
        """Fail and remove the member, and erase it. Raises LayoutFailed."""
        path = self._path()
        self._refuse_foreign(path)
        self._journal.save_layout(msgspec.structs.replace(self._record, altered=True))
        self._run(f"fail {path}", "--fail", path)
        self._remove(path)
        with steps.held_exclusively(path) as fd:
            self._refuse_foreign(path)
            steps.wipe(path, fd, state=self._state)
        steps.wait_for_udev(state=self._state)

    def add(self) -> None:
        """Add the erased member again: the kernel rebuilds it. Raises LayoutFailed."""
        path = self._path()
        content = steps.read_content(path)
        if not content.blank:
            raise LayoutFailed("layout_foreign", f"{path} was erased, but now contains {content}. It was not changed.")
        self._run(f"add {path}", "--add", path)

    def _path(self) -> str:
        """The drive or partition, found by the drive's stable id and serial."""
        layout = parse(self._record.line)
        (members,) = commands.members(layout, drives_now(layout, self._record).drives)
        return members[-1]

    def _refuse_foreign(self, path: str) -> None:
        content = steps.read_content(path)
        if content.blank or not steps.belongs_to_layout(content, self._names, path):
            words = f"{path} is not a member of the array of layout {self._record.key}. It was not changed."
            raise LayoutFailed("layout_foreign", words)

    def _remove(self, path: str) -> None:
        until = time.monotonic() + REMOVE_LIMIT_S
        while True:
            try:
                return self._run(f"remove {path}", "--remove", path)
            except LayoutFailed:
                members = sysfs.slaves(Path(self.array).resolve().name)
                if time.monotonic() > until or sysfs.name_in(path) not in members:
                    raise
                time.sleep(_AGAIN_S)

    def _run(self, words: str, option: str, path: str) -> None:
        step = Step(words, ("mdadm", "--manage", self.array, option, path))
        steps.run(step, state=self._state, drives=tuple(drive.stable_id for drive in self._record.drives))
