"""The host's policy file: which targets, pools and settings the administrator allows. Imports only the contract."""

import hashlib
import os
import re
import stat
import tomllib
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta

from worker.contract.base import Failed, Id, Name
from worker.contract.base import Path as AbsolutePath
from worker.contract.inventory import PurgeMethod
from worker.contract.workload import TargetKind
from worker.kernel.files import is_foreign
from worker.kernel.sysfs import is_shortened, is_stable, shortened

# Pools of the policy: drives on which layouts may be built.
#
# A `[[pool]]` lists targets of the same file. Each target is a whole drive with `destroy = true`, so that its stable
# id and serial are written only once, and layouts are built only on drives that may be overwritten.


class Pool(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One `[[pool]]`. Layouts take its drives in this order."""

    id: Id
    drives: Annotated[tuple[Id, ...], Meta(min_length=1, max_length=64)]


def pool_identity(pool_id: str, drives: Iterable[tuple[str, str]]) -> str:
    """The stable id of a pool of drives (stable id, serial). It depends on the drives and their order."""
    digest = hashlib.sha256("\n".join(f"{identity} {serial}" for identity, serial in drives).encode()).hexdigest()
    return f"pool:{pool_id}:{digest[:12]}"


# The host administrator's permissions: targets, pools of drives, and settings of the host.
#
# Everything that is not listed is refused. No message of the server can extend the list.

ALL_SETTINGS = "*"
ANY_SIGNATURE = "*"  # not allowed in a policy file: only for what the worker has built itself


class SettingNames(msgspec.Struct, frozen=True, kw_only=True):
    """Names of the settings that this worker knows."""

    host: tuple[str, ...]  # settings of the whole host
    target: tuple[str, ...]  # settings of a device or its controller
    covered: tuple[str, ...]  # settings that "*" allows for a target: they do not risk data or affect other devices


class PolicyEntry(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One `[[target]]`."""

    id: Id
    kind: TargetKind
    path: AbsolutePath  # of a slot: /<PCI address of the controller>/<enclosure>:<slot>
    stable_id: Name | None = None  # block: required; others: dir:<path>, file:<path>, slot:<serial>
    serial: str = ""  # block: required if the drive has one; slot: required
    destroy: bool = False  # block: an empty device may be overwritten; file: the content may be overwritten
    # Block: signatures that may be overwritten too, by the TYPE or PTTYPE of blkid(8), such as "ext4" and "gpt".
    destroy_signatures: tuple[str, ...] = ()
    purge: tuple[PurgeMethod, ...] = ()  # block: erase commands of the drive that `destroy` alone does not permit
    experimental: bool = False  # block and slot: methods that were not tested on real hardware
    settings: tuple[str, ...] = ()  # of the block device under the target; `load` expands "*"
    max_bytes: int | None = None  # directory: largest total size of the worker's files in it
    max_write_bytes: int | None = None  # limit of writes by one run to the drives under the target
    read_mounted: bool = False  # block: may be read while it is mounted or in use

    @property
    def identity(self) -> str:
        """The stable id under which the server knows the target."""
        if self.kind is TargetKind.SLOT:
            return shortened(f"slot:{self.serial}")
        prefix = "dir" if self.kind is TargetKind.DIRECTORY else "file"
        return self.stable_id or shortened(f"{prefix}:{self.path}")

    def purge_problem(self, method: PurgeMethod) -> str:
        """Why the policy does not permit this purge method; "" if it does. `destroy` alone permits discards."""
        if method is PurgeMethod.DISCARD:
            return ""
        missing = [] if method in self.purge else [f'purge = ["{method.value}"]']
        missing += [] if self.experimental else ["experimental = true (it was not tested on real hardware)"]
        return f"The policy does not permit it: {self.id} needs {' and '.join(missing)}." if missing else ""

    @property
    def arming_serial(self) -> str:
        """The text that a person types before the target may be overwritten."""
        return self.serial or self.identity


class HostPolicy(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`[host]`: settings of the whole host, each by name. "*" is not allowed here."""

    settings: tuple[str, ...] = ()


class Policy(msgspec.Struct, frozen=True):
    path: Path
    targets: tuple[PolicyEntry, ...]
    host_settings: tuple[str, ...] = ()
    pools: tuple[Pool, ...] = ()

    def entry(self, target_id: str) -> PolicyEntry | None:
        return next((entry for entry in self.targets if entry.id == target_id), None)

    def drives(self, pool_id: str) -> tuple[PolicyEntry, ...]:
        """The drives of a pool in its order; () if the pool does not exist."""
        names = next((pool.drives for pool in self.pools if pool.id == pool_id), ())
        return tuple(entry for name in names if (entry := self.entry(name)))

    def identity(self, pool_id: str) -> str:
        """The stable id of a pool as a target; "" if the pool does not exist."""
        drives = ((drive.identity, drive.serial) for drive in self.drives(pool_id))
        return pool_identity(pool_id, drives) if any(pool.id == pool_id for pool in self.pools) else ""


# Checks of `[[target]]` and `[[pool]]` tables beyond their types. Each returns a sentence, or "" without a problem.

_SLOT = re.compile(r"/[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]/\d*:\d+", re.ASCII)
# As `kernel.signatures` writes it: `wwn-0x5000c500a1b2c3d4-part1:<PARTUUID>@<start>+<size>`.
_PARTITION = re.compile(r"(?:.+-part[1-9]\d*|name:[^:]+):[0-9a-f-]*@\d+\+[1-9]\d*", re.ASCII)
_NEARLY_PARTITION = re.compile(r"-part\d*(?:\Z|:)|@\d*\+", re.ASCII)
_PARTITION_PATH = re.compile(
    r"/dev/(?:(?:sd|vd|hd)[a-z]+\d+|(?:nvme\d+n|mmcblk|loop|md|nbd)\d+p\d+|disk/by-part(?:uuid|label)/.+|disk/.+-part\d+)",
    re.ASCII,
)
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
    if _is_damaged_partition(entry.stable_id, entry.path):
        return (
            f"stable_id {entry.stable_id!r} is not the id of a partition, so it would protect nothing. Copy the id of "
            "the partition from “sweetspot-worker inventory --json” (…-part1:PARTUUID@START+SIZE)."
        )
    if entry.destroy and not is_stable(entry.stable_id):
        return (
            f"{entry.stable_id} is only a kernel name, which may mean another disk after a reboot: destroy = true "
            "is not allowed. Give the disk a serial number (virtual machines: serial=…). Network block devices (nbd) "
            "and volumes of ZFS have none: use their drives."
        )
    wrong = [n for n in entry.destroy_signatures if n in SIGNATURE_NAMES or not _SIGNATURE.fullmatch(n)]
    if wrong:
        known = SIGNATURE_NAMES.get(wrong[0])
        advice = f'write "{known}"' if known else 'use the names of wipefs(8), such as "ext4", "gpt" and "LVM2_member"'
        return f"destroy_signatures names {wrong[0]!r}: {advice}."
    if (entry.destroy_signatures or entry.purge) and not entry.destroy:
        return "destroy_signatures and purge need destroy = true."
    return "max_bytes is only for directories." if entry.max_bytes is not None else ""


def _is_damaged_partition(identity: str, path: str) -> bool:
    """Whether the id or the path is meant for a partition, but the id is that of none."""
    if _PARTITION.fullmatch(identity) or is_shortened(identity):
        return False
    return bool(_NEARLY_PARTITION.search(identity) or _PARTITION_PATH.fullmatch(path))


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
    drives = [known[name] for name in pool.drives]
    for entry in drives:
        if entry.kind not in (TargetKind.BLOCK, TargetKind.SLOT) or not entry.destroy or entry.read_mounted:
            return f"{entry.id} must be a block device with destroy = true and without read_mounted, or a slot."
    if len({entry.kind for entry in drives}) > 1:
        return "a pool cannot contain both block devices and slots of a controller."
    if len({entry.identity for entry in drives}) < len(drives):
        return "a drive is listed twice."
    return ""


# Read and check the policy file: a TOML file that only root or the worker's user can write.
#
# `deploy/policy.example.toml` shows every key. Each trial reads the file, so changes apply to the next trial.

MAX_POLICY_BYTES = 1024 * 1024
_KINDS = tuple(kind for kind in TargetKind if kind is not TargetKind.POOL)  # a pool is a table of its own


class PolicyError(Failed):
    """The policy cannot be used, so nothing is allowed. Codes: policy_missing, policy_insecure, policy_invalid."""


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    target: tuple[PolicyEntry, ...] = ()
    pool: tuple[Pool, ...] = ()
    host: HostPolicy = HostPolicy()


def load(path: Path, settings: SettingNames) -> Policy:
    """Read and check the whole file. Raises PolicyError with file, line and key."""
    text = _read(path)
    try:
        read = msgspec.convert(tomllib.loads(text), _File)
    except tomllib.TOMLDecodeError as error:
        raise PolicyError("policy_invalid", f"{path}: {error}.") from error
    except msgspec.ValidationError as error:
        raise PolicyError("policy_invalid", _located(path, text, str(error))) from error
    for index, entry in enumerate(read.target):
        if problem := entry_problem(entry, settings.target):
            key = next((word for word in problem.split() if word in PolicyEntry.__struct_fields__), "")
            line = _line(text, index, key)
            raise PolicyError("policy_invalid", f"{path}, line {line}, target {entry.id!r}: {problem}")
    _refuse_duplicates(path, (*read.target, *read.pool))
    for pool in read.pool:
        if problem := pool_problem(pool, read.target):
            raise PolicyError("policy_invalid", f"{path}, pool {pool.id!r}: {problem}")
    _refuse_unknown_host_settings(path, read.host, settings.host)
    entries = tuple(_expanded(entry, settings.covered) for entry in read.target)
    return Policy(path, entries, read.host.settings, read.pool)


def _expanded(entry: PolicyEntry, covered: tuple[str, ...]) -> PolicyEntry:
    """Replace "*" by the names of the settings."""
    if ALL_SETTINGS not in entry.settings:
        return entry
    names = dict.fromkeys((*covered, *(name for name in entry.settings if name != ALL_SETTINGS)))
    return msgspec.structs.replace(entry, settings=tuple(names))


def _read(path: Path) -> str:
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except FileNotFoundError as error:
        raise PolicyError(
            "policy_missing", f"The policy file {path} does not exist, so nothing may be used on this host."
        ) from error
    except OSError as error:
        raise PolicyError("policy_missing", f"The policy {path} cannot be read: {error.strerror}.") from error
    with os.fdopen(fd, "rb") as file:
        _refuse_insecure(path, os.fstat(fd), what="The policy")
        for directory in path.resolve().parents:  # whoever may rename one of them can put another policy there
            _refuse_insecure(directory, directory.stat(), what="The policy's directory")
        return _decoded(path, file.read(MAX_POLICY_BYTES))


def _decoded(path: Path, content: bytes) -> str:
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        raise PolicyError("policy_invalid", f"{path} is not UTF-8 text (byte {error.start}).") from error


def _refuse_insecure(path: Path, facts: os.stat_result, *, what: str) -> None:
    """Anyone who can write the policy can have any disk overwritten."""
    directory = stat.S_ISDIR(facts.st_mode)
    if not directory and not stat.S_ISREG(facts.st_mode):
        raise PolicyError("policy_insecure", f"{what} {path} is not a regular file.")
    if is_foreign(facts):
        raise PolicyError(
            "policy_insecure",
            f"{what} {path} belongs to user {facts.st_uid}; it must belong to root or to the worker's user "
            f"({os.geteuid()}): chown it.",
        )
    if facts.st_mode & 0o022 and not (directory and facts.st_mode & stat.S_ISVTX):
        raise PolicyError(
            "policy_insecure",
            f"{what} {path} is writable by other users (mode {stat.S_IMODE(facts.st_mode):o}): chmod go-w {path}",
        )


# ---- checking


def _refuse_unknown_host_settings(path: Path, host: HostPolicy, known: tuple[str, ...]) -> None:
    if unknown := [name for name in host.settings if name not in known]:
        raise PolicyError(
            "policy_invalid",
            f"{path}: settings of [host] names {unknown[0]!r}, which is not a setting of the host; known settings: "
            f"{', '.join(known)}.",
        )


def _refuse_duplicates(path: Path, entries: tuple[PolicyEntry | Pool, ...]) -> None:
    for name, count in Counter(entry.id for entry in entries).items():
        if count > 1:
            raise PolicyError(
                "policy_invalid", f"{path}: {count} targets or pools have the id {name!r}; ids must differ."
            )


# ---- positions in the file


def _located(path: Path, text: str, error: str) -> str:
    """msgspec's message with the line number: `… - at `$.target[1].kind``."""
    words, _, place = error.partition(" - at `")
    words += _valid_values(words, place)
    index = re.search(r"target\[([0-9]+)\]", place)
    if index is None:
        key = re.search(r"`(\w+)`", words, re.ASCII)
        line = next((n for n, row in enumerate(text.splitlines(), 1) if key and key[1] in row), 1)
        return f"{path}, line {line}: {words}. Only [[target]], [[pool]] and [host] are allowed."
    keys = re.findall(r"\.(\w+)", place, re.ASCII) + re.findall(r"unknown field `(\w+)`", words, re.ASCII)
    line = _line(text, int(index[1]), keys[-1])
    return f"{path}, line {line}, target {int(index[1]) + 1}: {keys[-1] + ': ' if keys[-1] != 'target' else ''}{words}"


def _valid_values(words: str, place: str) -> str:
    """What the file may contain where msgspec found something else."""
    if words.startswith("Object contains unknown field `destroy_members`"):
        names = ", ".join(f'"{name}" instead of "{old}"' for old, name in SIGNATURE_NAMES.items())
        return f": write destroy_signatures = [...], with the names of wipefs(8), such as {names}"
    if words.startswith("Object contains unknown field"):
        kinds = {"$.target[": PolicyEntry, "$.pool[": Pool, "$.host": HostPolicy}
        known = next((kind for prefix, kind in kinds.items() if place.startswith(prefix)), None)
        return f"; valid: {', '.join(known.__struct_fields__)}" if known else ""
    if words.startswith("Invalid enum value"):
        values = PurgeMethod if ".purge[" in place else _KINDS
        return f"; valid: {', '.join(value.value for value in values)}"
    return ""


def _line(text: str, index: int, key: str = "") -> int:
    """Line (from 1) of a key in the table with this index (from 0), or of the table's header."""
    rows: list[str] = text.splitlines()
    heads = [n for n, row in enumerate(rows, 1) if re.match(r"\s*\[\[\s*\"?target\"?\s*\]\]", row)]
    if index >= len(heads):
        return 1
    end = heads[index + 1] - 1 if index + 1 < len(heads) else len(rows)
    inside = range(heads[index], end)
    return next((n + 1 for n in inside if key and re.match(rf"\s*\"?{key}\"?\s*=", rows[n])), heads[index])
