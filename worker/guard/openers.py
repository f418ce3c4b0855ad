"""Programs and kernel targets that use a device or file without O_EXCL: QEMU, databases, nvmet, LIO, USB gadgets.

Opening exclusively does not exclude them, and sysfs shows no holder. Programs are found by their descriptors and
mappings in /proc, targets of the kernel by configfs. A file has a better witness: the kernel grants a write lease
(fcntl(2), F_SETLEASE) only if nothing else has it open, also no loop device, mount, io_uring or message in a socket.
"""

import contextlib
import ctypes
import errno
import fcntl
import functools
import os
import platform
import re
import stat
import time
from collections.abc import Callable, Collection, Iterator
from pathlib import Path

from worker.guard.refusal import GuardRefused
from worker.kernel import sysfs
from worker.kernel.usage import PROC, lines, table

CONFIGFS = Path("/sys/kernel/config")
INIT = 1
# The guard waits so long for a drive or file that is in use, then it refuses. udev and smartd open a drive for moments,
# and a file system that was unmounted holds its drive until all its data is written.
BUSY_LIMIT_S = 20.0
POLL_S = 0.2
# Files of configfs that show an exported device or file. `udev_path` of LIO is only a note, which may be missing.
_EXPORTS = (
    ("nvmet", "nvmet/subsystems/*/namespaces/*/device_path"),
    ("LIO", "target/core/*/*/udev_path"),
    ("LIO", "target/core/*/*/info"),
    ("a USB gadget", "usb_gadget/*/functions/*/lun.*/file"),
)
_NVME_CONTROLLER = re.compile(r"nvme[0-9]+")
_LIO_FILE = re.compile(r"File: (.+?)  Size: [0-9]")  # of fileio
_LIO_NUMBERS = re.compile(r"Major: ([0-9]+) Minor: ([0-9]+)")  # of iblock
# They have the devices below an array or a multipath device open as long as it exists, and write only metadata.
_LAYER_DAEMONS = ("mdmon", "multipathd")
_KCMP = {"x86_64": 312, "aarch64": 272, "riscv64": 272, "ppc64le": 354, "s390x": 343}  # numbers of the system call
_KCMP_FILES = 2
_IO_URING = Path("anon_inode:[io_uring]")
_NO_LEASES = (errno.EINVAL, errno.EOPNOTSUPP, errno.ENOSYS)  # NFS, CIFS, some FUSE

# What a descriptor refers to: ("block", major, minor), ("character", major, minor) or ("file", device number, inode).
Identity = tuple[str, int, int]
_IsWanted = Callable[[Identity], bool]
# Device, inode and path of a mapped file in /proc/PID/maps, with what it is: most programs map the same libraries.
_Mappings = dict[str, tuple[Identity, ...]]


def identity(facts: os.stat_result) -> Identity:
    if stat.S_ISBLK(facts.st_mode):
        return "block", os.major(facts.st_rdev), os.minor(facts.st_rdev)
    if stat.S_ISCHR(facts.st_mode):
        return "character", os.major(facts.st_rdev), os.minor(facts.st_rdev)
    return "file", facts.st_dev, facts.st_ino


def device_identities(name: str, sys: Path = sysfs.SYS) -> set[Identity]:
    """Of a block device by its kernel name, and of the character devices that pass commands to it.

    These are sg and bsg of SCSI, ng and the controller of NVMe.
    """
    place = sysfs.node(name, sys)
    generic = [
        *place.glob("device/scsi_generic/*/dev"),
        *place.glob("device/bsg/*/dev"),
        *(sys / "class/nvme-generic").glob(f"{sysfs.nvme_generic_name(name) or 'none'}/dev"),
        *(file for controller in _nvme_controllers(name, sys) for file in controller.glob("dev")),
    ]
    return {_numbered("block", place / "dev"), *(_numbered("character", each) for each in generic)}


def _nvme_controllers(name: str, sys: Path) -> set[Path]:
    places = {place for way in sysfs.ways(name, sys) for place in (way, way.parent)}
    return {place for place in places if _NVME_CONTROLLER.fullmatch(place.name)}


def _numbered(kind: str, file: Path) -> Identity:
    major, _, minor = file.read_text().strip().partition(":")  # raises OSError if the device has gone
    return kind, int(major), int(minor)


def refuse_if_opened(
    shown: str, wanted: Collection[Identity], *, lower: Collection[Identity] = (), strict: bool = True,
    proc: Path = PROC, configfs: Path = CONFIGFS,
) -> None:  # fmt: skip
    """Refuse a target that another program still has open after BUSY_LIMIT_S, or that the kernel exports.

    `lower`: of the devices below the target. `strict`: also refuse it if the open files of a process cannot be read, or
    the path of an export leads nowhere.
    """
    give_up_at = time.monotonic() + BUSY_LIMIT_S
    while users := (
        *exports({*wanted, *lower}, configfs, strict=strict),
        *openers(wanted, proc, lower=lower, strict=strict),
    ):
        if time.monotonic() > give_up_at:
            raise GuardRefused("guard_held", f"{shown} is used by {', '.join(users)}: stop it first.")
        time.sleep(POLL_S)


