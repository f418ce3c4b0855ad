"""Open directory and file targets without following links, check them through the descriptor, and hold them."""

import fcntl
import os
import re
import stat
import struct
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from worker import recipes
from worker.contract.base import MAX_LABEL
from worker.contract.workload import Stream
from worker.guard import loop_files, openers
from worker.guard.protection import refuse_protected_file
from worker.guard.refusal import GuardRefused, Survey
from worker.kernel import mounts, sysfs, usage
from worker.kernel.files import is_foreign
from worker.kernel.targets import OpenTarget, Recheck
from worker.policy import Policy, PolicyEntry

# Open paths without following links, and make sure that no other user can replace them.

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


@contextmanager
def opened_directory(path: str) -> Iterator[int]:
    """A descriptor of the directory. Each component is opened relative to its parent and must not be a link.

    Each directory in the path must belong to root or the worker's user, and no other user may rename files in it.
    """
    fd = os.open("/", _DIRECTORY)
    try:
        so_far = ""
        for part in path.strip("/").split("/") if path != "/" else ():
            _refuse_replaceable(so_far or "/", os.fstat(fd), part)
            so_far += f"/{part}"
            inner = _open_inside(fd, part, so_far)
            os.close(fd)
            fd = inner
        yield fd
    finally:
        os.close(fd)


def _open_inside(fd: int, part: str, so_far: str) -> int:
    try:
        return os.open(part, _DIRECTORY, dir_fd=fd)
    except OSError as error:
        if _is_link(fd, part):
            raise GuardRefused(
                "guard_path", f"{so_far} is a symbolic link. Use the real path in the policy."
            ) from error
        raise GuardRefused("guard_path", f"{so_far}: {error.strerror}.") from error


def _is_link(fd: int, part: str) -> bool:
    try:
        return stat.S_ISLNK(os.stat(part, dir_fd=fd, follow_symlinks=False).st_mode)
    except OSError:
        return False


def _refuse_replaceable(path: str, facts: os.stat_result, part: str) -> None:
    if is_foreign(facts):
        raise GuardRefused(
            "guard_path",
            f"{path} belongs to user {facts.st_uid}, who could replace {part!r} in it. Use another directory.",
        )
    if facts.st_mode & 0o022 and not facts.st_mode & stat.S_ISVTX:
        raise GuardRefused(
            "guard_path", f"{path} is writable by other users, who could replace {part!r} in it: chmod go-w {path}"
        )


def refuse_open_to_others(path: str, facts: os.stat_result) -> None:
    """Refuse a target that belongs to another user or is writable by other users."""
    if is_foreign(facts):
        raise GuardRefused(
            "guard_path",
            f"{path} belongs to user {facts.st_uid}; it must belong to root or to the worker's user ({os.geteuid()}).",
        )
    if facts.st_mode & 0o022:
        raise GuardRefused(
            "guard_path", f"{path} is writable by other users (mode {stat.S_IMODE(facts.st_mode):o}): chmod go-w {path}"
        )


def refuse_odd_file(shown: str, facts: os.stat_result) -> None:
    """Refuse everything except a regular file with a single name."""
    if not stat.S_ISREG(facts.st_mode):
        raise GuardRefused("guard_path", f"{shown} is not a regular file. Remove it.")
    if facts.st_nlink != 1:
        raise GuardRefused(
            "guard_path", f"{shown} has {facts.st_nlink} names (hard links): a write would change all of them."
        )


PRIVATE = ".sweetspot"
SPARE_SHARE = 20  # 1/20 (5 %) of a file system is kept free
_TEST_FILE = re.compile(r"sweetspot\.([a-z][a-z0-9_-]*\.)?[0-9]+\.(new\.)?[0-9]+")  # worker.recipes.base
_LOCK = struct.Struct("=hh4xqqi4x")  # struct flock of 64-bit Linux


