"""A lease: a drive that the guard has checked and keeps open, from admission to the end of the work.

    admitted ─► held with O_EXCL ─► handed over to a program ─► held again, or held by what the program built ─► ended
                     └────────────────────────────────────────────────────────────────────────────────────► ended

While a drive is held, no other program can mount it, use it as swap, build on it or open it exclusively, and a drive
that is plugged in cannot get its name. Its other kernel names (`twins`) are held too. mdadm, LVM and mkfs open a drive
exclusively themselves: the worker hands each drive over for the one command that needs it.

A lease does not keep others from opening the drive without O_EXCL, from building a loop device on it, from exporting
it, or from changing its size. `recheck` finds these; call it before each step that writes.
"""

import errno
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Self

import msgspec

from worker.guard import loop_files, openers
from worker.guard.content import signatures_on
from worker.guard.loop_files import Numbers
from worker.guard.refusal import GuardRefused
from worker.kernel import sysfs, usage
from worker.kernel.sysfs import Device


class _Shape(msgspec.Struct, frozen=True):
    """What must not change while a drive is held, although others could change it."""

    start: int | None  # of a partition, in sectors
    size_bytes: int
    below: tuple[str, ...]  # kernel names under a dm device; arrays lose and get members
    loop: tuple[int, ...]  # device, inode, offset and size limit of a loop device's file


def _shape(device: Device) -> _Shape:
    used = loop_files.loop_file(device.name)
    loop = (used.file.device, used.file.inode, used.offset, used.size_limit) if used else ()
    below = sysfs.below(device.name) if device.kind == "dm" else ()
    return _Shape(device.start, device.size_bytes, below, loop)


def block_numbers(name: str) -> set[Numbers]:
    """Of the device, and of everything below and above it."""
    names = {name, *sysfs.below(name), *sysfs.above(name)}
    pairs = (sysfs.major_minor(each).partition(":") for each in names)
    return {(int(major), int(minor)) for major, _, minor in pairs if minor}


class Lease:
    """A context manager. Not thread-safe. The drive in a controller's slot has no kernel name and no descriptor."""

    def __init__(
        self, path: str, *, name: str = "", twins: tuple[str, ...] = (), size_bytes: int = 0, writes: bool = True,
        exclusive: bool = True,
    ) -> None:  # fmt: skip
        self.path = path  # device node without links; for a slot, its bay
        self.name = name  # kernel name; "" for a slot
        self.twins = twins  # other kernel names of the same drive
        device = sysfs.read_device(name) if name else None
        self.size_bytes = device.size_bytes if device else size_bytes
        self.numbers = device.numbers if device else ""  # major:minor
        self.stable_id = device.stable_id if device else ""
        self.serial = device.serial if device else ""
        self._shape = _shape(device) if device else None
        self.exclusive = exclusive
        self._writes = writes
        self._flags = (
            (os.O_RDWR if writes else os.O_RDONLY) | os.O_CLOEXEC | os.O_NONBLOCK | (os.O_EXCL if exclusive else 0)
        )
        self._descriptors: list[int] = []  # of the drive, then of its twins

    @property
    def fd(self) -> int:
        """Raises ValueError while the drive is not held."""
        if not self._descriptors:
            raise ValueError(f"{self.path} is not held.")
        return self._descriptors[0]

    def __enter__(self) -> Self:
        if self.name:
            self._open_in_time()
        return self

    def __exit__(self, *_: object) -> None:
        self._close()

    @contextmanager
    def handed_over(self) -> Iterator[None]:
        """Close the drive for a program that opens it exclusively; then hold it again, unless it was built on.

        Raises GuardRefused if another program has opened it, or another device has its name.
        """
        self.recheck()
        self._close()
        yield
        self._open_in_time(unless=self._is_built_on)

    def recheck(self) -> None:
        """Refuse a drive that was changed, or is used although it is held. Raises GuardRefused."""
        if not self._descriptors:
            return  # a slot, or a drive that was built on
        if _shape(self._same_drive()) != self._shape:
            raise GuardRefused(
                "guard_changed", f"{self.path} was changed while it was held: its size, start, file or members differ."
            )
        for name in (self.name, *self.twins):
            refuse_used_by_loop(name, strict=self._writes)

    def _is_built_on(self) -> bool:
        """An array, a volume or a mounted file system holds the drive or a partition of it."""
        names = (self.name, *sysfs.partitions(self.name))
        now, members = usage.read_usage(), usage.btrfs_members()
        return any(sysfs.holders(each) or now.mounts_of(each) or each in members for each in names)

    def _open_in_time(self, *, unless: Callable[[], bool] = lambda: False) -> None:
        """Wait for a busy drive. Ends without holding it if `unless` is true."""
        give_up_at = time.monotonic() + openers.BUSY_LIMIT_S
        while not unless():
            try:
                self._open()
            except _Busy as error:
                if time.monotonic() > give_up_at:
                    raise GuardRefused("guard_busy", _busy_words(str(error), (self.name, *self.twins))) from error
            else:
                return
            time.sleep(openers.POLL_S)

    def _open(self) -> None:
        try:
            self._descriptors = []
            self._descriptors.append(_opened(self.path, self._flags))
            for twin in self.twins:  # a snapshot may be read-only
                self._descriptors.append(_opened(sysfs.device_path(twin), self._flags & ~os.O_ACCMODE))
            self._same_drive()
        except BaseException:
            self._close()
            raise

    def _same_drive(self) -> Device:
        """What is read of it now. Raises GuardRefused for another drive."""
        facts = os.fstat(self._descriptors[0])
        numbers = sysfs.numbers_of(facts.st_rdev)
        if (numbers, sysfs.name_of(numbers)) != (self.numbers, self.name):
            raise GuardRefused("guard_path", f"{self.path} was replaced by another device during the check.")
        now = sysfs.read_device(self.name)
        if (now.stable_id, now.serial) != (self.stable_id, self.serial):
            raise GuardRefused(
                "guard_serial_changed", f"{self.path} is another drive now: {now.stable_id} {now.serial}."
            )
        return now

    def _close(self) -> None:
        descriptors, self._descriptors = self._descriptors, []
        for fd in descriptors:
            os.close(fd)


