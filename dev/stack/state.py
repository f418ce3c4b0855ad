"""The state directory of a private stack: its location, its permissions, small secrets and facts.

It is in /var/tmp and not in the repository for two reasons: PostgreSQL refuses to run as root, and its user cannot
enter a repository under /root; the path of a Unix socket has at most 107 bytes.
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

from dev.console import ToolError

REPOSITORY = Path(__file__).resolve().parents[2]
BASE_VARIABLE = "SWEETSPOT_STATE_BASE"


def default_state(purpose: str) -> "State":
    """The state directory of this user, this clone of the repository and this purpose."""
    base = Path(os.environ.get(BASE_VARIABLE) or "/var/tmp")  # noqa: S108 - a private directory is created in it
    digest = hashlib.sha256(os.fsencode(REPOSITORY)).hexdigest()[:8]
    return State(base / f"sweetspot-{os.getuid()}-{digest}-{purpose}")


class State:
    """A directory that only this user can read. If the user is root, others may pass through it (PostgreSQL must)."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.logs = root / "logs"
        self.services = root / "services"
        self.static = root / "static"

    def prepare(self) -> None:
        """Create it. Raises ToolError if it belongs to somebody else."""
        passable = 0o711 if os.getuid() == 0 else 0o700
        try:
            self.root.mkdir(mode=passable, parents=True, exist_ok=True)
        except OSError as error:
            raise ToolError(
                f"{self.root} cannot be created: {error.strerror}. Choose another place: {BASE_VARIABLE}=/path"
            ) from error
        self._check_owner()
        self.root.chmod(passable)
        for folder in (self.logs, self.services, self.static):
            folder.mkdir(mode=0o700, exist_ok=True)

    def _check_owner(self) -> None:
        facts = self.root.lstat()
        if not stat.S_ISDIR(facts.st_mode) or facts.st_uid != os.getuid() or facts.st_mode & 0o022:
            raise ToolError(
                f"{self.root} is not a directory of yours alone. Remove it, or choose another: {BASE_VARIABLE}=/path"
            )

    @property
    def exists(self) -> bool:
        return self.root.is_dir()

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Only one command at a time starts or stops services; a second one waits."""
        fd = os.open(self.root / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX)
            yield
        finally:
            os.close(fd)

    def write(self, name: str, content: str) -> None:
        """Write a file atomically; only this user can read it."""
        new = self.root / f"{name}.new"
        fd = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        with os.fdopen(fd, "w") as file:
            file.write(content)
        new.replace(self.root / name)

    def read(self, name: str) -> str:
        """The content of a file, "" if it does not exist."""
        try:
            return (self.root / name).read_text()
        except FileNotFoundError:
            return ""

    def secret(self, name: str) -> str:
        """A secret, generated at the first call and then kept in the directory."""
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