def _place(
    entry: PolicyEntry, path: str, *, lies_in: int, cwd_fd: int, directory_fd: int, recheck: Recheck
) -> OpenTarget:
    devices = usage.devices_of(lies_in)
    alone = len(devices) == 1
    return OpenTarget(
        path=path, device=devices[0] if alone else "", several=() if alone else devices, cwd_fd=cwd_fd,
        directory_fd=directory_fd, target=entry.id, recheck=recheck,
    )  # fmt: skip


def _refuse_mounted(name: str, fd: int, shown: str) -> None:
    """Refuse a file over which something was mounted. It cannot happen on a private copy of the mount
    (`mounts.isolated`)."""
    try:
        mounts.refuse_mounted(name, fd, shown)
    except mounts.MountInside as error:
        raise GuardRefused(error.code, str(error)) from error


# ---- directories


@contextmanager
def hold_directory(entry: PolicyEntry, streams: Sequence[Stream]) -> Iterator[OpenTarget]:
    """Hold the worker's private directory in the target; trials in it exclude each other."""
    with (
        opened_directory(entry.path) as outer,
        private(outer, entry.path) as inner,
        mounts.isolated(inner) as cwd_fd,
    ):
        shown = f"{entry.path}/{PRIVATE}"

        def recheck(*, programs: bool) -> None:
            for name in os.listdir(cwd_fd):  # noqa: PTH208 - of a descriptor
                _refuse_mounted(name, cwd_fd, shown)
            _refuse_files_in_use(inner, shown, everywhere=programs)

        lock(inner, shown)
        _refuse_odd_content(inner, shown)
        recheck(programs=True)
        _make_room(entry, streams, inner, shown)
        yield _place(entry, entry.path, lies_in=inner, cwd_fd=cwd_fd, directory_fd=inner, recheck=recheck)


def survey_directory(entry: PolicyEntry) -> Survey:
    try:
        with opened_directory(entry.path) as fd:
            refuse_open_to_others(entry.path, os.fstat(fd))
            reusable = _reusable(fd)
            return Survey(
                device=usage.device_of(fd), size_bytes=_room(entry, fd, reusable), file_system=_file_system(fd),
                test_file_bytes=reusable,
            )  # fmt: skip
    except GuardRefused as refused:
        return Survey(problem=refused.message)


