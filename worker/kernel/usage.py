"""Mounts, swap and other uses of block devices."""

import contextlib
import os
import re
import stat
from collections.abc import Iterator
from pathlib import Path

import msgspec

from worker.kernel import sysfs

PROC = Path("/proc")
# File systems that the kernel mounts from a file without a loop device: offset and bytes of their magic number.
FILE_MOUNTS = {"erofs": (1024, bytes.fromhex("e2e1f5e0"))}
# Of erofs, from the magic number on (linux/fs/erofs/erofs_fs.h): flags, and the number of further files of the image.
_EROFS_FLAGS, _EROFS_DEVICE_TABLE, _EROFS_DEVICES, _EROFS_HEAD_BYTES = 80, 8, 86, 88


class Mount(msgspec.Struct, frozen=True, kw_only=True):
    id: int
    major_minor: str
    point: str
    options: str  # of the mount and of the file system
    kind: str  # file system
    source: str
    root: str = "/"  # of the file system: what is mounted
    process: str = ""  # whose mount namespace it is in; "" for that of the worker or of process 1

    @property
    def shown(self) -> str:
        return self.point + (f" (in the mount namespace of process {self.process})" if self.process else "")


class MountedFile(msgspec.Struct, frozen=True):
    """A file that is mounted without a loop device (erofs)."""

    mount: Mount
    file: tuple[int, int] | None  # device number and inode at its path, perhaps of another file; None if there is none
    has_more: bool = False  # the image consists of further files, which no mount table shows


class Usage(msgspec.Struct, frozen=True):
    """All mounts and swap of the host at one moment."""

    mounts: tuple[tuple[str, Mount], ...]  # kernel name of the device, mount; several for a multi-device btrfs
    swaps: tuple[str, ...]  # kernel names of devices
    swap_files: tuple[str, ...]
    elsewhere: tuple[tuple[str, Mount], ...] = ()  # like `mounts`, in other mount namespaces
    mounted_files: tuple[MountedFile, ...] = ()
    unseen_images: int = 0  # mounted files that no mount table shows: detached, or unmounted lazily

    def mounts_of(self, name: str) -> tuple[Mount, ...]:
        return tuple(mount for device, mount in (*self.mounts, *self.elsewhere) if device == name)

    def root_disks(self, sys: Path = sysfs.SYS) -> frozenset[str]:
        """All devices under the file systems that the host runs from."""
        points = ("/", "/boot", "/boot/efi", "/usr", "/var")
        direct = {device for device, mount in self.mounts if mount.point in points}
        return frozenset(direct.union(*(sysfs.below(device, sys) for device in direct)))


def read_usage(sys: Path = sysfs.SYS, proc: Path = PROC, *, everywhere: bool = False) -> Usage:
    """Read the mounts of this process and, if possible, of process 1. Raises OSError for those of this process.

    A worker in a separate mount namespace does not see the host's mounts, but process 1 does. `everywhere`: also those
    in the mount namespaces of all other processes, such as containers, and files that are mounted without a loop
    device.
    """
    mounts = _mounts_of(proc / "self")
    with contextlib.suppress(OSError):
        mounts += _mounts_of(proc / "1")
    devices, files = _swaps(proc, sys)
    if not everywhere:
        return Usage(_by_device(mounts, sys), devices, files)
    elsewhere: list[Mount] = []
    mounted_files = [*_mounted_files(mounts, Path("/"))]
    for task, theirs in _other_namespaces(proc):
        elsewhere += theirs
        mounted_files += _mounted_files(theirs, task / "root")
    return Usage(
        _by_device(mounts, sys), devices, files, _by_device(tuple(elsewhere), sys), tuple(mounted_files),
        _unseen_images((*mounts, *elsewhere), sys),
    )  # fmt: skip


def _mounts_of(process: Path) -> tuple[Mount, ...]:
    return read_mounts(table(process / "mountinfo"))


def _other_namespaces(proc: Path) -> Iterator[tuple[Path, tuple[Mount, ...]]]:
    """The mounts of each namespace in which neither this process nor process 1 is, and a thread that is in it."""
    seen = set()
    for process in ("self", "1"):
        with contextlib.suppress(OSError):
            seen.add((proc / process / "ns/mnt").stat().st_ino)
    for task in tasks(proc):
        with contextlib.suppress(OSError):  # it has ended, or may not be examined
            namespace = (task / "ns/mnt").stat().st_ino
            if namespace not in seen:
                mounts = _mounts_of(task)
                yield task, tuple(msgspec.structs.replace(mount, process=task.name) for mount in mounts)
                seen.add(namespace)


