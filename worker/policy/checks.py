"""Checks of `[[target]]` and `[[pool]]` tables beyond their types. Each returns a sentence, or "" without a problem."""

import os
import re
from collections.abc import Sequence

import msgspec

from worker.contract.workload import TargetKind
from worker.policy.model import ALL_SETTINGS, PolicyEntry
from worker.policy.pools import Pool
from worker.stable_id import is_stable

_SLOT = re.compile(r"/[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]/\d*:\d+", re.ASCII)
_SIGNATURE = re.compile(r"[A-Za-z0-9_.+-]+", re.ASCII)
# Names by which people call some formats -> the names of wipefs(8), which the policy uses.
SIGNATURE_NAMES = {
    "lvm2": "LVM2_member", "md raid": "linux_raid_member", "zfs": "zfs_member", "ceph bluestore": "ceph_bluestore",
    "oracle asm": "oracleasm", "vmfs": "VMFS_volume_member", "luks": "crypto_LUKS", "intel raid": "isw_raid_member",
    "ddf raid": "ddf_raid_member",
}  # fmt: skip


def entry_problem(entry: PolicyEntry, known_settings: Sequence[str]) -> str:
    if entry.path != os.path.normpath(entry.path) or entry.path.startswith("//"):
        return f"path {entry.path!r} must be written without “.”, “..”, double or trailing slashes."
    if entry.kind is TargetKind.POOL:
        return "a pool is not a [[target]]: write a [[pool]] with id and drives."
    if unknown := [n for n in entry.settings if n != ALL_SETTINGS and n not in known_settings]:
        return f"settings names {unknown[0]!r}, not a setting of a target; known: {', '.join(known_settings)}."
    if (entry.destroy_signatures or entry.purge) and entry.kind is not TargetKind.BLOCK:
        return "destroy_signatures and purge are only for block devices."
    if entry.experimental and entry.kind not in (TargetKind.BLOCK, TargetKind.SLOT):
        return "experimental is only for block devices and slots."
    if entry.max_write_bytes is not None and entry.max_write_bytes <= 0:
        return "max_write_bytes must be above 0."
    checks = {
        TargetKind.BLOCK: _block_problem,
        TargetKind.DIRECTORY: _directory_problem,
        TargetKind.FILE: _file_problem,
        TargetKind.SLOT: _slot_problem,
    }
    return checks[entry.kind](entry)


def _block_problem(entry: PolicyEntry) -> str:
    if not entry.path.startswith("/dev/"):
        return "the path of a block device must start with /dev/."
    if entry.stable_id is None:
        return "a block device needs a stable_id (“sweetspot-worker inventory --json” shows it)."
    if entry.destroy and not is_stable(entry.stable_id):
        return (
            f"{entry.stable_id} is only a kernel name, which may mean another disk after a reboot: destroy = true "
            "is not allowed. Give the disk a serial number (virtual machines: serial=…)."
        )
    wrong = [n for n in entry.destroy_signatures if n in SIGNATURE_NAMES or not _SIGNATURE.fullmatch(n)]
    if wrong:
        known = SIGNATURE_NAMES.get(wrong[0])
        advice = f'write "{known}"' if known else 'use the names of wipefs(8), such as "ext4", "gpt" and "LVM2_member"'
        return f"destroy_signatures names {wrong[0]!r}: {advice}."
    if (entry.destroy_signatures or entry.purge) and not entry.destroy:
        return "destroy_signatures and purge need destroy = true."
    return "max_bytes is only for directories." if entry.max_bytes is not None else ""


def _directory_problem(entry: PolicyEntry) -> str:
    if entry.destroy:
        return "destroy is only for block devices and files; in directories the worker writes only its own files."
    if entry.max_bytes is not None and entry.max_bytes <= 0:
        return "max_bytes must be above 0."
    return _plain_problem(entry)


def _slot_problem(entry: PolicyEntry) -> str:
    if not _SLOT.fullmatch(entry.path):
        return "the path of a slot must be /CONTROLLER/ENCLOSURE:SLOT, such as /0000:03:00.0/252:3 (see the host page)."
    if not entry.serial or not entry.destroy:
        return "a slot needs the drive's serial and destroy = true, because virtual drives overwrite it."
    if entry.read_mounted or entry.max_bytes is not None or entry.max_write_bytes is not None:
        return "slots do not support read_mounted, max_bytes and max_write_bytes."
    return f"remove stable_id; the worker uses slot:{entry.serial}." if entry.stable_id is not None else ""


def _file_problem(entry: PolicyEntry) -> str:
    return "max_bytes is only for directories." if entry.max_bytes is not None else _plain_problem(entry)


def _plain_problem(entry: PolicyEntry) -> str:
    if entry.serial or entry.read_mounted:
        return "serial and read_mounted are only for block devices."
    if entry.stable_id is not None and entry.stable_id != msgspec.structs.replace(entry, stable_id=None).identity:
        return f"remove stable_id; the worker uses {msgspec.structs.replace(entry, stable_id=None).identity}."
    return ""


def pool_problem(pool: Pool, entries: Sequence[PolicyEntry]) -> str:
    known = {entry.id: entry for entry in entries}
    if unknown := [name for name in pool.drives if name not in known]:
        return f"drives names {unknown[0]!r}, which is not a target in this file."
    found = [known[name] for name in pool.drives]
    for entry in found:
        if entry.kind not in (TargetKind.BLOCK, TargetKind.SLOT) or not entry.destroy or entry.read_mounted:
            return f"{entry.id} must be a block device with destroy = true and without read_mounted, or a slot."
    if len({entry.kind for entry in found}) > 1:
        return "a pool cannot contain both block devices and slots of a controller."
    if len({entry.identity for entry in found}) < len(found):
        return "a drive is listed twice."
    return ""
