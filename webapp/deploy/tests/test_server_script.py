"""Functions of `sweetspot-server` with other programs replaced; `make server-check` runs the real ones."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from django.db import connection

from webapp.tests.system import ROOT

SCRIPT = (ROOT / "webapp/deploy/sweetspot-server").read_text()
STUBS = """
systemctl() { :; }
as_server() { "$@"; }
as_redis() { echo "as redis: $1" >>"$ROOT/calls"; "$@"; }
prepare_database() { :; }
start_redis() { :; }
units() { :; }
load_settings() { :; }
tar() { :; }
pg_restore() { :; }
replace_database() { [ ! -e "$ROOT/no-replacement" ] && echo "replaced by $(cat "$1")" >>"$ROOT/calls"; }
start() { echo "start $(basename "$(readlink "$HOME_DIR/current")")" >>"$ROOT/calls"
  [ ! -e "$ROOT/broken" ] || exit 1; }
pg_dump() { [ ! -e "$ROOT/no-dump" ] && cat "$ROOT/data"; }
database() { :; }
manage_of() { [ "${2:-}" != check_migrations ] || [ ! -e "$ROOT/mismatch" ]; }
DATABASE=x
install_one() { RELEASE=$HOME_DIR/releases/$1; mkdir -p "$RELEASE/.build"; switch_release; }
"""


class Server:
    def __init__(self, root: Path) -> None:
        self.root = root
        for name in ("opt/releases", "backups", "settings"):
            (root / name).mkdir(parents=True)
        functions = SCRIPT.partition('\n[ "$(id -u)" = 0 ]')[0]
        for old, new in (
            ("/opt/sweetspot ", "opt "),
            ("/etc/sweetspot ", "settings "),
            ("/var/backups/sweetspot", "backups"),
        ):
            functions = functions.replace(f"={old}", f"={root}/{new}")
        functions = functions.replace("REDIS_USERS=/var/lib/redis", f"REDIS_USERS={root}")
        self.functions = functions

    def run(self, command: str, *, stubs: str = STUBS) -> subprocess.CompletedProcess[str]:
        script = self.root / "script"
        script.write_text(f"{self.functions}{stubs}\n{command}\n")
        environment = {"PATH": os.environ["PATH"], "ROOT": str(self.root)}
        return subprocess.run(
            ["bash", script], capture_output=True, text=True, env=environment, timeout=60, check=False
        )

    def write(self, name: str, text: str = "") -> None:
        (self.root / name).write_text(text)

    def link(self, name: str) -> str:
        return (self.root / "opt" / name).readlink().name

    def calls(self) -> list[str]:
        return (self.root / "calls").read_text().splitlines()

    def before(self) -> dict[str, str]:
        return {path.name: (path / "database.dump").read_text() for path in self.root.glob("backups/before-*")}


@pytest.fixture
def server(tmp_path: Path) -> Server:
    made = Server(tmp_path)
    made.write("data", "data of r1")
    assert (done := made.run("install_one r1")).returncode == 0, done.stderr
    return made


def test_a_failed_upgrade_and_the_next_one_keep_the_good_backup_and_release(server: Server) -> None:
    server.write("broken")
    assert server.run("install_one r2").returncode != 0
    server.write("data", "half migrated")
    assert server.run("install_one r3").returncode != 0
    assert (server.link("previous"), server.before()) == ("r1", {"before-r3": "data of r1"})
    (server.root / "broken").unlink()
    assert server.run("install_one r4").returncode == 0
    assert (server.link("previous"), server.before()) == ("r1", {"before-r4": "data of r1"})
    assert (done := server.run("roll_back")).returncode == 0, done.stderr
    assert (server.link("current"), server.before()) == ("r1", {})
    assert server.calls()[-2:] == ["replaced by data of r1", "start r1"]
    assert [path.read_text() for path in server.root.glob("backups/20*/database.dump")] == ["half migrated"]


def test_the_old_release_runs_again_if_the_backup_fails(server: Server) -> None:
    server.write("no-dump")
    failed = server.run("install_one r2")
    assert failed.returncode == 1
    assert "the old release is started again" in failed.stderr
    assert (server.link("current"), server.calls()) == ("r1", ["start r1", "start r1"])


def test_a_roll_back_that_does_not_start_keeps_its_backup(server: Server) -> None:
    assert server.run("install_one r2").returncode == 0
    server.write("broken")
    assert server.run("roll_back").returncode != 0
    assert server.before() == {"before-r2": "data of r1"}


def test_the_arguments_of_programs_contain_no_password(server: Server) -> None:
    done = server.run(
        "SWEETSPOT_DATABASE_URL='postgres://u:p%40s@db:5432/x'; hide_password; echo \"$DATABASE\"; printenv PGPASSWORD"
    )
    assert done.stdout.splitlines() == ["postgres://u@db:5432/x", "p@s"]


@pytest.mark.parametrize("query", ["password=p", "host=/run/postgresql&password=p"])
def test_a_password_in_the_query_of_the_database_is_refused(server: Server, query: str) -> None:
    done = server.run(f"SWEETSPOT_DATABASE_URL='postgres://u@db/x?{query}'; hide_password")
    assert done.returncode == 1
    assert "before the @" in done.stderr


def test_a_restore_that_fails_keeps_the_present_data_and_starts_the_server(server: Server) -> None:
    server.write("no-replacement")
    (server.root / "database.dump").write_text("old")
    failed = server.run("restore $ROOT")
    assert failed.returncode == 1
    assert "the present data were kept" in failed.stderr
    assert server.calls() == ["start r1", "start r1"]


def test_a_restore_that_this_release_cannot_use_returns_to_the_present_data(server: Server) -> None:
    server.write("data", "present")
    server.write("database.dump", "of a newer release")
    failed = server.run("prepare_database() { return 1; }; restore $ROOT")
    assert failed.returncode == 1
    assert "the present data were restored" in failed.stderr
    assert server.calls()[-3:] == ["replaced by of a newer release", "replaced by present", "start r1"]


def test_a_backup_whose_migrations_do_not_match_this_release_is_refused(server: Server) -> None:
    server.write("mismatch")
    server.write("database.dump", "of a newer release")
    server.write("release", "2.0.0-12345678\n")
    failed = server.run("restore $ROOT")
    assert failed.returncode == 1
    assert "release 2.0.0-12345678 made this backup" in failed.stderr
    assert server.calls() == ["start r1"]


def test_a_release_that_cannot_use_the_database_is_not_installed(server: Server) -> None:
    stubs = """
    debian_packages() { :; }; users_and_folders() { :; }; settings() { :; }; broker() { :; }; renew_certificate() { :; }
    build_release() { RELEASE=$HOME_DIR/releases/r2; mkdir -p "$RELEASE/.build"; }
    setting() { :; }
    """
    server.write("settings/environment")
    server.write("mismatch")
    assert server.run(f"{stubs}install_release").returncode == 1
    assert (server.link("current"), server.calls(), server.before()) == ("r1", ["start r1"], {})
    (server.root / "mismatch").unlink()
    assert (done := server.run(f"{stubs}install_release")).returncode == 0, done.stderr
    assert (server.link("current"), server.calls()) == ("r2", ["start r1", "start r2"])


def test_a_backup_names_its_release(server: Server) -> None:
    assert (done := server.run("backup $ROOT/mine")).returncode == 0, done.stderr
    assert (server.root / "mine/release").read_text() == "r1\n"


def test_a_folder_for_a_backup_may_end_with_a_slash(server: Server) -> None:
    assert (done := server.run("manage() { :; }; backup $ROOT/mine/")).returncode == 0, done.stderr
    assert (server.root / "mine/database.dump").read_text() == "data of r1"


def test_settings_are_read_as_systemd_reads_them(server: Server) -> None:
    """With another secret key, `manage setup` could not decrypt the keys that sign orders."""
    server.write("settings/environment", '# A=1\nSWEETSPOT_SECRET_KEY=c2VjcmV0a2V5Cg=\nPATH\nB="x "\nC=last')
    done = server.run("load_settings; printenv SWEETSPOT_SECRET_KEY B C", stubs="")
    assert done.stdout.splitlines() == ["c2VjcmV0a2V5Cg=", "x ", "last"]


@pytest.mark.parametrize(("key", "status"), [("same", 0), ("other", 1)])
def test_a_backup_of_a_server_with_another_secret_key_is_refused(server: Server, key: str, status: int) -> None:
    server.write("database.dump", "old")
    server.write("settings/environment", f"SWEETSPOT_SECRET_KEY={key}\n")
    pack = ("tar", "-C", "/", "-czf", server.root / "settings.tar.gz", str(server.root / "settings").lstrip("/"))
    subprocess.run(pack, check=True)
    server.write("settings/environment", "SWEETSPOT_SECRET_KEY=same\n")
    done = server.run("unset -f tar; restore $ROOT")
    assert done.returncode == status, done.stderr
    assert ("replaced by old" in server.calls()) == (status == 0)


def test_a_backup_is_made_in_a_directory_that_the_server_can_read(server: Server) -> None:
    """Else PostgreSQL's programs print `could not change directory`."""
    stubs = STUBS.replace('cat "$ROOT/data"; }', "pwd; }")
    assert (done := server.run("save $ROOT/backups/before-1", stubs=stubs)).returncode == 0, done.stderr
    assert server.before() == {"before-1": "/\n"}


