"""Functions of `sweetspot-server` with other programs replaced; `make server-check` runs the real ones."""

import os
import subprocess
from pathlib import Path

import pytest

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
replace_database() { echo "replaced by $(cat "$1")" >>"$ROOT/calls"; }
start() { echo "start $(basename "$(readlink "$HOME_DIR/current")")" >>"$ROOT/calls"
  [ ! -e "$ROOT/broken" ] || exit 1; }
pg_dump() { [ ! -e "$ROOT/no-dump" ] && cat "$ROOT/data"; }
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
        self.functions = functions + STUBS

    def run(self, command: str) -> subprocess.CompletedProcess[str]:
        script = self.root / "script"
        script.write_text(f"{self.functions}\n{command}\n")
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
