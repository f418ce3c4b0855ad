"""Faults of a drive with a partition: it gets another partition of the same number, the partition grows over bytes of
somebody else, or the drive becomes a member of an array. Trials overwrite the partition meanwhile.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from dev.faults.fault_schedule import ScheduledFault
from dev.faults.installation import Installation
from dev.faults.partitioned_drive import DRIVE_BYTES, OTHER, OTHER_START, PART_SECTORS, PartitionedDrive
from worker.kernel.tests import formats


def repartition(installation: Installation, fault: ScheduledFault) -> None:
    """If the worker holds the partition, the kernel keeps the old one, and only the table on the drive is new."""
    drive = installation.host(fault).partitioned
    with drive.turn():
        try:
            drive.write_table(OTHER_START, OTHER)
            drive.update_kernel()
            installation.pause(fault.duration_s)
        finally:
            drive.restore()


def grow_partition(installation: Installation, fault: ScheduledFault) -> None:
    """Only the kernel's size changes, as while a running resize is not finished. The worker may hold the partition."""
    drive = installation.host(fault).partitioned
    with drive.turn():
        drive.resize(2 * PART_SECTORS)
        try:
            installation.pause(fault.duration_s)
        finally:
            drive.resize(PART_SECTORS)


MEMBERS: tuple[formats.Pieces, ...] = (
    formats.md_1(DRIVE_BYTES, "1.0"),
    formats.md_0(DRIVE_BYTES),
    formats.intel(DRIVE_BYTES),
)  # at the end of the drive, behind its partition


def make_member(installation: Installation, fault: ScheduledFault) -> None:
    """The drive of the partition becomes a member of an array. Afterwards nothing may be written to the partition.

    It ends at once if the worker uses the drive.
    """
    drive = installation.host(fault).partitioned
    pieces = MEMBERS[int(fault.choice * len(MEMBERS))]
    with drive.turn():
        try:
            with _exclusively(drive):
                before = drive.part_digest()
                formats.write(drive.device, pieces)
        except OSError:
            return
        try:
            installation.pause(fault.duration_s)
            if drive.part_digest() != before:
                drive.problems.append(f"{drive.partition} was overwritten while its drive was a member of an array")
        finally:
            formats.write(drive.device, tuple((offset, bytes(len(content))) for offset, content in pieces))


@contextmanager
def _exclusively(drive: PartitionedDrive) -> Iterator[None]:
    """Raises OSError while the worker holds the drive or its partition."""
    descriptor = os.open(drive.device, os.O_RDWR | os.O_EXCL)
    try:
        yield
    finally:
        os.close(descriptor)


FAULTS: dict[str, Callable[[Installation, ScheduledFault], None]] = {
    "repartition": repartition,
    "grow partition": grow_partition,
    "array member": make_member,
}
