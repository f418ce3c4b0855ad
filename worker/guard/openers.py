"""Programs and kernel targets that use a device or file without O_EXCL: QEMU, databases, nvmet, LIO.

Opening exclusively does not exclude them, and sysfs shows no holder. Programs are found by their descriptors in
/proc, targets of the kernel by configfs.
"""

import contextlib
import os
import stat
import time
from collections.abc import Collection, Iterator
from pathlib import Path

from worker.guard.refusal import GuardRefused
from worker.inventory import sysfs
from worker.inventory.usage import PROC

CONFIGFS = Path("/sys/kernel/config")
INIT = 1
PATIENCE_S = 3.0  # udev and smartd open a drive for moments only
_POLL_S = 0.2
# Files of configfs that contain the path of an exported device or file.
_EXPORTS = (("nvmet", "nvmet/subsystems/*/namespaces/*/device_path"), ("LIO", "target/core/*/*/udev_path"))

# What a descriptor refers to: ("block", major, minor), ("character", major, minor) or ("file", device number, inode).
Identity = tuple[str, int, int]


def identity(facts: os.stat_result) -> Identity:
    if stat.S_ISBLK(facts.st_mode):
        return "block", os.major(facts.st_rdev), os.minor(facts.st_rdev)
    if stat.S_ISCHR(facts.st_mode):
        return "character", os.major(facts.st_rdev), os.minor(facts.st_rdev)
    return "file", facts.st_dev, facts.st_ino


def device_identities(name: str, sys: Path = sysfs.SYS) -> set[Identity]:
    """Of a block device by its kernel name, and of the character devices that pass commands to it (sg, ng)."""
    place = sysfs.node(name, sys)
    generic = [*place.glob("device/scsi_generic/*/dev"), *(sys / "class/nvme-generic").glob(f"{_generic(name)}/dev")]
    return {_numbered("block", place / "dev"), *(_numbered("character", each) for each in generic)}


def _generic(name: str) -> str:
    """nvme0n1 -> ng0n1; a name that no device has for other drives."""
    return f"ng{name.removeprefix('nvme')}" if name.startswith("nvme") else "none"


def _numbered(kind: str, file: Path) -> Identity:
    major, _, minor = file.read_text().strip().partition(":")  # raises OSError if the device has gone
    return kind, int(major), int(minor)


def refuse_if_opened(
    shown: str, wanted: Collection[Identity], *, strict: bool = True, patience_s: float = PATIENCE_S,
    proc: Path = PROC, configfs: Path = CONFIGFS,
) -> None:  # fmt: skip
    """Refuse a target that another program still has open after `patience_s`, or that the kernel exports.

    `strict`: also refuse it if the open files of a process cannot be read.
    """
    give_up_at = time.monotonic() + patience_s
    while found := (*exports(wanted, configfs), *openers(wanted, proc, strict=strict)):
        if time.monotonic() > give_up_at:
            raise GuardRefused("guard_held", f"{shown} is used by {', '.join(found)}: stop it first.")
        time.sleep(_POLL_S)


def openers(wanted: Collection[Identity], proc: Path = PROC, *, strict: bool = True) -> tuple[str, ...]:
    """Other processes that have one of these open, such as "qemu-system-x86 (process 4711)".

    Raises GuardRefused if `strict` and the open files of a process cannot be read.
    """
    return tuple(
        _named(process) for process in _processes(proc) if not _opened_by(process, strict=strict).isdisjoint(wanted)
    )


def exports(wanted: Collection[Identity], configfs: Path = CONFIGFS) -> tuple[str, ...]:
    """Targets of the kernel that export one of these to other hosts."""
    return tuple(
        f"{kind} ({file.parent.relative_to(configfs)})"
        for kind, pattern in _EXPORTS
        for file in sorted(configfs.glob(pattern))
        if identity_at(sysfs.text(file)) in wanted
    )


def _processes(proc: Path) -> Iterator[Path]:
    """All but this process and init, which uses no drives and whose descriptors some hosts hide from root."""
    skipped = (INIT, os.getpid())
    return (entry for entry in proc.iterdir() if entry.name.isdigit() and int(entry.name) not in skipped)


def _opened_by(process: Path, *, strict: bool) -> set[Identity]:
    """Everything that a process has open; nothing if it has ended."""
    found: set[Identity] = set()
    try:
        for entry in os.scandir(process / "fd"):
            with contextlib.suppress(FileNotFoundError, ProcessLookupError):
                found.add(identity(entry.stat()))
    except PermissionError as error:
        if not strict:
            return found
        raise GuardRefused(
            "guard_held", f"The open files of {_named(process)} cannot be read ({error.strerror}), so it may use the "
            "drive. Run the worker as root with CAP_SYS_PTRACE.",
        ) from error  # fmt: skip
    except (FileNotFoundError, ProcessLookupError):
        return set()
    return found


def _named(process: Path) -> str:
    return f"{sysfs.text(process / 'comm') or 'a program'} (process {process.name})"


def identity_at(path: str) -> Identity | None:
    """None for an empty path, and for one that no longer exists."""
    try:
        return identity(Path(path).stat()) if path else None
    except OSError:
        return None