def refuse_if_open_anywhere(shown: str, fd: int) -> None:
    """Refuse a file that anything except `fd` still has open after BUSY_LIMIT_S, by the kernel's own count.

    `fd` is opened for reading. File systems without leases are not checked.
    """
    give_up_at = time.monotonic() + BUSY_LIMIT_S
    while not _is_open_here_only(shown, fd):
        if time.monotonic() > give_up_at:
            raise GuardRefused(
                "guard_held",
                f"{shown} is open elsewhere: the kernel grants no lease on it (fcntl(2), F_SETLEASE). No process shows "
                "it in /proc; a container, an io_uring, a socket or a mount may have it. Stop what uses it.",
            )
        time.sleep(POLL_S)


def _is_open_here_only(shown: str, fd: int) -> bool:
    try:
        fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_WRLCK)
    except BlockingIOError:
        return False
    except OSError as error:
        if error.errno in _NO_LEASES:
            return True
        raise GuardRefused("guard_held", f"{shown}: the kernel refuses a lease ({error.strerror}).") from error
    fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_UNLCK)  # at once: engines open the file
    return True


def exports(
    wanted: Collection[Identity], configfs: Path = CONFIGFS, *, strict: bool = False, proc: Path = PROC
) -> tuple[str, ...]:
    """Targets of the kernel that export one of these to other hosts. `strict`: or an unknown device or file."""
    users: dict[str, None] = {}
    for kind, pattern in _EXPORTS:
        for file in sorted(configfs.glob(pattern)):
            user = f"{kind} ({file.parent.relative_to(configfs)})"
            content = sysfs.text(file)
            identities = _exported(file.name, content, proc)
            if not identities.isdisjoint(wanted):
                users[user] = None
            elif strict and not identities and _is_active(file, content):
                users[f"perhaps {user}, because its path leads nowhere"] = None
    return tuple(users)


def _exported(name: str, content: str, proc: Path) -> set[Identity]:
    """What a file of configfs shows, also if only process 1 sees the path."""
    if name == "info":
        if numbers := _LIO_NUMBERS.search(content):
            return {("block", int(numbers[1]), int(numbers[2]))}
        path = match[1] if (match := _LIO_FILE.search(content)) else ""
    else:
        path = content
    places = (path, f"{proc}/1/root{path}") if path.startswith("/") else ()
    return {identity for place in places if (identity := identity_at(place))}


def _is_active(file: Path, content: str) -> bool:
    """Whether the kernel has the device or file open whose path this file of configfs shows. LIO opens it when it is
    enabled, and has the status ACTIVATED only while a LUN exports it."""
    if file.name == "file":
        return bool(content)
    has_path = file.name == "device_path" or (file.name == "info" and _LIO_FILE.search(content) is not None)
    return has_path and sysfs.text(file.parent / "enable") == "1"


def identity_at(path: str) -> Identity | None:
    """None for an empty path, and for one that no longer exists."""
    try:
        return identity(Path(path).stat()) if path else None
    except OSError:
        return None


# ---- processes


def openers(
    wanted: Collection[Identity], proc: Path = PROC, *, lower: Collection[Identity] = (), strict: bool = True
) -> tuple[str, ...]:
    """Other processes that have one of these open or mapped, such as "qemu-system-x86 (process 4711)".

    `lower`: of the devices below the target; the daemons that manage them do not count.
    Raises GuardRefused if `strict` and the open files of a process cannot be read.
    """
    return tuple(
        _named(process)
        for process, used in _processes_with({*wanted, *lower}.__contains__, proc, strict=strict)
        if not used.isdisjoint(wanted) or sysfs.text(process / "comm") not in _LAYER_DAEMONS
    )


def openers_on_file_system(numbers: Collection[tuple[int, int]], proc: Path = PROC) -> tuple[str, ...]:
    """Processes with files or working directories on the file system of one of these block devices (major, minor).

    A file system that was unmounted with `umount --lazy` lives until they end, and no mount table shows it.
    """

    def is_on_it(item: Identity) -> bool:
        return item[0] == "file" and (os.major(item[1]), os.minor(item[1])) in numbers

    return tuple(_named(process) for process, _used in _processes_with(is_on_it, proc, strict=False, directories=True))


def _processes_with(
    is_wanted: _IsWanted, proc: Path, *, strict: bool, directories: bool = False
) -> Iterator[tuple[Path, set[Identity]]]:
    """All but this process; init, whose descriptors some hosts hide from root, as far as it can be read.

    Yields each process that uses something wanted, and what. `directories`: its working directory counts as a use.
    """
    numbers = sorted(int(entry.name) for entry in os.scandir(proc) if entry.name.isdigit())
    known: _Mappings = {}
    for number in numbers:
        if number == os.getpid():
            continue
        process, used = proc / str(number), set[Identity]()
        try:
            threads = sorted((entry.name for entry in os.scandir(process / "task")), key=int)
            used.update(_opened(process, threads, is_wanted, directories=directories))
            used.update(filter(is_wanted, _mapped(proc, threads, known)))
        except PermissionError as error:
            if strict and number != INIT:
                raise GuardRefused(
                    "guard_held",
                    f"The open files of {_named(process)} cannot be read ({error.strerror}), so it may use the "
                    "target. Run the worker as root with CAP_SYS_PTRACE.",
                ) from error
        except (FileNotFoundError, ProcessLookupError):
            pass  # it has ended; what was found before counts
        if used:
            yield process, used