class _Busy(Exception):
    """The path of a device that another program has opened exclusively."""


def _opened(path: str, flags: int) -> int:
    try:
        return os.open(path, flags)
    except OSError as error:
        if error.errno == errno.EBUSY:
            raise _Busy(path) from error
        raise GuardRefused("guard_path", f"{path} cannot be opened: {error.strerror}.") from error


def refuse_used_by_loop(name: str, *, strict: bool = True) -> None:
    """Refuse a device that a loop device uses: it does not hold the device, and the kernel shows no holder.

    `strict`: also refuse it if a loop device cannot be asked.
    """
    if loops := loop_files.on_devices(block_numbers(name), strict=strict):
        raise GuardRefused("guard_held", f"{name} is used by {', '.join(loops)}: detach it first.")


def open_when_free(path: str, flags: int) -> int:
    """Open a device that no lease covers with O_EXCL. Waits while it is busy, at most BUSY_LIMIT_S.

    Raises GuardRefused, also if a loop device uses it.
    """
    give_up_at = time.monotonic() + openers.BUSY_LIMIT_S
    while True:
        try:
            fd = _opened(path, flags | os.O_EXCL | os.O_CLOEXEC)
        except _Busy as error:
            if time.monotonic() > give_up_at:
                raise GuardRefused("guard_busy", _busy_words(path, _names_at(path))) from error
            time.sleep(openers.POLL_S)
            continue
        try:
            for name in _names_at(path):
                refuse_used_by_loop(name)
        except BaseException:
            os.close(fd)
            raise
        return fd


def _names_at(path: str) -> tuple[str, ...]:
    """The kernel name of the device at the path."""
    numbers = os.stat(path).st_rdev  # noqa: PTH116 - only the number
    name = sysfs.name_of(sysfs.numbers_of(numbers))
    return (name,) if name else ()


# ---- who holds a busy drive


def _busy_words(path: str, names: tuple[str, ...]) -> str:
    """Refuse a drive that is still busy, and name all users that are visible."""
    try:
        users = ", ".join(dict.fromkeys(user for name in names for user in _users(name)))
    except (OSError, ValueError, GuardRefused):
        users = ""
    limit = f"for {openers.BUSY_LIMIT_S:g} s"
    if users:
        return f"{path} was busy {limit}. It is used by {users}. Stop that first."
    content = _content(names[0]) if names else ""
    return (
        f"{path} was busy {limit}: something has opened it exclusively, and no process shows it. {content}"
        "It may be a file system that is still being unmounted, a ZFS pool (zpool status), DRBD, another part of the "
        "kernel, or a program in a container."
    )


def _content(name: str) -> str:
    """The signatures on a device, which often tell who uses it, as a sentence.

    A twin is not read: a multipath device without paths would never answer.
    """
    try:
        types = dict.fromkeys(each.type for each in signatures_on(name))
    except OSError:
        return ""
    return f"It contains {', '.join(types)}. " if types else ""


def _users(name: str) -> Iterator[str]:
    related = (name, *sysfs.below(name), *sysfs.above(name))
    now, numbers = usage.read_usage(everywhere=True), block_numbers(name)
    for each in related:
        yield from (f"a mount on {mount.shown}" for mount in now.mounts_of(each))
        if each in now.swaps:
            yield "swap"
    for each in dict.fromkeys((name, sysfs.whole(name), *sysfs.partitions(name))):
        yield from sysfs.holders(each)
        yield from usage.kernel_users(each)
    yield from openers.exports({("block", *pair) for pair in numbers})
    yield from loop_files.on_devices(numbers, strict=False)
    yield from openers.openers({("block", *pair) for pair in numbers}, strict=False)
    yield from (f"files of {process} on it" for process in openers.openers_on_file_system(numbers))
