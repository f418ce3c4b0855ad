"""Warnings about a target before a trial: some or all of its reads would not come from a drive."""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from worker.contract.inventory import MEMORY_FILE_SYSTEMS
from worker.contract.workload import TargetKind
from worker.drives.records import Drives
from worker.inventory import sysfs
from worker.inventory.unwritten import unwritten_bytes, unwritten_words
from worker.inventory.usage import mount_of
from worker.policy import PolicyEntry
from worker.text_limits import MAX_TEXT

# Types in /proc/self/mountinfo. File systems of a hypervisor's host count too: they share its caches.
_NETWORK = frozenset(
    {
        "9p", "afs", "beegfs", "ceph", "cifs", "coda", "davfs", "gpfs", "kafs", "lustre", "ncpfs",
        "nfs", "nfs4", "orangefs", "panfs", "prl_fs", "pvfs2", "smb3", "smbfs", "vboxsf", "virtiofs", "vmhgfs", "weka",
        "wekafs", "fuse.ceph", "fuse.ceph-fuse", "fuse.cephfs", "fuse.curlftpfs", "fuse.davfs", "fuse.davfs2",
        "fuse.gcsfuse", "fuse.glusterfs", "fuse.goofys", "fuse.hdfs", "fuse.juicefs", "fuse.lizardfs", "fuse.mfs",
        "fuse.moosefs", "fuse.mount-s3", "fuse.mountpoint-s3", "fuse.quobyte", "fuse.rclone", "fuse.s3fs",
        "fuse.seaweedfs", "fuse.smbnetfs", "fuse.sshfs", "fuse.vmhgfs-fuse", "fuse.weedfs",
    }
)  # fmt: skip


def target_warnings(entry: PolicyEntry, device: str, drives: Drives | None = None) -> tuple[str, ...]:
    """Sentences about a target that is present; () without warnings.

    `device`: kernel name of its block device. `drives` has the state of drives; without it, the state is unknown.
    """
    found = [*_devices(device), *_unwritten_loops(device)]
    with suppress(OSError, ValueError):
        found += _files(entry) if entry.kind in (TargetKind.DIRECTORY, TargetKind.FILE) else []
    if entry.kind is TargetKind.BLOCK and drives is not None and drives.is_purged(device):
        found.append(
            f"{device} was purged and not written since, so it can answer reads without reading its flash. "
            "Fill it before you measure reads."
        )
    return tuple(words[:MAX_TEXT] for words in found)


def _files(entry: PolicyEntry) -> Iterator[str]:
    """Warnings about the file system, and about the content of a file."""
    with _opened(entry.path) as fd:
        mount = mount_of(fd)
        if mount is not None:
            yield from _file_system(entry.path, mount.kind)
        if entry.kind is TargetKind.FILE:
            yield from _unwritten(entry.path, fd)


def _file_system(path: str, kind: str) -> Iterator[str]:
    if kind in MEMORY_FILE_SYSTEMS:
        yield f"{path} is on {kind}, which is memory and not a drive."
    elif kind in _NETWORK:
        yield f"{path} is on {kind}, a network file system: results include the network and the caches of its server."
    elif kind == "overlay":
        yield f"{path} is on an overlay file system, so the drive under it is unknown: its counters are not read."


def _devices(name: str) -> Iterator[str]:
    """Devices without a drive, directly or at the bottom of a stack."""
    for each in (name, *sysfs.below(name)) if name else ():
        if what := _no_drive(each):
            yield f"{each} is {what}."


def _no_drive(name: str) -> str:
    kind = sysfs.kind(name)
    if kind == "zram":
        return "zram, which is compressed memory and not a drive"
    if kind == "ram":
        return "a RAM disk, which is memory and not a drive"
    if name.startswith("nullb"):
        return "a null_blk device, which stores nothing"
    if sysfs.model(name).endswith("scsi_debug"):
        return "a scsi_debug device, which is memory and not a drive"
    return ""


def _unwritten_loops(name: str) -> Iterator[str]:
    """Loop devices whose file is in memory or has unwritten parts."""
    for each in (name, *sysfs.below(name)) if name else ():
        file = sysfs.backing_file(each)
        with suppress(OSError, ValueError):
            yield from _loop_file(each, file) if file else ()


def _loop_file(name: str, file: str) -> Iterator[str]:
    with _opened(file) as fd:
        mount = mount_of(fd)
        if mount is not None and mount.kind in MEMORY_FILE_SYSTEMS:
            yield f"{name} is a loop device; its file {file} is on {mount.kind}, which is memory and not a drive."
        start, end = sysfs.backing_range(name)
        for words in _unwritten(file, fd, start, end):
            yield f"{name} is a loop device: {words}"


def _unwritten(path: str, fd: int, start: int = 0, end: int | None = None) -> Iterator[str]:
    """`start` and `end`: the used part of the file, in bytes."""
    size = os.fstat(fd).st_size
    end = size if end is None else min(end, size)
    used = path if start == 0 and size - end < sysfs.SECTOR_BYTES else f"bytes {start} to {end} of {path}"
    if unwritten := unwritten_bytes(fd, end) - unwritten_bytes(fd, start):
        yield f"{unwritten_words(used, unwritten, end - start)} Write it before you measure reads."


@contextmanager
def _opened(path: str) -> Iterator[int]:
    fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        yield fd
    finally:
        os.close(fd)