def tasks(proc: Path = PROC) -> Iterator[Path]:
    """Every thread of every process: /proc/<process>/task/<thread>."""
    for process in os.scandir(proc):
        if process.name.isdigit():
            with contextlib.suppress(OSError):  # it has ended
                yield from sorted(Path(process.path, "task").iterdir())


def _mounted_files(mounts: tuple[Mount, ...], root: Path) -> Iterator[MountedFile]:
    """`root`: the root directory of a process in the mount namespace."""
    for mount in mounts:
        if not mount.major_minor.startswith("0:"):
            continue
        is_image = mount.kind in FILE_MOUNTS
        # Relative to the directory of the program that mounted it, or a descriptor of that program: here another file.
        if not mount.source.startswith("/") or mount.source.startswith("/proc/"):
            if is_image:
                yield MountedFile(mount, None)
            continue
        path = root / mount.source[1:]
        file = _regular_file(path)
        if file or (is_image and not _is_block(path)):
            yield MountedFile(mount, file, has_more=is_image and file is not None and _has_more_files(path))


def _has_more_files(path: Path) -> bool:
    """Whether an erofs image stores data in further files; also True if it cannot be read."""
    offset, magic = FILE_MOUNTS["erofs"]
    try:
        with path.open("rb") as file:
            file.seek(offset)
            head = file.read(_EROFS_HEAD_BYTES)
    except OSError:
        return True
    if len(head) < _EROFS_HEAD_BYTES or not head.startswith(magic):
        return False
    flags = int.from_bytes(head[_EROFS_FLAGS : _EROFS_FLAGS + 4], "little")
    return bool(flags & _EROFS_DEVICE_TABLE and int.from_bytes(head[_EROFS_DEVICES:], "little"))


def _unseen_images(mounts: tuple[Mount, ...], sys: Path) -> int:
    """How many erofs images live without a block device, besides those in the mount tables.

    Linux names them erofs-<number> in /sys/fs/erofs, and those with a block device like the device.
    """
    seen = {mount.major_minor for mount in mounts if mount.kind == "erofs" and mount.major_minor.startswith("0:")}
    return max(0, len(list((sys / "fs/erofs").glob("erofs-*"))) - len(seen))


def _regular_file(path: Path) -> tuple[int, int] | None:
    try:
        facts = path.stat()
    except OSError:
        return None
    return (facts.st_dev, facts.st_ino) if stat.S_ISREG(facts.st_mode) else None


def _is_block(path: Path) -> bool:
    try:
        return stat.S_ISBLK(path.stat().st_mode)
    except OSError:
        return False


def table(file: Path) -> str:
    """The text of a file of /proc. Paths in it may contain any bytes, also a carriage return. Raises OSError."""
    return file.read_bytes().decode(errors="surrogateescape")


def lines(text: str) -> list[str]:
    """Of a table of /proc. Not str.splitlines: a path may contain a form feed or another character that ends a line."""
    return text.removesuffix("\n").split("\n") if text else []


def read_mounts(text: str) -> tuple[Mount, ...]:
    """Parse proc_pid_mountinfo(5). Raises ValueError for an invalid line instead of skipping it."""
    mounts = []
    for line in lines(text):
        left, _, right = line.partition(" - ")
        head, tail = left.split(" "), right.split(" ")
        if len(head) < 6 or len(tail) < 3:
            raise ValueError(f"mountinfo contains an invalid line: {line!r}")
        mounts.append(
            Mount(
                id=int(head[0]),
                major_minor=head[2],
                root=_unescaped(head[3]),
                point=_unescaped(head[4]),
                options=",".join(dict.fromkeys((head[5] + "," + tail[2]).split(","))),
                kind=tail[0],
                source=_unescaped(tail[1]),
            )
        )
    return tuple(mounts)


def overlay_layers(mount: Mount) -> tuple[Path, ...]:
    """The layers of an overlay, the upper one first, as far as their paths are absolute and shown."""
    options = [option.partition("=") for option in re.split(r"(?<!\\),", mount.options)]
    uppers = [value for name, _, value in options if name == "upperdir"]
    lower_options = (value for name, _, value in options if name in ("lowerdir", "lowerdir+"))
    lowers = [path for value in lower_options for path in re.split(r"(?<!\\)::?", value)]
    paths = (re.sub(r"\\([:,\\])", r"\1", _unescaped(each)) for each in (*uppers, *lowers))
    return tuple(Path(path) for path in paths if path.startswith("/"))


