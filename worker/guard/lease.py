"""A lease: a drive that the guard has checked and keeps open, from admission to the end of the work.

    admitted ─► held with O_EXCL ─► handed over to a program ─► held again, or held by what the program built ─► ended
                     └────────────────────────────────────────────────────────────────────────────────────► ended

While a drive is held, no other program can mount it, use it as swap, build on it or open it exclusively, and a drive
that is plugged in cannot get its name. Its other kernel names (`twins`) are held too. mdadm, LVM and mkfs open a drive
exclusively themselves: the worker hands each drive over for the one command that needs it.
"""

import errno
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Self

from worker.guard.refusal import GuardRefused
from worker.inventory import sysfs, usage

SETTLE_S = 5.0  # udev may open a changed drive for moments


class Lease:
    """A context manager. Not thread-safe. The drive in a controller's slot has no kernel name and no descriptor."""

    def __init__(
        self, path: str, *, name: str = "", twins: tuple[str, ...] = (), size_bytes: int = 0, writes: bool = True,
        exclusive: bool = True,
    ) -> None:  # fmt: skip
        self.path = path  # device node without links; for a slot, its bay
        self.name = name  # kernel name; "" for a slot
        self.twins = twins  # other kernel names of the same drive
        self.size_bytes = size_bytes
        self.numbers = sysfs.major_minor(name) if name else ""  # major:minor
        self.stable_id = sysfs.stable_id(name) if name else ""
        self.serial = sysfs.serial(name) if name else ""
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
            self._open()
        return self

    def __exit__(self, *_: object) -> None:
        self._close()

    @contextmanager
    def handed_over(self) -> Iterator[None]:
        """Close the drive for a program that opens it exclusively; then hold it again, unless it was built on.

        Raises GuardRefused if another program has opened it, or another device has its name.
        """
        self._close()
        yield
        give_up_at = time.monotonic() + SETTLE_S
        while not self._is_built_on():
            try:
                self._open()
                return
            except GuardRefused as error:
                if error.code != "guard_busy" or time.monotonic() > give_up_at:
                    raise
            time.sleep(0.1)

    def _is_built_on(self) -> bool:
        """An array, a volume or a mounted file system holds the drive or a partition of it."""
        names = (self.name, *sysfs.partitions(self.name))
        now, members = usage.read_usage(), usage.btrfs_members()
        return any(sysfs.holders(each) or now.mounts_of(each) or each in members for each in names)

    def _open(self) -> None:
        try:
            self._descriptors = []
            for path in (self.path, *map(sysfs.device_path, self.twins)):
                self._descriptors.append(_opened(path, self._flags))
            self._refuse_replaced()
        except BaseException:
            self._close()
            raise

    def _refuse_replaced(self) -> None:
        facts = os.fstat(self._descriptors[0])
        numbers = f"{os.major(facts.st_rdev)}:{os.minor(facts.st_rdev)}"
        if (numbers, sysfs.name_of(numbers)) != (self.numbers, self.name):
            raise GuardRefused("guard_path", f"{self.path} was replaced by another device during the check.")
        found = sysfs.stable_id(self.name), sysfs.serial(self.name)
        if found != (self.stable_id, self.serial):
            raise GuardRefused("guard_serial_changed", f"{self.path} is another drive now: {' '.join(found)}.")

    def _close(self) -> None:
        descriptors, self._descriptors = self._descriptors, []
        for fd in descriptors:
            os.close(fd)


def _opened(path: str, flags: int) -> int:
    try:
        return os.open(path, flags)
    except OSError as error:
        if error.errno == errno.EBUSY:
            raise GuardRefused(
                "guard_busy",
                f"{path} is in use: another program has opened it exclusively (LVM, ZFS, md, another trial …).",
            ) from error
        raise GuardRefused("guard_path", f"{path} cannot be opened: {error.strerror}.") from error