def _opened(process: Path, threads: list[str], is_wanted: _IsWanted, *, directories: bool) -> Iterator[Identity]:
    """The wanted descriptors of all threads. A descriptor table that threads share is read once."""
    tables: list[str] = []  # a thread of each table that was read
    for thread in threads:
        if any(_share_descriptors(thread, other) for other in tables):
            continue
        folder = process / "task" / thread
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # the thread has ended
            for link in ("cwd", "root") if directories else ():
                yield from filter(is_wanted, _linked(folder / link))
            for entry in os.scandir(folder / "fd"):
                facts = _facts(entry)
                if facts is None:
                    continue
                if not stat.S_IFMT(facts.st_mode):
                    yield from filter(is_wanted, _registered(process / "root", folder, entry))
                elif is_wanted(item := identity(facts)) and not _is_only_a_place(entry, facts):
                    yield item
            tables.append(thread)


def _registered(root: Path, folder: Path, entry: os.DirEntry[str]) -> Iterator[Identity]:
    """The files that are registered with an io_uring; nothing for other descriptors without a file.

    They stay open without a descriptor. The kernel shows only their paths, and not while the ring is busy.
    """
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        if Path(entry.path).readlink() != _IO_URING:
            return
        for line in lines(table(folder / "fdinfo" / entry.name)):
            slot, _, path = line.strip().partition(": ")
            if slot.isdigit() and path.startswith("/"):
                yield from _linked(root / path[1:])


def _is_only_a_place(entry: os.DirEntry[str], facts: os.stat_result) -> bool:
    """A file opened with O_PATH (open(2)) can be neither read nor written: its link in /proc has no permissions."""
    if stat.S_ISDIR(facts.st_mode):
        return False
    with contextlib.suppress(OSError):
        return stat.S_IMODE(entry.stat(follow_symlinks=False).st_mode) == 0
    return False


def _linked(link: Path | os.DirEntry[str]) -> Iterator[Identity]:
    facts = _facts(link)
    if facts is not None:
        yield identity(facts)


def _facts(link: Path | os.DirEntry[str]) -> os.stat_result | None:
    """None if it was closed, and on a file system that does not answer (a dead FUSE or NFS): no target is on it.

    Raises PermissionError.
    """
    try:
        return link.stat()
    except PermissionError:
        raise
    except OSError:
        return None


def _mapped(proc: Path, threads: list[str], known: _Mappings) -> Iterator[Identity]:
    """The files that are mapped into memory, also those whose descriptor was closed. All threads share them."""
    for thread in threads:  # the first thread may have ended: it has no memory then
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            process = proc / thread  # /proc does not list threads, but they can be opened there
            fields = [line.split(" ", 3) for line in lines(table(process / "maps"))]
            found = set[str]()  # most lines of a process are parts of the same libraries
            for place, _permissions, _offset, file in fields:
                if file not in found:
                    for item in known[file] if file in known else _mapping(process, place, file, known):
                        found.add(file)
                        yield item
            if fields:
                return


def _mapping(process: Path, place: str, file: str, known: _Mappings) -> tuple[Identity, ...]:
    """`file`: the device, inode and path in a line of /proc/PID/maps. Of a device they are those of its node, so the
    file itself is examined.
    """
    device, inode, path = (*file.split(maxsplit=2), "", "")[:3]
    if not path or inode == "0":
        known[file] = ()  # memory without a file
        return ()
    start, _, end = place.partition("-")
    try:
        identities = tuple(_linked(process / "map_files" / f"{int(start, 16):x}-{int(end, 16):x}"))
    except PermissionError:  # it needs CAP_SYS_ADMIN or CAP_CHECKPOINT_RESTORE
        major, _, minor = device.partition(":")
        node = "file", os.makedev(int(major, 16), int(minor, 16)), int(inode)
        return node, *_linked(process / "root" / path.lstrip("/"))
    if identities:  # else it was unmapped meanwhile
        known[file] = identities
    return identities


@functools.cache
def _system_call() -> Callable[..., int] | None:
    number = _KCMP.get(platform.machine())
    return functools.partial(ctypes.CDLL(None, use_errno=True).syscall, number) if number else None


def _share_descriptors(thread: str, other: str) -> bool:
    """True if it is certain (kcmp(2)); False also if the kernel does not say."""
    call = _system_call()
    return call is not None and call(int(thread), int(other), _KCMP_FILES, 0, 0) == 0


def _named(process: Path) -> str:
    return f"{sysfs.text(process / 'comm') or 'a program'} (process {process.name})"
