"""Read and check the policy file: a TOML file that only root or the worker's user can write.

`deploy/policy.example.toml` shows every key. Each trial reads the file, so changes apply to the next trial.
"""

import os
import re
import stat
import tomllib
from collections import Counter
from pathlib import Path

import msgspec

from worker.contract.purge import PurgeMethod
from worker.contract.workload import TargetKind
from worker.policy.checks import SIGNATURE_NAMES, entry_problem, pool_problem
from worker.policy.model import ALL_SETTINGS, HostPolicy, Policy, PolicyEntry, SettingNames
from worker.policy.pools import Pool

MAX_POLICY_BYTES = 1024 * 1024
_KINDS = tuple(kind for kind in TargetKind if kind is not TargetKind.POOL)  # a pool is a table of its own


class PolicyError(Exception):
    """The policy cannot be used, so nothing is allowed. Codes: policy_missing, policy_insecure, policy_invalid."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


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
            raise PolicyError("policy_invalid", f"{path}, line {_line(text, index)}, target {entry.id!r}: {problem}")
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
    if facts.st_uid not in (0, os.geteuid()):
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