def mount_of(fd: int, proc: Path = PROC) -> Mount | None:
    """The mount of an open file."""
    number = mount_id(fd, proc)
    mounts = read_mounts(table(proc / "self/mountinfo"))
    return next((mount for mount in mounts if mount.id == number), None)


def mount_id(fd: int, proc: Path = PROC) -> int:
    """The mount id of an open file (proc_pid_fdinfo(5)). It differs also for a bind mount of the same file system."""
    info = (proc / f"self/fdinfo/{fd}").read_text().splitlines()
    return next((int(line.split()[1]) for line in info if line.startswith("mnt_id:")), -1)


def devices_of(fd: int, sys: Path = sysfs.SYS) -> tuple[str, ...]:
    """Kernel names of the whole block devices under an open file; several for btrfs on several devices."""
    direct = sysfs.name_of(sysfs.numbers_of(os.fstat(fd).st_dev), sys)
    mount = None if direct else mount_of(fd)
    names = {direct} if direct else _devices(mount, _btrfs_groups(sys), sys) if mount else frozenset[str]()
    return tuple(sorted({sysfs.whole(name, sys) for name in names}))


def device_of(fd: int, sys: Path = sysfs.SYS) -> str:
    """The only device of `devices_of`, "" if there is none or more than one."""
    names = devices_of(fd, sys)
    return names[0] if len(names) == 1 else ""


def _by_device(mounts: tuple[Mount, ...], sys: Path) -> tuple[tuple[str, Mount], ...]:
    groups = _btrfs_groups(sys)
    pairs: dict[tuple[str, str, str], tuple[str, Mount]] = {}
    for mount in mounts:
        for name in _devices(mount, groups, sys):
            pairs.setdefault((name, mount.point, mount.major_minor), (name, mount))
    return tuple(pairs.values())


def _devices(mount: Mount, groups: tuple[frozenset[str], ...], sys: Path) -> frozenset[str]:
    """Devices under a mount, also those of its options, such as `logdev=` of XFS.

    btrfs, bcachefs and overlays have anonymous device numbers: use the source instead.
    """
    direct = sysfs.name_of(mount.major_minor, sys)
    names = {direct} if direct else {_source_name(part, sys) for part in mount.source.split(":")}
    names |= {_source_name(value, sys) for option in mount.options.split(",") if (value := option.partition("=")[2])}
    names.discard("")
    return frozenset(names.union(*(group for group in groups if group & names)))


def _source_name(source: str, sys: Path) -> str:
    return sysfs.device_at(source, sys) if source.startswith("/dev/") else ""


def _btrfs_groups(sys: Path) -> tuple[frozenset[str], ...]:
    """The devices of each mounted btrfs, because mountinfo shows only one of them."""
    groups = []
    for folder in (sys / "fs/btrfs").glob("*/devices"):
        with contextlib.suppress(FileNotFoundError):  # unmounted since the folder was listed
            groups.append(frozenset(entry.name for entry in folder.iterdir()))
    return tuple(groups)


def kernel_users(name: str, sys: Path = sysfs.SYS, proc: Path = PROC) -> Iterator[str]:
    """Parts of the kernel that have opened a device exclusively and do not show it as a holder or a mount."""
    if (proc / "fs/jbd2" / name).exists():
        yield "a mounted ext4 that has its journal on it"
    if (sysfs.node(name, sys) / "bcache").exists() and not name.startswith("bcache"):  # it has a link to its own
        yield "bcache"
    for file in (sys / "block").glob("zram*/backing_dev"):
        if _source_name(sysfs.text(file), sys) == name:
            yield file.parent.name


def btrfs_members(sys: Path = sysfs.SYS) -> frozenset[str]:
    return frozenset().union(*_btrfs_groups(sys))


def _swaps(proc: Path, sys: Path) -> tuple[tuple[str, ...], tuple[str, ...]]:
    devices, files = [], []
    for line in lines(table(proc / "swaps"))[1:]:
        name, sort = re.split(r"[ \t]+", line)[:2]
        path = _unescaped(name)
        if sort == "partition":
            devices.append(_source_name(path, sys) or Path(path).name)
        else:
            files.append(path)
    return tuple(devices), tuple(files)


def _unescaped(field: str) -> str:
    return re.sub(r"\\([0-7]{3})", lambda match: chr(int(match[1], 8)), field)


def current_boot_id(proc: Path = PROC) -> str:
    """The kernel's id of this boot, a UUID."""
    return (proc / "sys/kernel/random/boot_id").read_text().strip()