PSQL = """
systemctl() { :; }
load_settings() { DATABASE="postgres://sweetspot@/lab%202?host=/run/postgresql"; }
as_server() { "$@"; }
as_postgres() { echo "$*" >>"$ROOT/calls"; case $1 in psql) cat "$ROOT/$4" 2>/dev/null ;; esac; }
psql() { [ ! -e "$ROOT/no-database" ]; }
"""


def test_a_missing_local_database_is_created_with_the_name_of_the_settings(server: Server) -> None:
    assert (done := server.run("database", stubs=PSQL)).returncode == 0, done.stderr
    assert server.calls()[-1] == (
        "createdb --owner sweetspot --encoding UTF8 --locale C.UTF-8 --template template0 lab 2"
    )
    server.write("name=lab 2", "1")
    server.run("database", stubs=PSQL)
    assert server.calls()[-1] == "psql -qtA --set name=lab 2"


def test_a_database_without_a_name_is_the_default_one_of_the_server(server: Server) -> None:
    server.run("database", stubs=PSQL.replace("lab%202", ""))
    assert server.calls()[-1].endswith("--template template0 sweetspot")


def test_a_database_that_does_not_answer_is_found_before_the_server_is_stopped(server: Server) -> None:
    server.write("no-database")
    server.write("database.dump")
    stubs = f"""{PSQL}
systemctl() {{ case $* in *target*) echo "$*" >>"$ROOT/calls" ;; esac; }}
check_dump() {{ :; }}
check_release() {{ :; }}
"""
    failed = server.run("restore $ROOT", stubs=stubs)
    assert failed.returncode == 1
    assert "cannot be used" in failed.stderr
    assert "stop sweetspot.target" not in server.calls()