def _room(entry: PolicyEntry, fd: int, reusable: int) -> int:
    """Bytes that test files may take, as `_Space` limits them."""
    free, total = _free(fd)
    room = max(0, free - total // SPARE_SHARE) + reusable
    return room if entry.max_bytes is None else min(room, entry.max_bytes)


def _file_system(fd: int) -> str:
    """btrfs has a device number for each subvolume, so its devices identify it."""
    numbers = os.fstat(fd).st_dev
    shown = sysfs.numbers_of(numbers)
    return shown if sysfs.name_of(shown) else ("+".join(usage.devices_of(fd)) or shown)[:MAX_LABEL]


def _reusable(outer: int) -> int:
    """Bytes of test files, which later trials use again or remove."""
    try:
        fd = os.open(PRIVATE, _DIRECTORY, dir_fd=outer)
    except OSError:
        return 0
    try:
        return sum(_allocated(fd, name) for name in _oldest_first(fd))
    finally:
        os.close(fd)


@contextmanager
def private(outer: int, path: str) -> Iterator[int]:
    refuse_open_to_others(path, os.fstat(outer))
    try:
        os.mkdir(PRIVATE, 0o700, dir_fd=outer)
    except FileExistsError:
        pass
    except OSError as error:
        raise GuardRefused("guard_path", f"{path}/{PRIVATE} cannot be created: {error.strerror}.") from error
    try:
        fd = os.open(PRIVATE, _DIRECTORY, dir_fd=outer)
    except OSError as error:
        raise GuardRefused(
            "guard_path", f"{path}/{PRIVATE} is not the worker's directory: {error.strerror}."
        ) from error
    try:
        _refuse_not_private(f"{path}/{PRIVATE}", os.fstat(fd))
        if usage.mount_id(fd) != usage.mount_id(outer):
            raise GuardRefused("guard_mounted", f"{path}/{PRIVATE} is a mount point: unmount it.")
        yield fd
    finally:
        os.close(fd)


def _refuse_not_private(shown: str, facts: os.stat_result) -> None:
    if facts.st_uid != os.geteuid() or facts.st_mode & 0o077:
        raise GuardRefused(
            "guard_path",
            f"{shown} must belong to user {os.geteuid()} and have mode 700; it belongs to {facts.st_uid} and has mode "
            f"{facts.st_mode & 0o7777:o}. Find out who created it, then remove it.",
        )


def lock(fd: int, shown: str) -> None:
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        raise GuardRefused("guard_busy", f"Another trial uses {shown}.") from error


def _lock_ranges(fd: int, shown: str) -> None:
    """Refuse a file with locks on ranges of bytes, as QEMU sets them, and keep a lock that prevents new ones.

    The locks belong to the open file description (fcntl(2), F_OFD_SETLK): they also show across PID namespaces.
    """
    lock = fcntl.fcntl(fd, fcntl.F_OFD_GETLK, _range_lock(fcntl.F_WRLCK))
    if _LOCK.unpack(lock)[0] != fcntl.F_UNLCK:
        raise GuardRefused("guard_busy", f"{shown} is locked by another program, such as a virtual machine: stop it.")
    try:
        fcntl.fcntl(fd, fcntl.F_OFD_SETLK, _range_lock(fcntl.F_RDLCK))
    except (BlockingIOError, PermissionError) as error:
        raise GuardRefused("guard_busy", f"{shown} was locked by another program during the check.") from error


def _range_lock(kind: int) -> bytes:
    """A lock on all bytes."""
    return _LOCK.pack(kind, os.SEEK_SET, 0, 0, 0)


def _refuse_odd_content(fd: int, shown: str) -> None:
    """Refuse links and mounts in the private directory, because engines would follow them."""
    for name in os.listdir(fd):
        _refuse_mounted(name, fd, shown)
        facts = os.stat(name, dir_fd=fd, follow_symlinks=False)
        refuse_odd_file(f"{shown}/{name}", facts)
        if facts.st_uid != os.geteuid():
            raise GuardRefused("guard_path", f"{shown}/{name} belongs to user {facts.st_uid}. Remove it.")


def _refuse_files_in_use(fd: int, shown: str, *, everywhere: bool) -> None:
    """Refuse files in the private directory that a loop device or a mount uses: trials overwrite them."""
    kind = loop_files.opened_file(fd).kind
    files = []
    for entry in os.scandir(fd):
        with suppress(FileNotFoundError):  # another stream has removed it
            facts = entry.stat(follow_symlinks=False)
            if stat.S_ISREG(facts.st_mode):
                files.append(loop_files.File(facts.st_dev, facts.st_ino, kind))
    if files:
        _refuse_loops_and_mounts(shown, files, strict=False, everywhere=everywhere)


def _refuse_loops_and_mounts(shown: str, files: Sequence[loop_files.File], *, strict: bool, everywhere: bool) -> None:
    if users := loop_files.on_files(files, strict=strict):
        raise GuardRefused("guard_held", f"{shown} is used by {', '.join(users)}: detach it first.")
    for mounted in usage.read_usage(everywhere=True).mounted_files if everywhere else ():
        if mounted.file and any(file.may_be(loop_files.File(*mounted.file)) for file in files):
            raise GuardRefused("guard_mounted", f"{shown} is mounted on {mounted.mount.shown}. Unmount it first.")


def _make_room(entry: PolicyEntry, streams: Sequence[Stream], fd: int, shown: str) -> None:
    """Remove test files of other sizes, the oldest first, as far as the files of these streams need their space.

    Raises GuardRefused no_space; then nothing is removed.
    """
    files = [name for stream in streams for name in recipes.render(stream).files]
    missing = sum(_missing(entry, stream, fd) for stream in streams)
    space = _Space(
        entry, shown, missing=missing, free=_free(fd),
        taken=sum(_allocated(fd, name) for name in os.listdir(fd)),
    )  # fmt: skip
    others = {name: _allocated(fd, name) for name in _oldest_first(fd) if name not in files}
    if problem := space.problem(removed=sum(others.values())):
        raise GuardRefused("guard_no_space", problem)
    removed = 0
    for name, allocated in others.items():
        if not space.problem(removed=removed):
            return
        os.unlink(name, dir_fd=fd)
        removed += allocated


def _oldest_first(fd: int) -> list[str]:
    """The test files of earlier trials."""
    names = [name for name in os.listdir(fd) if _TEST_FILE.fullmatch(name)]
    return sorted(names, key=lambda name: os.stat(name, dir_fd=fd, follow_symlinks=False).st_mtime)


@dataclass(frozen=True)
class _Space:
    """In bytes: what the workload's files still need, free and total space, and what all files take."""

    entry: PolicyEntry
    shown: str
    missing: int
    free: tuple[int, int]
    taken: int

    def problem(self, *, removed: int) -> str:
        """Why the files do not fit after others were removed, as a sentence; "" if they fit."""
        free, total = self.free[0] + removed, self.free[1]
        if self.missing and free - self.missing < total // SPARE_SHARE:
            return (
                f"{self.entry.path}: the workload needs {self.missing} more bytes. {free} bytes are free or used by "
                f"test files of other sizes, and 5 % of the file system ({total // SPARE_SHARE} bytes) must stay free. "
                "Delete other files on this file system, or use a smaller size."
            )
        taken = self.taken + self.missing - removed
        if self.entry.max_bytes is not None and taken > self.entry.max_bytes:
            return (
                f"{self.shown} would hold {taken} bytes; the policy allows {self.entry.max_bytes}. Remove files or "
                "raise max_bytes."
            )
        return ""


def _missing(entry: PolicyEntry, stream: Stream, fd: int) -> int:
    """Bytes that its files, or its temporary folder, need beside those that are there."""
    files, size = recipes.render(stream).files, stream.workload.size_bytes
    if not files:
        return stream.workload.space_bytes
    if size is None:
        raise GuardRefused("guard_no_space", f"The workload has no file size, which files in {entry.path} need.")
    return sum(max(0, size - _allocated(fd, name)) for name in files)


def _allocated(fd: int, name: str) -> int:
    try:
        return os.stat(name, dir_fd=fd, follow_symlinks=False).st_blocks * 512
    except FileNotFoundError:
        return 0


def _free(fd: int) -> tuple[int, int]:
    """Free and total bytes of the file system."""
    space = os.fstatvfs(fd)
    return space.f_bavail * space.f_frsize, space.f_blocks * space.f_frsize


# ---- files


@contextmanager
def hold_file(
    entry: PolicyEntry, policy: Policy, stream: Stream, armed_serials: tuple[str, ...]
) -> Iterator[OpenTarget]:
    """Hold an existing file in a directory that other users cannot change."""
    parent, name = os.path.split(entry.path)
    with (
        opened_directory(parent) as directory,
        _open_file(directory, name, entry) as fd,
        mounts.isolated(directory) as cwd_fd,
    ):
        refuse_open_to_others(parent, os.fstat(directory))

        def recheck(*, programs: bool) -> None:
            _refuse_mounted(name, cwd_fd, ".")
            _refuse_other_file(directory, name, entry.path, os.fstat(fd))
            if stream.workload.writes:
                _refuse_file_in_use(entry.path, fd, programs=programs)
            if stream.workload.writes and programs:
                openers.refuse_if_open_anywhere(entry.path, fd)

        if stream.workload.writes:
            _refuse_write(entry, armed_serials)
            refuse_protected_file(entry, loop_files.opened_file(fd), policy)
            _refuse_file_in_use(entry.path, fd, programs=True)
            _lock_ranges(fd, entry.path)
            openers.refuse_if_open_anywhere(entry.path, fd)
        _refuse_short(stream, entry.path, os.fstat(fd))
        lock(fd, entry.path)
        yield _place(entry, name, lies_in=fd, cwd_fd=cwd_fd, directory_fd=directory, recheck=recheck)


def survey_file(entry: PolicyEntry) -> Survey:
    parent, name = os.path.split(entry.path)
    try:
        with opened_directory(parent) as directory, _open_file(directory, name, entry) as fd:
            refuse_open_to_others(parent, os.fstat(directory))
            return Survey(device=usage.device_of(fd), size_bytes=os.fstat(fd).st_size)
    except GuardRefused as refused:
        return Survey(problem=refused.message)


@contextmanager
def _open_file(directory: int, name: str, entry: PolicyEntry) -> Iterator[int]:
    try:
        fd = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK, dir_fd=directory)
    except OSError as error:
        link = " (if it is a symbolic link, use the real path in the policy)" if error.errno == 40 else ""
        raise GuardRefused("guard_path", f"{entry.path}: {error.strerror}{link}.") from error
    try:
        if usage.mount_id(fd) != usage.mount_id(directory):
            raise GuardRefused("guard_mounted", f"{entry.path} is a mount point: another file is mounted over it.")
        refuse_odd_file(entry.path, os.fstat(fd))
        refuse_open_to_others(entry.path, os.fstat(fd))
        yield fd
    finally:
        os.close(fd)


