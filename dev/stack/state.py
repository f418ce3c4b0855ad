"""The state directory of a private stack: where it is, who may enter it, small secrets and facts in it.

It lies in /var/tmp and not in the clone because PostgreSQL refuses to run as root and its user cannot
enter a clone under /root, and because a Unix socket's path has at most 107 bytes.
"""

import fcntl
import hashlib
import json
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from dev.console import Trouble

CLONE = Path(__file__).resolve().parents[2]
BASE_VARIABLE = "SWEETSPOT_STATE_BASE"


def default_state(purpose: str) -> "State":
    """This user's state directory for this clone; other clones and users have others."""
    base = Path(os.environ.get(BASE_VARIABLE) or "/var/tmp")  # noqa: S108 - a directory of our own is made in it
    digest = hashlib.sha256(os.fsencode(CLONE)).hexdigest()[:8]
    return State(base / f"sweetspot-{os.getuid()}-{digest}-{purpose}")


class State:
    """A directory that belongs to this user alone. Others may at most pass through it (root's PostgreSQL must)."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.logs = root / "logs"
        self.services = root / "services"
        self.static = root / "static"

    def prepare(self) -> None:
        """Make it, or refuse one that somebody else prepared for us. Raises Trouble."""
        passable = 0o711 if os.getuid() == 0 else 0o700
        try:
            self.root.mkdir(mode=passable, parents=True, exist_ok=True)
        except OSError as error:
            raise Trouble(
                f"{self.root} cannot be made: {error.strerror}. Name another place: {BASE_VARIABLE}=/path"
            ) from error
        self._check_owner()
        self.root.chmod(passable)
        for folder in (self.logs, self.services, self.static):
            folder.mkdir(mode=0o700, exist_ok=True)

    def _check_owner(self) -> None:
        facts = self.root.lstat()
        if not stat.S_ISDIR(facts.st_mode) or facts.st_uid != os.getuid() or facts.st_mode & 0o022:
            raise Trouble(
                f"{self.root} is not a directory of yours alone. Remove it, or use another place: {BASE_VARIABLE}=/…"
            )

    @property
    def exists(self) -> bool:
        return self.root.is_dir()

    @contextmanager
    def locked(self) -> Iterator[None]:
        """One command at a time starts or stops things here; a second one waits."""
        fd = os.open(self.root / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX)
            yield
        finally:
            os.close(fd)

    def write(self, name: str, content: str) -> None:
        """Write a file that only this user can read, whole or not at all."""
        new = self.root / f"{name}.new"
        fd = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        with os.fdopen(fd, "w") as file:
            file.write(content)
        new.replace(self.root / name)

    def read(self, name: str) -> str:
        """Its content, "" if it is not there."""
        try:
            return (self.root / name).read_text()
        except FileNotFoundError:
            return ""

    def secret(self, name: str) -> str:
        """A generated secret, the same at every call until the directory is removed."""
        known = self.read(name)
        if known:
            return known
        self.write(name, secrets.token_urlsafe(48))
        return self.read(name)

    def read_facts(self, name: str) -> dict[str, Any]:
        text = self.read(name)
        facts: dict[str, Any] = json.loads(text) if text else {}
        return facts

    def write_facts(self, name: str, facts: dict[str, Any]) -> None:
        self.write(name, json.dumps(facts, indent=2) + "\n")