WHOLE = """
DATABASE=x
as_server() { "$@"; }
psql() { cat >"$ROOT/sql"; }
name_sessions() { :; }
"""


@pytest.mark.parametrize(("status", "last"), [(0, "commit;"), (1, "copy;")])
def test_only_a_whole_backup_replaces_the_database(server: Server, status: int, last: str) -> None:
    server.write("dump")
    done = server.run(
        f"pg_restore() {{ echo 'copy;'; return {status}; }}; replace_database $ROOT/dump || exit 1", stubs=WHOLE
    )
    assert done.returncode == status
    sent = (server.root / "sql").read_text().splitlines()
    assert (sent[0], sent[-1]) == ("begin; set local lock_timeout = '30s'; drop schema public cascade;", last)


@pytest.fixture
def used_database() -> Iterator[str]:
    """The address of a database with one table, which the session `forgotten` uses."""
    facts = connection.settings_dict
    address = f"host={facts['HOST']} user={facts['USER']} password={facts['PASSWORD']}"
    name = f"used_{os.getpid()}"
    with psycopg.connect(f"{address} dbname=postgres", autocommit=True) as server:
        server.execute(f"create database {name}")
        try:
            address = f"{address} dbname={name}"
            with psycopg.connect(address, autocommit=True) as setup:
                setup.execute("create table kept (id int)")
            with psycopg.connect(address, application_name="forgotten") as session:
                session.execute("select * from kept")
                yield address
        finally:
            server.execute(f"drop database {name} with (force)")


@pytest.mark.django_db
def test_a_session_that_uses_the_tables_is_named_and_nothing_is_replaced(server: Server, used_database: str) -> None:
    server.write("dump")
    stubs = f"""
DATABASE="{used_database}"
LOCK_LIMIT=200ms
as_server() {{ "$@"; }}
pg_restore() {{ :; }}
"""
    failed = server.run("replace_database $ROOT/dump || exit 1", stubs=stubs)
    assert failed.returncode == 1
    assert "lock timeout" in failed.stderr
    assert "program forgotten, from this machine" in failed.stderr
    with psycopg.connect(used_database) as session:
        assert session.execute("select count(*) from kept").fetchone() == (0,)


