"""Report the policy's targets and pools to the server, with their permissions and current state."""

import logging
import os
from collections.abc import Collection, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from worker import guard, policy
from worker.contract.base import MAX_TEXT
from worker.contract.inventory import MAX_WARNINGS, MEMORY_FILE_SYSTEMS, QUARANTINED, Controller, PolicyTarget
from worker.contract.workload import TargetKind
from worker.drives.records import Drives
from worker.guard.blocks import write_problem
from worker.guard.content import unknown_signatures
from worker.guard.slots import controllers_now
from worker.journal import BY_HAND, Journal, JournalError, LayoutRecord
from worker.kernel import sysfs
from worker.kernel.files import unwritten_bytes, unwritten_words
from worker.kernel.usage import mount_of
from worker.layouts.building import built_on as built_on_drives
from worker.layouts.building import removal_command
from worker.link.enrolment import Paths
from worker.policy import Policy, PolicyEntry, Pool
from worker.settings import SETTING_NAMES

# Warnings about a target before a trial: some or all of its reads would not come from a drive.

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
    warnings = [*_devices(device), *_unwritten_loops(device)]
    with suppress(OSError, ValueError):
        warnings += _files(entry) if entry.kind in (TargetKind.DIRECTORY, TargetKind.FILE) else []
    if entry.kind is TargetKind.BLOCK and drives is not None and drives.is_purged(device):
        warnings.append(
            f"{device} was purged and not written since, so it can answer reads without reading its flash. "
            "Fill it before you measure reads."
        )
    return tuple(words[:MAX_TEXT] for words in warnings)


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


log = logging.getLogger(__name__)

POOL_PATH = "/dev"  # of a pool as a target: only its drives have paths


def report_targets(
    allowed: Policy,
    *,
    built_on: Mapping[str, LayoutRecord] | None = None,
    controllers: Collection[Controller] | None = None,
    quarantined: Mapping[str, str] | None = None,
    drives: Drives | None = None,
) -> tuple[PolicyTarget, ...]:
    """Every target and pool with its state now.

    `built_on`: the worker's own layouts by the stable ids of their drives. `quarantined`: stable ids of quarantined
    drives, with the reason. `controllers` are those of an inventory; None: call their tools if the policy has slots,
    which takes time. Without `drives`, no warning says that a drive is purged.
    """
    slots = any(entry.kind is TargetKind.SLOT for entry in allowed.targets)
    known = controllers_now() if controllers is None and slots else tuple(controllers or ())
    layouts, locked = built_on or {}, quarantined or {}
    reports = {entry.id: _report_entry(entry, allowed, layouts, known, drives, locked) for entry in allowed.targets}
    return (*reports.values(), *(_report_pool(pool, allowed, reports) for pool in allowed.pools))


def report_targets_here(allowed: Policy, paths: Paths) -> tuple[PolicyTarget, ...]:
    """Every target and pool with its state now, and with what the worker's state directory says about its drives."""
    return report_targets(
        allowed,
        built_on=layouts_here(paths),
        quarantined=guard.quarantined(paths.state),
        drives=Drives(paths.drives),
    )


def layouts_here(paths: Paths) -> dict[str, LayoutRecord]:
    """The worker's own layouts by the stable ids of their drives; {} if its journal cannot be read."""
    try:
        if not paths.journal.exists():
            return {}
        with closing(Journal(paths.journal)) as journal:
            return built_on_drives(journal)
    except (JournalError, OSError) as error:
        log.warning("The worker's layouts are unknown: %s", error)
        return {}


def _report_entry(
    entry: PolicyEntry,
    allowed: Policy,
    built_on: Mapping[str, LayoutRecord],
    controllers: Collection[Controller],
    drives: Drives | None,
    quarantined: Mapping[str, str],
) -> PolicyTarget:
    layout = built_on.get(entry.identity)
    survey = guard.survey(entry, own_layout=layout is not None, controllers=controllers)
    problem = _quarantine_problem(survey.device, quarantined) or survey.problem
    return PolicyTarget(
        id=entry.id,
        kind=entry.kind,
        path=entry.path,
        stable_id=entry.identity,
        serial=entry.serial,
        destroy=entry.destroy,
        destroy_signatures=entry.destroy_signatures,
        settings=entry.settings,
        present=not problem,
        problem=problem[:2000],
        max_write_bytes=entry.max_write_bytes,
        size_bytes=survey.size_bytes,
        file_system=survey.file_system,
        test_file_bytes=survey.test_file_bytes,
        logical_block_bytes=(sysfs.logical_block_bytes(survey.device) or 0) if survey.device else 0,
        device=survey.device,
        opens=survey.opens or None,
        model=sysfs.model(survey.device)[:200] if survey.device else survey.model,
        firmware=sysfs.firmware(survey.device)[:200] if survey.device else survey.firmware,
        warnings=() if problem else tuple(_warnings(entry, allowed, layout, survey.device, drives))[:MAX_WARNINGS],
    )


def _warnings(
    entry: PolicyEntry, allowed: Policy, layout: LayoutRecord | None, device: str, drives: Drives | None
) -> Iterator[str]:
    """Trials that would be refused come first."""
    if layout is not None and layout.run == BY_HAND:
        yield (
            f"The layout `{layout.line}` was built on it by hand. Trials on this drive are refused until it is taken "
            f"down: {removal_command(layout)}"
        )[:MAX_TEXT]
    may_write = layout is None and entry.kind is TargetKind.BLOCK and entry.destroy
    if may_write and (problem := write_problem(entry, allowed)):
        yield f"Trials that write are refused. {problem}"[:MAX_TEXT]
    if unknown := unknown_signatures(entry):
        yield f"destroy_signatures names {', '.join(unknown)}, which this host's libblkid never reports."[:MAX_TEXT]
    yield from target_warnings(entry, device, drives)


def _quarantine_problem(device: str, quarantined: Mapping[str, str]) -> str:
    drives = map(sysfs.stable_id, sysfs.drives_under([device])) if device else ()
    return next((QUARANTINED + quarantined[drive] for drive in drives if drive in quarantined), "")


def _report_pool(pool: Pool, allowed: Policy, drives: Mapping[str, PolicyTarget]) -> PolicyTarget:
    """A pool can be used while all its drives can be used, and allows the settings that all of them allow."""
    reports = [drives[name] for name in pool.drives]
    missing = [each for each in reports if not each.present]
    return PolicyTarget(
        id=pool.id,
        kind=TargetKind.POOL,
        path=POOL_PATH,
        stable_id=allowed.identity(pool.id),
        destroy=True,
        settings=tuple(name for name in reports[0].settings if all(name in each.settings for each in reports)),
        present=not missing,
        problem="; ".join(f"{each.id}: {each.problem}" for each in missing)[:2000],
        size_bytes=sum(each.size_bytes for each in reports),
        logical_block_bytes=max((each.logical_block_bytes for each in reports), default=0),
        model=", ".join(dict.fromkeys(each.model for each in reports if each.model))[:200],
        drives=pool.drives,
        warnings=tuple(dict.fromkeys(words for each in reports for words in each.warnings))[:MAX_WARNINGS],
    )


def read_policy(path: Path) -> tuple[Policy | None, str]:
    """The policy, or None (nothing is allowed) with the reason if it cannot be read."""
    try:
        return policy.load(path, SETTING_NAMES), ""
    except policy.PolicyError as error:
        log.error("The policy cannot be read, so nothing is allowed: %s", error)
        return None, str(error)[:2000]
