"""A private PostgreSQL without a TCP port: it listens on a Unix socket in its own directory.

Peer authentication admits this user and, if this user is root, the `postgres` user that the server runs as. There is no
password that could leak.
"""

import os
import pwd
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

from dev.console import ToolError
from dev.stack import processes
from dev.stack.network import await_condition
from dev.stack.processes import Command
from dev.stack.state import State

if TYPE_CHECKING:
    import psycopg

NAME = "postgres"
SYSTEM_USER = "postgres"  # created by Debian's package; the server refuses to run as root
ROLE = "sweetspot"
DATABASE = "sweetspot"
START_LIMIT_S = 600.0  # against what hangs, not against a slow machine
SOCKET_PATH_LIMIT = 107  # sun_path of unix(7), without the closing zero
# For data that is discarded anyway: commits do not wait for the disk.
NOT_DURABLE = ("fsync=off", "full_page_writes=off", "synchronous_commit=off")


def data_user() -> str:
    """The user that PostgreSQL and Redis run as, never root. "" is the current user."""
    return SYSTEM_USER if os.getuid() == 0 else ""


def programs() -> Path:
    """The program folder of the newest installed PostgreSQL. Raises ToolError."""
    installed = [p.parent for p in Path("/usr/lib/postgresql").glob("*/bin/postgres")]
    if installed:
        return max(installed, key=lambda folder: float(folder.parent.name))
    found = shutil.which("postgres")
    if found is None:
        raise ToolError("PostgreSQL is not installed. On Debian 12: apt-get install postgresql")
    return Path(found).parent


def folder(state: State) -> Path:
    return state.root / "postgres"


def url(state: State) -> str:
    return f"postgres://{ROLE}@/{DATABASE}?host={quote(str(folder(state)), safe='/')}"


def _environment() -> dict[str, str]:
    return {"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C.UTF-8", "TZ": "UTC"}


def ensure_cluster(state: State) -> None:
    """Create the data directory if it does not exist. Raises ToolError."""
    data = folder(state) / "data"
    if (data / "sweetspot.ready").exists():
        return
    _make_folder(state)
    user = data_user()
    arguments = ["-D", str(data), "-U", ROLE, "-E", "UTF8", "--locale=C.UTF-8", "--auth=peer", "--no-sync"]
    shutil.rmtree(data, ignore_errors=True)  # left by an incomplete attempt
    processes.run([str(programs() / "initdb"), *arguments], user=user, environment=_environment(), folder=folder(state))
    _write_access_rules(data)
    (data / "sweetspot.ready").touch()


def _make_folder(state: State) -> None:
    place = folder(state)
    if len(os.fsencode(place / ".s.PGSQL.5432")) > SOCKET_PATH_LIMIT:
        raise ToolError(
            f"{place} is too long for a Unix socket ({SOCKET_PATH_LIMIT} bytes). Choose a shorter SWEETSPOT_STATE_BASE."
        )
    place.mkdir(mode=0o700, exist_ok=True)
    if data_user():
        shutil.chown(place, data_user(), data_user())


def _write_access_rules(data: Path) -> None:
    people = {pwd.getpwuid(os.getuid()).pw_name, data_user() or pwd.getpwuid(os.getuid()).pw_name}
    (data / "pg_hba.conf").write_text("local all all peer map=owner\n")
    (data / "pg_ident.conf").write_text("".join(f'owner "{person}" {ROLE}\n' for person in sorted(people)))


def command(state: State, *, settings: Sequence[str] = ()) -> Command:
    place = folder(state)
    fixed = (
        "listen_addresses=", f"unix_socket_directories={place}", "unix_socket_permissions=0700",
        "max_connections=200", "shared_buffers=128MB", "jit=off", "log_line_prefix=%m [%p] ",
    )  # fmt: skip
    options = tuple(part for setting in (*fixed, *settings) for part in ("-c", setting))
    return Command(
        name=NAME,
        argv=(str(programs() / "postgres"), "-D", str(place / "data"), *options),
        environment=_environment(),
        folder=place,
        user=data_user(),
    )


def start(state: State, *, durable: bool = True) -> None:
    """Start it unless it runs, wait until it answers, and create the database if needed. Raises ToolError."""
    if processes.known(state, NAME) is None:
        ensure_cluster(state)
        processes.start(state, command(state, settings=() if durable else NOT_DURABLE))
    if not await_condition(lambda: _answers(state), limit_s=START_LIMIT_S):
        raise processes.failure(state, NAME, f"did not answer within {START_LIMIT_S:.0f} s")
    _ensure_database(state)


def _answers(state: State) -> bool:
    if processes.known(state, NAME) is None:
        raise processes.failure(state, NAME, "ended at once")
    import psycopg  # here, because `make stop` also works without packages

    try:
        _connect(state).close()
    except psycopg.OperationalError:
        return False
    return True


def _connect(state: State) -> "psycopg.Connection[tuple[object, ...]]":
    import psycopg

    return psycopg.connect(host=str(folder(state)), user=ROLE, dbname="postgres", autocommit=True, connect_timeout=5)


def _ensure_database(state: State) -> None:
    with _connect(state) as connection:
        if not connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", [DATABASE]).fetchone():
            connection.execute(f"CREATE DATABASE {DATABASE}")