START = """
SECONDS=1000
systemctl() { :; }
nginx() { :; }
sleep() { :; }
curl() { [ -e "$ROOT/answered" ] || { touch "$ROOT/answered"; return 1; }; }
"""


def test_the_time_to_start_counts_from_the_start_of_the_services(server: Server) -> None:
    """An installation takes longer than the time to start."""
    assert (done := server.run("start", stubs=START)).returncode == 0, done.stderr
    (server.root / "answered").unlink()
    assert server.run("START_LIMIT_S=0; start", stubs=START).returncode == 1


REDIS = """
systemctl() { case $* in *redis*) echo "$1" >>"$ROOT/redis" ;; esac; }
chown() { :; }
has_own_certificate() { true; }
install_it() { renew_certificate; start_redis; }
"""


def test_redis_is_restarted_once_for_a_new_certificate_and_never_without_need(server: Server) -> None:
    (server.root / "settings/tls").mkdir()
    for name in ("ca.crt", "server.crt", "server.key"):
        server.write(f"settings/tls/{name}", "first")
    server.write("redis.conf")
    server.write("settings/environment", "SWEETSPOT_REDIS_URL=rediss://sweetspot:p@localhost:6379/0\n")
    stubs = f"{REDIS}REDIS_CONF=$ROOT/redis.conf\n"
    for command in ("install_it", "install_it", "certificates"):
        assert (done := server.run(command, stubs=stubs)).returncode == 0, done.stderr
    server.write("settings/tls/server.crt", "second")
    assert (done := server.run("certificates", stubs=stubs)).returncode == 0, done.stderr
    assert (server.root / "redis").read_text().split() == [
        "enable", "restart", "enable", "start", "enable", "start", "enable", "restart",
    ]  # fmt: skip


def test_a_certificate_of_another_authority_must_be_valid_for_the_public_name(server: Server) -> None:
    names = "subjectAltName=DNS:lab.example,DNS:*.wild.example,IP:10.0.0.1,IP:fd00::1"
    (server.root / "settings/tls").mkdir()
    request = (
        "openssl",
        "req",
        "-x509",
        "-newkey",
        "ec",
        "-pkeyopt",
        "ec_paramgen_curve:P-256",
        "-nodes",
        "-days",
        "2",
    )
    files = ("-keyout", "/dev/null", "-out", str(server.root / "settings/tls/server.crt"))
    subprocess.run((*request, *files, "-subj", "/CN=x", "-addext", names), check=True, capture_output=True)
    server.write("settings/environment", "SWEETSPOT_REDIS_URL=rediss://sweetspot:p@localhost:6379/0\n")
    for name in ("other.example", "10.0.0.2", "fd00::2"):
        refused = server.run(f"settings {name}")
        assert refused.returncode == 1
        assert f"is not valid for {name};" in refused.stderr
        assert f"SWEETSPOT_PUBLIC_URL=https://{name}" not in (server.root / "settings/environment").read_text()
    for name in ("lab.example", "a.wild.example", "10.0.0.1", "fd00::1"):
        assert (done := server.run(f"settings {name}")).returncode == 0, done.stderr


def test_root_writes_nothing_in_the_directory_of_redis(server: Server) -> None:
    """A link there could lead to any file."""
    server.write("victim", "kept")
    server.write("users.acl", "user host.a on\nuser other on\n")
    (server.root / "users.acl.new").symlink_to(server.root / "victim")
    broker = f"install() {{ :; }}; redis_password() {{ echo x; }}; REDIS_USERS={server.root}/users.acl; broker"
    assert (done := server.run(broker)).returncode == 0, done.stderr
    assert (server.root / "victim").read_text() == "kept"
    assert [line.split()[1] for line in (server.root / "users.acl").read_text().splitlines()] == [
        "default", "sweetspot", "host.a",
    ]  # fmt: skip
    assert {"as redis: grep", "as redis: cat", "as redis: sh"} <= set(server.calls())
    assert server.run(broker).returncode == 0
    assert server.calls().count("as redis: sh") == 1  # unchanged
