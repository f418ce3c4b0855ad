"""What the host's administrator allows: a TOML file that only root or the worker's user can write.

Deny by default: what is not listed may not be touched, and nothing that a server sends can
widen the list. `deploy/policy.example.toml` shows every key. The file is read anew for
every trial, so a change holds from the next one on.
"""

import os
import re
import stat
import tomllib
from collections import Counter
from collections.abc import Collection
from pathlib import Path

import msgspec

from worker import guard, policy_entries, pools, settings
from worker.contract.base import Id, Name
from worker.contract.base import Path as AbsolutePath
from worker.contract.controllers import Controller
from worker.contract.inventory import PolicyTarget
from worker.contract.workload import TargetKind
from worker.inventory import sysfs
from worker.policy_entries import ALL_SETTINGS
from worker.pools import Pool

LARGEST_POLICY = 1024 * 1024


class PolicyError(Exception):
    """The policy allows nothing; the text says why. Codes: policy_missing, policy_insecure, policy_invalid."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


class PolicyEntry(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One `[[target]]`."""

    id: Id
    kind: TargetKind
    path: AbsolutePath  # of a slot: /<PCI address of the controller>/<enclosure>:<slot>
    stable_id: Name | None = None  # block: must be given; others: dir:<path>, file:<path>, slot:<serial>
    serial: str = ""  # block: must be given if the drive has one; slot: must be given
    destroy: bool = False  # block and file: the content may be overwritten
    settings: tuple[str, ...] = ()  # of the block device that the target is or lies on; "*" for all
    max_bytes: int | None = None  # directory: what our files in it may take up in all
    max_write_bytes: int | None = None  # what one run may write to the drives that it is or lies on
    read_mounted: bool = False  # block: may be read while it is mounted or otherwise in use

    @property
    def identity(self) -> str:
        """The stable id under which the target is known to the server."""
        if self.kind is TargetKind.SLOT:
            return sysfs.shortened(f"slot:{self.serial}")
        prefix = "dir" if self.kind is TargetKind.DIRECTORY else "file"
        return self.stable_id or sysfs.shortened(f"{prefix}:{self.path}")

    @property
    def arming_serial(self) -> str:
        """What a person types before this may be overwritten."""
        return self.serial or self.identity

    def allows_setting(self, name: str) -> bool:
        return name in self.settings_allowed

    @property
    def settings_allowed(self) -> tuple[str, ...]:
        """Names; "*" stands for all that can cost no more than time and touch nothing but the device."""
        covered = settings.REGISTRY.values() if ALL_SETTINGS in self.settings else ()
        plain = (s.name for s in covered if s.scope is not settings.Scope.HOST and not s.by_name_only)
        return tuple(dict.fromkeys((*plain, *(name for name in self.settings if name != ALL_SETTINGS))))


