"""The identity of a target's device: of a disk its stable id, of a partition also its UUID, start and size.

A partition's number alone is not an identity: after repartitioning another partition has it. PARTUUID comes from the
table on the disk. It is a GPT partition's own UUID; in a table of kind dos, the disk's id and the partition's number,
so start and size are part of the identity too. A partition that is not in the table with this start and size (another
table was written, or the kernel was told of it by hand), and one in a table without ids, has no UUID.
"""

import os
import stat
from pathlib import Path

from worker.inventory import libblkid, sysfs
from worker.inventory.sysfs import SYS
from worker.stable_id import shortened

UDEV = Path("/run/udev/data")


def identity(name: str, sys: Path = SYS) -> str:
    """`wwn-0x5000c500a1b2c3d4-part1:<PARTUUID>@<start>+<size>`, start and size in sectors of 512 bytes.

    Devices that are not partitions have their stable id. Reads the disk of a partition, unless `sys` is recorded.
    """
    if not sysfs.is_partition(name, sys):
        return sysfs.stable_id(name, sys)
    start, size = sysfs.number(name, "start", sys) or 0, sysfs.number(name, "size", sys) or 0
    return shortened(f"{sysfs.unshortened_id(name, sys)}:{part_uuid(name, sys)}@{start}+{size}")


def part_uuid(name: str, sys: Path = SYS) -> str:
    """PARTUUID of a partition in lower case; "" if it has none, or if it cannot be read."""
    if sys != SYS:
        return _of_event(name, sys)
    try:
        return _in_table(name)
    except PermissionError:  # without root rights: what the kernel or udev has read
        return _of_event(name, sys) or _of_udev(name)
    except OSError:
        return ""


def _in_table(name: str) -> str:
    """Raises OSError."""
    disk, at = sysfs.whole(name), sysfs.number(name, "partition")
    place = at, sysfs.number(name, "start"), sysfs.number(name, "size")
    fd = os.open(sysfs.device_path(disk), os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    try:
        facts = os.fstat(fd)
        numbers = f"{os.major(facts.st_rdev)}:{os.minor(facts.st_rdev)}"
        if not stat.S_ISBLK(facts.st_mode) or numbers != sysfs.major_minor(disk):
            return ""
        os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)  # read the disk, not a copy from before a change
        return next((e.uuid for e in libblkid.read_table(fd) if (e.number, e.start, e.size) == place), "")
    finally:
        os.close(fd)


def _of_event(name: str, sys: Path) -> str:
    """From the kernel (6.10 or newer)."""
    return _assigned(sysfs.attribute(name, "uevent", sys), "PARTUUID=")


def _of_udev(name: str) -> str:
    return _assigned(sysfs.text(UDEV / f"b{sysfs.major_minor(name)}"), "E:ID_PART_ENTRY_UUID=")


def _assigned(lines: str, key: str) -> str:
    return next((line.removeprefix(key).lower() for line in lines.splitlines() if line.startswith(key)), "")