def _refuse_write(entry: PolicyEntry, armed_serials: tuple[str, ...]) -> None:
    if not entry.destroy:
        raise GuardRefused(
            "guard_not_destroyable",
            f"{entry.path} would be overwritten; the policy has no destroy = true for {entry.id!r}.",
        )
    if entry.arming_serial not in armed_serials:
        raise GuardRefused(
            "guard_not_armed",
            f"{entry.path} would be overwritten; this run is not armed for {entry.arming_serial}.",
        )


def _refuse_other_file(directory: int, name: str, path: str, facts: os.stat_result) -> None:
    """Refuse a path that no longer names the file that is held, and a file that got a second name."""
    now = os.stat(name, dir_fd=directory, follow_symlinks=False)
    if not os.path.samestat(now, facts):
        raise GuardRefused("guard_path", f"{path} no longer names the file that was checked.")
    refuse_odd_file(path, now)


def _refuse_file_in_use(path: str, fd: int, *, programs: bool) -> None:
    """Refuse swap files, and files of loop devices; `programs`: also those that are mounted or that a program has."""
    file = loop_files.opened_file(fd)
    _refuse_loops_and_mounts(path, (file,), strict=True, everywhere=programs)
    if file.identities & {openers.identity_at(swap) for swap in usage.read_usage().swap_files}:
        raise GuardRefused("guard_held", f"{path} is used as swap. Run swapoff first.")
    if programs:
        openers.refuse_if_opened(path, file.identities)


def _refuse_short(stream: Stream, path: str, facts: os.stat_result) -> None:
    wanted = stream.workload.size_bytes or 0
    if wanted > facts.st_size:
        raise GuardRefused("guard_no_space", f"{path} has {facts.st_size} bytes, but the workload needs {wanted}.")


# Remove the worker's private directory of a directory target, without following links or crossing mounts.


def remove_private_directory(path: str) -> None:
    """Raises GuardRefused if it is not the worker's own, contains a mount or is in use, and OSError."""
    with opened_directory(path) as outer, private(outer, path) as inner:
        lock(inner, f"{path}/{PRIVATE}")
        try:
            mounts.remove_tree(PRIVATE, outer, path)
        except mounts.MountInside as error:
            raise GuardRefused(error.code, str(error)) from error
