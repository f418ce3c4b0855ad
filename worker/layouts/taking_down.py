"""From a layout back to blank drives, whatever of it is there: also half of one that a crash left.

Only what bears the layout's key is touched. A drive that holds anything else was taken into use by somebody
since: it is left alone, and said so.
"""

import contextlib
import errno
import logging
import os
import time
from collections.abc import Iterator
from pathlib import Path

from worker.contract.layouts import FileSystem, Layout, Raid, Stripe
from worker.inventory import sysfs, usage
from worker.journal import Journal, LayoutDrive, LayoutRecord
from worker.layouts import ours, steps
from worker.layouts.steps import LayoutFailed
from worker.recipes import layouts
from worker.recipes.layouts import Drive, Names, Step
from worker.settings.subjects import find
from worker.tools import ask

log = logging.getLogger(__name__)

UNMOUNT_LIMIT_S = 10.0


def take_down(record: LayoutRecord, *, state: Path, journal: Journal) -> None:
    """Raises LayoutFailed (layout_gone, layout_foreign, layout_held, layout_refused); then the journal keeps it."""
    layout = layouts.parse(record.line)
    drives = tuple(_drive(known) for known in record.drives)
    demolition = _Demolition(layout, drives, Names(record.key), record, state)
    demolition.run()
    if record.mount_point:
        with contextlib.suppress(OSError):
            Path(record.mount_point).rmdir()
    journal.drop_layout(record.key)
    log.info("Layout %s is taken down; its drives are blank.", record.key)


def take_down_all(*, state: Path, journal: Journal, run: str | None = None) -> list[tuple[LayoutRecord, str]]:
    """Of one run, or all; what stays, with the reason."""
    left = []
    for record in journal.layouts(run):
        try:
            take_down(record, state=state, journal=journal)
        except LayoutFailed as error:
            log.error("Layout %s stays: %s", record.key, error)
            left.append((record, error.message))
    return left


def _drive(known: LayoutDrive) -> Drive:
    """Where the drive is now: its kernel name may be another since a reboot."""
    name = find(known.stable_id, known.path.rpartition("/")[2])
    if name is None or sysfs.serial(name) != known.serial:
        words = f"{known.stable_id} ({known.serial or 'no serial'})"
        raise LayoutFailed("layout_gone", f"{words} is not there: plug it in again.")
    return Drive(sysfs.device_path(name), sysfs.size_bytes(name))


class _Demolition:
    """One pass from the top to the drives."""

    def __init__(
        self, layout: Layout, drives: tuple[Drive, ...], names: Names, record: LayoutRecord, state: Path
    ) -> None:
        self._layout = layout
        self._drives = drives
        self._names = names
        self._record = record
        self._state = state

    def run(self) -> None:
        legs = layouts.leg_paths(self._layout, self._drives, self._names)
        self._unmount()
        if self._layout.stripe is not Stripe.NONE:
            self._wipe(layouts.top_path(self._layout, self._drives, self._names))
        self._remove_group()
        self._stop(self._names.md_stripe, self._layout.stripe is Stripe.MD)
        for number, leg in enumerate(legs):
            self._wipe(leg)
            self._stop(self._names.md(number), self._layout.raid is not Raid.NONE)
        for path in self._parts():
            self._wipe(path)
        self._forget_partitions()
        self._verify()

    def _parts(self) -> Iterator[str]:
        """Partitions before their drives."""
        for leg in layouts.members(self._layout, self._drives):
            yield from leg
        yield from (drive.path for drive in self._drives)

    def _unmount(self) -> None:
        if self._layout.file_system is FileSystem.NONE:
            return
        until = time.monotonic() + UNMOUNT_LIMIT_S
        while os.path.ismount(self._record.mount_point):
            try:
                self._step("unmount", "umount", self._record.mount_point)
            except LayoutFailed as error:
                if time.monotonic() > until:
                    raise LayoutFailed("layout_held", error.message) from error
                time.sleep(0.2)

    def _remove_group(self) -> None:
        if self._layout.stripe is Stripe.LVM and self._group_exists():
            self._step("remove the volume group", "vgremove", "--yes", "--force", self._names.group)

    def _group_exists(self) -> bool:
        said = ask("vgs", "--noheadings", "--options", "vg_name")
        return self._names.group in said.out.split()

    def _stop(self, path: str, used: bool) -> None:
        """Under its own name, or under the one it was found by after a reboot."""
        if not used:
            return
        name = path.rpartition("/")[2]
        for device in (path, *_arrays_called(name)):
            if Path(device).exists():
                self._step(f"stop {name}", "mdadm", "--stop", device)
                return

    def _wipe(self, path: str) -> None:
        if not Path(path).exists():
            return
        content = ours.look(path)
        if not ours.is_ours(content, self._names, path):
            raise LayoutFailed(
                "layout_foreign",
                f"{path} holds {content}, which layout {self._names.key} did not make: somebody has taken it into "
                "use. It is left as it is.",
            )
        if not content.blank:
            self._step(f"wipe {path}", "wipefs", "--all", "--quiet", path)

    def _step(self, words: str, *argv: str) -> None:
        log.info("Layout %s: %s: %s", self._names.key, words, " ".join(argv))
        steps.run(Step(words, argv), state=self._state, key=self._names.key)
        steps.settle(state=self._state, key=self._names.key)

    def _forget_partitions(self) -> None:
        """Their table is gone; the kernel may not have looked."""
        for drive in self._drives:
            if sysfs.partitions(drive.path.rpartition("/")[2]):
                self._step(f"forget the partitions of {drive.path}", "partx", "--delete", drive.path)

    def _verify(self) -> None:
        """Blank, and held by nobody: what a drive must be before it is forgotten."""
        for drive in self._drives:
            name = drive.path.rpartition("/")[2]
            content = ours.look(drive.path)
            if not content.blank:
                raise LayoutFailed("layout_refused", f"{drive.path} still holds {content} after it was wiped.")
            if partitions := sysfs.partitions(name):
                raise LayoutFailed("layout_held", f"{drive.path} still has {', '.join(partitions)}.")
            if holders := sysfs.holders(name):
                raise LayoutFailed("layout_held", f"{drive.path} is still held by {', '.join(holders)}.")
            if usage.look().mounts_of(name):
                raise LayoutFailed("layout_held", f"{drive.path} is still mounted.")
            _refuse_busy(drive.path)


def _arrays_called(name: str) -> Iterator[str]:
    for device in sysfs.names():
        if device.startswith("md"):
            said = ask("mdadm", "--detail", "--export", f"/dev/{device}")
            if f"MD_NAME={name}" in said.out or f":{name}\n" in said.out:
                yield f"/dev/{device}"


def _refuse_busy(path: str) -> None:
    try:
        os.close(os.open(path, os.O_RDONLY | os.O_EXCL | os.O_CLOEXEC))
    except OSError as error:
        if error.errno == errno.EBUSY:
            raise LayoutFailed("layout_held", f"{path} is still in use by something.") from error
        raise LayoutFailed("layout_gone", f"{path} cannot be opened: {error.strerror}.") from error
