"""A private PostgreSQL: no TCP port, only a Unix socket in a directory of its own.

Who may log in is decided by the kernel (peer authentication): this user, and as root the `postgres`
user that the server runs as. No password exists that could leak.
"""

import os
import pwd
import shutil
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import quote

import psycopg

from dev.console import Trouble
from dev.stack import processes
from dev.stack.network import await_condition
from dev.stack.processes import Command
from dev.stack.state import State

NAME = "postgres"
SYSTEM_USER = "postgres"  # what Debian's package makes; the server refuses to run as root
ROLE = "sweetspot"
DATABASE = "sweetspot"
START_LIMIT_S = 60.0
SOCKET_PATH_LIMIT = 107  # sun_path of unix(7), without the closing zero
# Tests throw the data away, so they need not wait for the disk.
CARELESS = ("fsync=off", "full_page_writes=off", "synchronous_commit=off")


def data_user() -> str:
    """The user that PostgreSQL and Redis run as: not root. "" means ourselves."""
    return SYSTEM_USER if os.getuid() == 0 else ""


def programs() -> Path:
    """The folder of the newest installed PostgreSQL. Raises Trouble."""
    installed = [p.parent for p in Path("/usr/lib/postgresql").glob("*/bin/postgres")]
    if installed:
        return max(installed, key=lambda folder: float(folder.parent.name))
    found = shutil.which("postgres")
    if found is None:
        raise Trouble("PostgreSQL is not installed. On Debian 12: apt-get install postgresql")
    return Path(found).parent


def folder(state: State) -> Path:
    return state.root / "postgres"


def url(state: State) -> str:
    return f"postgres://{ROLE}@/{DATABASE}?host={quote(str(folder(state)), safe='/')}"


def _environment() -> dict[str, str]:
    return {"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C.UTF-8", "TZ": "UTC"}


def ensure_cluster(state: State) -> None:
    """Make the data directory if it is not there. Raises Trouble."""
    data = folder(state) / "data"
    if (data / "sweetspot.ready").exists():
        return
    _make_folder(state)
    user = data_user()
    arguments = ["-D", str(data), "-U", ROLE, "-E", "UTF8", "--locale=C.UTF-8", "--auth=peer", "--no-sync"]
    shutil.rmtree(data, ignore_errors=True)  # an attempt that did not get to its end
    processes.run([str(programs() / "initdb"), *arguments], user=user, environment=_environment(), folder=folder(state))
    _write_access_rules(data)
    (data / "sweetspot.ready").touch()


def _make_folder(state: State) -> None:
    place = folder(state)
    if len(os.fsencode(place / ".s.PGSQL.5432")) > SOCKET_PATH_LIMIT:
        raise Trouble(
            f"{place} is too long for a Unix socket ({SOCKET_PATH_LIMIT} bytes). Name a shorter SWEETSPOT_STATE_BASE."
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


def start(state: State, *, careless: bool = False) -> None:
    """Start it unless it runs, wait until it answers, and see that the database is there. Raises Trouble."""
    if processes.known(state, NAME) is None:
        ensure_cluster(state)
        processes.start(state, command(state, settings=CARELESS if careless else ()))
    if not await_condition(lambda: _answers(state), limit_s=START_LIMIT_S):
        raise processes.failure(state, NAME, f"did not answer within {START_LIMIT_S:.0f} s")
    _ensure_database(state)


def _answers(state: State) -> bool:
    if processes.known(state, NAME) is None:
        raise processes.failure(state, NAME, "ended at once")
    try:
        _connect(state).close()
    except psycopg.OperationalError:
        return False
    return True


def _connect(state: State) -> "psycopg.Connection[tuple[object, ...]]":
    return psycopg.connect(host=str(folder(state)), user=ROLE, dbname="postgres", autocommit=True, connect_timeout=5)


def connect_to(state: State) -> "psycopg.Connection[tuple[object, ...]]":
    """A connection to Sweetspot's database, past Django."""
    return psycopg.connect(host=str(folder(state)), user=ROLE, dbname=DATABASE, autocommit=True, connect_timeout=5)


def _ensure_database(state: State) -> None:
    with _connect(state) as connection:
        if not connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", [DATABASE]).fetchone():
            connection.execute(f"CREATE DATABASE {DATABASE}")