class HostPolicy(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`[host]`: what is kernel-wide, and so touches whatever else the host does. Each by its name, there is no "*"."""

    settings: tuple[str, ...] = ()


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    target: tuple[PolicyEntry, ...] = ()
    pool: tuple[Pool, ...] = ()
    host: HostPolicy = HostPolicy()


class Policy(msgspec.Struct, frozen=True):
    path: Path
    targets: tuple[PolicyEntry, ...]
    host_settings: tuple[str, ...] = ()
    pools: tuple[Pool, ...] = ()

    def entry(self, target_id: str) -> PolicyEntry | None:
        return next((entry for entry in self.targets if entry.id == target_id), None)

    def drives(self, target_id: str) -> tuple[PolicyEntry, ...]:
        """Of a pool, in its order; () where there is no such pool."""
        names = next((pool.drives for pool in self.pools if pool.id == target_id), ())
        return tuple(entry for name in names if (entry := self.entry(name)))

    def identity(self, pool_id: str) -> str:
        """The stable id of a pool as a target; "" where there is no such pool."""
        pool = next((pool for pool in self.pools if pool.id == pool_id), None)
        return pools.identity(pool, self.drives(pool_id)) if pool else ""


def load(path: Path) -> Policy:
    """Read and check the whole file; raises PolicyError naming file, line and key."""
    text = _read(path)
    try:
        tables = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise PolicyError("policy_invalid", f"{path}: {error}.") from error
    try:
        read = msgspec.convert(tables, _File)
    except msgspec.ValidationError as error:
        raise PolicyError("policy_invalid", _located(path, text, str(error))) from error
    entries = read.target
    for index, entry in enumerate(entries):
        if problem := policy_entries.problem(entry):
            raise PolicyError("policy_invalid", f"{path}, line {_line(text, index)}, target {entry.id!r}: {problem}")
    _refuse_doubles(path, (*entries, *read.pool))
    for pool in read.pool:
        if problem := pools.problem(pool, entries):
            raise PolicyError("policy_invalid", f"{path}, pool {pool.id!r}: {problem}")
    _refuse_unknown_host_settings(path, read.host)
    return Policy(path, entries, read.host.settings, read.pool)


def report(
    policy: Policy, *, built_on: Collection[str] = (), controllers: Collection[Controller] | None = None
) -> tuple[PolicyTarget, ...]:
    """Every target and pool with what is there of it now. `built_on`: stable ids of drives under layouts of ours.

    `controllers` are those of an inventory; None: their tools are asked where the policy has slots, which takes time.
    """
    slots = any(entry.kind is TargetKind.SLOT for entry in policy.targets)
    known = guard.controllers_now() if controllers is None and slots else tuple(controllers or ())
    found = {entry.id: _report_entry(entry, built_on, known) for entry in policy.targets}
    return (*found.values(), *(pools.report(pool, policy.drives(pool.id), found) for pool in policy.pools))


def _report_entry(entry: PolicyEntry, built_on: Collection[str], controllers: Collection[Controller]) -> PolicyTarget:
    found = guard.survey(entry, ours=entry.identity in built_on, controllers=controllers)
    return PolicyTarget(
        id=entry.id,
        kind=entry.kind,
        path=entry.path,
        stable_id=entry.identity,
        serial=entry.serial,
        destroy=entry.destroy,
        settings=entry.settings_allowed,
        present=not found.problem,
        problem=found.problem[:2000],
        max_write_bytes=entry.max_write_bytes,
        size_bytes=found.size_bytes,
        device=found.device,
        opens=found.opens or None,
        model=sysfs.model(found.device)[:200] if found.device else found.model,
        firmware=sysfs.firmware(found.device)[:200] if found.device else found.firmware,
    )


# ---- reading


def _read(path: Path) -> str:
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except FileNotFoundError as error:
        raise PolicyError(
            "policy_missing", f"There is no policy file {path}: nothing may be touched on this host."
        ) from error
    except OSError as error:
        raise PolicyError("policy_missing", f"The policy {path} cannot be read: {error.strerror}.") from error
    with os.fdopen(fd, "rb") as file:
        _refuse_insecure(path, os.fstat(fd), what="The policy")
        _refuse_insecure(path.resolve().parent, path.resolve().parent.stat(), what="The policy's directory")
        return _decoded(path, file.read(LARGEST_POLICY))


def _decoded(path: Path, content: bytes) -> str:
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        raise PolicyError("policy_invalid", f"{path} is not UTF-8 text (byte {error.start}).") from error


def _refuse_insecure(path: Path, facts: os.stat_result, *, what: str) -> None:
    """Who can write the policy can have any disk overwritten."""
    directory = stat.S_ISDIR(facts.st_mode)
    if not directory and not stat.S_ISREG(facts.st_mode):
        raise PolicyError("policy_insecure", f"{what} {path} is not a regular file.")
    if facts.st_uid not in (0, os.geteuid()):
        raise PolicyError(
            "policy_insecure",
            f"{what} {path} belongs to user {facts.st_uid}; it must belong to root or to the worker's user "
            f"({os.geteuid()}): chown it.",
        )
    if facts.st_mode & 0o022 and not (directory and facts.st_mode & stat.S_ISVTX):
        raise PolicyError(
            "policy_insecure",
            f"{what} {path} can be written by others (mode {stat.S_IMODE(facts.st_mode):o}): chmod go-w {path}",
        )


# ---- checking


def _refuse_unknown_host_settings(path: Path, host: HostPolicy) -> None:
    known = [s.name for s in settings.REGISTRY.values() if s.scope is settings.Scope.HOST]
    if unknown := [name for name in host.settings if name not in known]:
        raise PolicyError(
            "policy_invalid",
            f"{path}: settings of [host] names {unknown[0]!r}, which is none of the host's; there is "
            f"{', '.join(known)}.",
        )


def _refuse_doubles(path: Path, entries: tuple[PolicyEntry | Pool, ...]) -> None:
    for name, count in Counter(entry.id for entry in entries).items():
        if count > 1:
            raise PolicyError(
                "policy_invalid", f"{path}: {count} targets or pools have the id {name!r}; ids must differ."
            )


# ---- where in the file


def _located(path: Path, text: str, error: str) -> str:
    """msgspec's words with the line: `… - at `$.target[1].kind``."""
    words, _, place = error.partition(" - at `")
    index = re.search(r"target\[(\d+)\]", place)
    if index is None:
        key = re.search(r"`(\w+)`", words)
        line = next((n for n, row in enumerate(text.splitlines(), 1) if key and key[1] in row), 1)
        return f"{path}, line {line}: {words}. Only [[target]] and [[pool]] tables and [host] are known."
    keys = re.findall(r"\.(\w+)", place) + re.findall(r"unknown field `(\w+)`", words)
    line = _line(text, int(index[1]), keys[-1])
    return f"{path}, line {line}, target {int(index[1]) + 1}: {keys[-1] + ': ' if keys[-1] != 'target' else ''}{words}"


def _line(text: str, index: int, key: str = "") -> int:
    """Line of a key of the table with that index (from 0), else of the table's head; from 1."""
    rows: list[str] = text.splitlines()
    heads = [n for n, row in enumerate(rows, 1) if re.match(r"\s*\[\[\s*\"?target\"?\s*\]\]", row)]
    if index >= len(heads):
        return 1
    end = heads[index + 1] - 1 if index + 1 < len(heads) else len(rows)
    inside = range(heads[index], end)
    return next((n + 1 for n in inside if key and re.match(rf"\s*\"?{key}\"?\s*=", rows[n])), heads[index])
