"""A drive whose only partition is a target that is overwritten. Its other bytes belong to somebody else."""

import hashlib
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from dev.console import ToolError
from dev.faults import disks
from dev.stack import loop_device, processes
from dev.stack.loop_device import MIB
from dev.stack.network import await_condition

SECTOR = 512
DRIVE_BYTES = 32 * MIB
PART_SECTORS = 8 * MIB // SECTOR
FIRST, OTHER = "5eed0001-0000-4000-8000-000000000001", "5eed0001-0000-4000-8000-000000000002"
START = 2048  # of the partition
OTHER_START = START + PART_SECTORS  # of a later partition with the same number, in the bytes of somebody else
OTHERS = slice(OTHER_START * SECTOR, DRIVE_BYTES - MIB)  # without the last MiB, which has signatures and a table
KERNEL_LIMIT_S = 60.0  # until the kernel takes a table: the partition may be in use


class PartitionedDrive:
    def __init__(self, image: Path) -> None:
        self._image = image
        self._turn = threading.Lock()  # one fault changes the drive at a time
        self.problems: list[str] = []  # seen by faults; the checker takes them
        self.device = loop_device.attach(image, DRIVE_BYTES, direct_io=False)
        self.write_table(START, FIRST)
        if not self._update_kernel():
            raise ToolError(f"The kernel does not know the partition of {self.device}.")
        self.initial_settings = disks.queue_settings(self.device)
        self._others = self._digest(OTHERS)

    @property
    def partition(self) -> str:
        return f"{self.device}p1"

    @contextmanager
    def turn(self) -> Iterator[None]:
        with self._turn:
            yield

    def write_table(self, start: int, uuid: str) -> None:
        """Write a table with one partition to the drive. The kernel keeps the old one."""
        command = ("sfdisk", "--quiet", "--force", "--no-reread", "--no-tell-kernel", "--wipe", "never", self.device)
        row = f"label: gpt\nstart={start}, size={PART_SECTORS}, uuid={uuid}\n"
        processes.run([*command, "--wipe-partitions", "never"], stdin_text=row)

    def update_kernel(self) -> bool:
        """Let the kernel read the table; False if it keeps the old one, because the partition is in use."""
        try:
            processes.run(["partx", "--update", self.device])
        except ToolError:
            return False
        return True

    def restore(self) -> None:
        """The initial table, and a kernel that knows it."""
        self.write_table(START, FIRST)
        if not self._update_kernel():
            raise ToolError(f"The kernel did not take the table of {self.device} again.")

    def _update_kernel(self) -> bool:
        return await_condition(self.update_kernel, limit_s=KERNEL_LIMIT_S)

    def resize(self, sectors: int) -> None:
        """Change what the kernel knows of the partition, also while it is in use."""
        processes.run(["resizepart", self.device, "1", str(sectors)])

    # ---- checks

    def part_digest(self) -> str:
        """Of the bytes of the partition."""
        return self._digest(slice(START * SECTOR, OTHER_START * SECTOR))

    def violations(self) -> list[str]:
        changed = self._digest(OTHERS) != self._others
        return [f"bytes of {self.device} outside the partition were changed"] if changed else []

    def _digest(self, of: slice) -> str:
        descriptor = os.open(self.device, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        with self._image.open("rb") as image:
            image.seek(of.start)
            return hashlib.sha256(image.read(of.stop - of.start)).hexdigest()
