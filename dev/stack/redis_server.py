"""A private Redis on a loopback port. Only its users are stored on disk.

The default user is off. The server's user has a generated password and all rights except administration of Redis
itself; it creates a user for every host (webapp/hosts/credentials.py).
"""

import hashlib
import os
import shutil
from pathlib import Path

from dev.console import ToolError
from dev.stack import processes
from dev.stack.network import LOOPBACK, await_condition, free_port
from dev.stack.postgres import data_user
from dev.stack.processes import Command
from dev.stack.state import State

NAME, TLS_NAME = "redis", "redis-tls"
START_LIMIT_S = 600.0  # against what hangs, not against a slow machine
START_ATTEMPTS = 3
# Debian's redis-tools contains the server too: one program, whose name selects its function.
SAME_PROGRAM = Path("/usr/bin/redis-check-rdb")
DATABASES = 16
SERVER_USER = "sweetspot"
# Explained in docs/how-to/encryption.md.
SERVER_RIGHTS = "~* &* +@all -@admin +acl"


def url(state: State, database: int = 0) -> str:
    return f"redis://{SERVER_USER}:{state.secret('redis_password')}@{LOOPBACK}:{port(state)}/{database}"


def port(state: State) -> int:
    return int(state.read_facts("ports.json").get(NAME, 0))


def start(state: State, *, certificates: Path | None = None) -> None:
    """Start it unless it runs and wait until it answers. Raises ToolError.

    With a folder of certificates (server.crt, server.key, ca.crt) it also listens with TLS, on the port TLS_NAME.
    """
    for attempts_left in reversed(range(START_ATTEMPTS)):
        if processes.known(state, NAME) is None:
            _configure(state, certificates)
            processes.start(state, _command(state))
        try:
            if await_condition(lambda: _answers(state), limit_s=START_LIMIT_S):
                return
            raise processes.failure(state, NAME, f"did not answer within {START_LIMIT_S:.0f} s")
        except ToolError:
            # Redis ends if another process took its port after the check that it is free.
            if not attempts_left or processes.known(state, NAME):
                raise


def _configure(state: State, certificates: Path | None) -> None:
    ports = state.read_facts("ports.json")
    state.write_facts("ports.json", {**ports, NAME: free_port(ports.get(NAME, 0))})
    encrypted = _encrypted(state, certificates) if certificates else []
    place = state.root / "redis"
    place.mkdir(mode=0o700, exist_ok=True)
    lines = [
        f"bind {LOOPBACK}", f"port {port(state)}", "protected-mode yes", f"databases {DATABASES}", f"dir {place}",
        f"aclfile {place}/users.acl", 'save ""', "appendonly no", "daemonize no", "maxmemory-policy noeviction",
        *encrypted,
    ]  # fmt: skip
    _write(place / "redis.conf", "\n".join(lines) + "\n")
    _write(place / "users.acl", _users(state, place / "users.acl"))
    for path in (place, place / "redis.conf", place / "users.acl"):
        _hand_over(path)


def _encrypted(state: State, certificates: Path) -> list[str]:
    ports = state.read_facts("ports.json")
    ports[TLS_NAME] = free_port(ports.get(TLS_NAME, 0))
    state.write_facts("ports.json", ports)
    _hand_over(certificates / "server.key")
    return [
        f"tls-port {ports[TLS_NAME]}", f"tls-cert-file {certificates}/server.crt",
        f"tls-key-file {certificates}/server.key", f"tls-ca-cert-file {certificates}/ca.crt", "tls-auth-clients no",
    ]  # fmt: skip


def _users(state: State, before: Path) -> str:
    """The ACL file: two fixed lines, and the hosts' lines as Redis wrote them."""
    digest = hashlib.sha256(state.secret("redis_password").encode()).hexdigest()
    own = ["user default off", f"user {SERVER_USER} on #{digest} {SERVER_RIGHTS}"]
    hosts = [line for line in _lines(before) if line.startswith("user host.")]
    return "\n".join([*own, *hosts]) + "\n"


def _lines(path: Path) -> list[str]:
    return path.read_text().splitlines() if path.exists() else []


def _write(path: Path, content: str) -> None:
    path.unlink(missing_ok=True)
    path.touch(mode=0o600)
    path.write_text(content)


def _hand_over(path: Path) -> None:
    if data_user():
        shutil.chown(path, data_user(), data_user())


def _command(state: State) -> Command:
    place = state.root / "redis"
    return Command(
        name=NAME,
        argv=("redis-server", str(place / "redis.conf")),
        executable=_program(),
        environment={"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C.UTF-8"},
        folder=place,
        user=data_user(),
    )


def _program() -> str:
    found = shutil.which("redis-server") or (str(SAME_PROGRAM) if SAME_PROGRAM.exists() else None)
    if found is None:
        raise ToolError("Redis is not installed. On Debian 12: apt-get install redis-tools")
    return found


def _answers(state: State) -> bool:
    if processes.known(state, NAME) is None:
        raise processes.failure(state, NAME, "ended at once")
    import redis  # here, because `make stop` also works without packages

    try:
        with redis.Redis.from_url(url(state), socket_timeout=2) as client:
            return bool(client.ping())
    except redis.exceptions.BusyLoadingError:
        return False
    except redis.exceptions.ConnectionError:
        return False
