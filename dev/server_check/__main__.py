"""`make server-check`: installs the server in a bare Debian by the documented commands, and uses it."""

import argparse
import json
import os
import re
import shutil
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import ClassVar

from dev.console import ToolError, run_command, say, step
from dev.server_check.bare_debian import BareDebian, bare_debian, missing_packages, repository_files
from dev.server_check.installed_server import AUTHORITY, NAME, SERVER, SERVER_SCRIPT, WAIT_S, InstalledServer, expect
from dev.server_check.upgrades import Upgrades, make_releases

OTHER_NAME = "lab.sweetspot.test"
SOURCE = "/root/sweetspot"
SOCKET = "/run/sweetspot/web.sock"
REDIS_USERS = "/var/lib/redis/sweetspot-users.acl"
PREPARE = """\
apt-get update
apt-get install --yes --no-install-recommends apt-utils python3-venv
mkdir -p .build/debian/partial
apt-get -o Dir::State::status=/dev/null -o Dir::Cache::archives="$PWD/.build/debian" \\
  install --yes --no-install-recommends --download-only \\
  postgresql redis-server nginx python3-venv curl ca-certificates
(cd .build/debian && apt-ftparchive packages . >Packages)
.ci/setup --server
.venv/bin/python -m webapp.hosts.wheelhouse
.venv/bin/python -m pip download --only-binary=:all: --constraint .ci/constraints.txt \\
  --requirement requirements.txt --requirement .ci/requirements-docs.txt --dest .build/wheels
tar --exclude .venv --exclude node_modules -czf ../sweetspot-offline.tar.gz ."""
PACKAGES_FROM_ARCHIVE = (
    'echo "deb [trusted=yes] file:$PWD/.build/debian ./" >/etc/apt/sources.list.d/sweetspot-offline.list'
)
INSTALL_FROM_ARCHIVE = "PIP_NO_INDEX=1 PIP_FIND_LINKS=$PWD/.build/wheels webapp/deploy/sweetspot-server install"
ARCHIVE = "root/sweetspot-offline.tar.gz"


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="make server-check", description="The server in a bare Debian.")
    parser.add_argument("--plan", action="store_true", help="list the checks and what this machine lacks for them")
    parser.add_argument("--suite", default="bookworm", help="Debian's release; by default bookworm, which is Debian 12")
    parser.add_argument(
        "--only", nargs="+", metavar="WORD", help="only the installation and the checks with these words"
    )
    parser.add_argument("--only-upgrades", action="store_true", help="only the upgrade from one release to the next")
    options = parser.parse_args(arguments)
    if options.plan:
        return _show_plan()
    base = os.environ.get("SWEETSPOT_STATE_BASE", "/var/tmp")  # noqa: S108 - a directory of its own is made there
    with tempfile.TemporaryDirectory(prefix="sweetspot-server-check-", dir=base) as name:
        folder = Path(name)
        if options.only:
            with bare_debian(folder / "connected", NAME, OTHER_NAME, suite=options.suite) as debian:
                _Check(debian).run(options.only)
            return 0
        if not options.only_upgrades:
            with bare_debian(folder / "connected", NAME, OTHER_NAME, suite=options.suite) as debian:
                _Check(debian).run()
                shutil.copy(debian.root / ARCHIVE, folder)
            with bare_debian(folder / "offline", NAME, suite=options.suite, connected=False) as debian:
                _install_offline(debian, folder / Path(ARCHIVE).name)
        releases = make_releases(folder)
        with bare_debian(folder / "upgrades", NAME, suite=options.suite) as debian:
            Upgrades(debian, releases).run()
    say("All checks of the server on a bare Debian passed.")
    return 0


def _show_plan() -> int:
    """The smallest form, without a container."""
    for name in (*_Check.CHECKS, *Upgrades.CHECKS):
        say(name)
    files = repository_files()
    say(f"{len(files)} files are copied into the container. Missing packages: {' '.join(missing_packages()) or 'none'}")
    needed = {SERVER_SCRIPT, "requirements.txt", ".ci/setup", ".ci/constraints.txt"}
    if absent := needed - {str(path) for path in files}:
        raise ToolError(f"These files are not in the repository: {', '.join(sorted(absent))}")
    return 0


def _install_offline(debian: BareDebian, archive: Path) -> None:
    """Install from the archive with the commands of docs/how-to/server-on-debian.md for a machine without internet."""
    shutil.move(archive, debian.root / ARCHIVE)
    with step("a first installation without a network"):
        debian.run("mkdir", SOURCE)
        debian.run("tar", "-C", SOURCE, "-xzf", f"/{ARCHIVE}")
        debian.run("sh", "-c", f"set -e; cd {SOURCE}\n{PACKAGES_FROM_ARCHIVE}\n{INSTALL_FROM_ARCHIVE} {NAME}")
        debian.run(SERVER, "manage", "create_admin", "admin")
        debian.run("curl", "--silent", "--show-error", "--fail", "--cacert", AUTHORITY, f"https://{NAME}/login/")
        debian.run("sh", "-c", "test -e /opt/sweetspot/current/.build/wheelhouse/*.zip")


class _Check(InstalledServer):
    def __init__(self, debian: BareDebian) -> None:
        super().__init__(debian)
        self._password = ""

    def run(self, words: Sequence[str] = ("",)) -> None:
        """The checks whose names contain one of the words."""
        self._install()
        for name, check in self.CHECKS.items():
            if any(word in name for word in words):
                with step(name):
                    check(self)

    def _install(self) -> None:
        """The commands of docs/how-to/server-on-debian.md, after the archive was unpacked."""
        self._debian.copy_repository(SOURCE)
        started_at = time.monotonic()
        with step("installing the server"):
            self._debian.run(f"{SOURCE}/{SERVER_SCRIPT}", "install", NAME)
        self._create_admin("admin")
        say(f"Two commands, {(time.monotonic() - started_at) / 60:.1f} minutes.")

    def _create_admin(self, *arguments: str) -> None:
        said = self._run(SERVER, "manage", "create_admin", *arguments)
        self._password = said.rpartition("password: ")[2].strip()

    def _units(self) -> None:
        units = [path.name for path in (self._debian.root / SOURCE.lstrip("/") / "webapp/deploy/systemd").iterdir()]
        self._run("systemd-analyze", "verify", *units)
        for unit in (
            "sweetspot.target",
            "sweetspot-web",
            "sweetspot-tasks",
            "sweetspot-beat",
            "sweetspot-backup.timer",
        ):
            self._run("systemctl", "is-enabled", unit)
            self._run("systemctl", "is-active", unit)
        expect("failed units", self._run("systemctl", "--failed", "--plain", "--no-legend"), "")
        owner = self._run("sh", "-c", "stat -c '%U %a' /etc/sweetspot/environment /etc/sweetspot/authority/ca.key")
        expect("owners of secrets", owner.split(), ["root", "600"] * 2)
        sockets = self._run("cat", "/proc/net/tcp", "/proc/net/tcp6")
        expect("a port of the web tier", f":{8000:04X} 00000000" in sockets, False)

    def _pages(self) -> None:
        where = self._curl("--write-out", "%{http_code} %{redirect_url}", f"http://{NAME}/plans/").split()[-2:]
        expect("plain HTTP", where, ["301", f"https://{NAME}/plans/"])
        expect("/healthz", json.loads(self._curl(f"http://{NAME}/healthz"))["status"], "ok")
        page = self._curl("--location", f"https://{NAME}/")
        static = re.findall(r'"(/static/[^"]+\.js)"', page)[0]
        answer = self._curl("--head", f"https://{NAME}{static}")
        expect("static file", "200" in answer.splitlines()[0] and "text/javascript" in answer, True)

    def _log_in(self) -> None:
        expect("log-in", self._try_log_in(self._password), 302)
        expect("page of people who are logged in", self._status(f"https://{NAME}/account/", *self._cookies), "200")
        forgotten = self._password
        self._create_admin("admin", "--reset")
        expect("log-in with the old password", self._try_log_in(forgotten), 200)
        expect("log-in with the new password", self._try_log_in(self._password), 302)
        expect("form of another site", self._try_log_in(self._password, origin="https://evil.test"), 403)

    @property
    def _cookies(self) -> tuple[str, ...]:
        return ("--cookie", "/root/cookies", "--cookie-jar", "/root/cookies")

    def _try_log_in(self, password: str, *, origin: str = f"https://{NAME}", forwarded: str = "") -> int:
        """The status of the answer."""
        self._debian.run("rm", "-f", "/root/cookies")
        address = f"https://{NAME}/login/"
        page = self._curl(*self._cookies, address)
        token = re.findall(r'name="csrfmiddlewaretoken" value="([^"]+)"', page)[0]
        fields = {"csrfmiddlewaretoken": token, "username": "admin", "password": password}
        data = (part for name, value in fields.items() for part in ("--data-urlencode", f"{name}={value}"))
        headers = ("--header", f"Origin: {origin}", "--header", f"Referer: {origin}/login/")
        spoofed = ("--header", f"X-Forwarded-For: {forwarded}") if forwarded else ()
        status = ("--output", "/dev/null", "--write-out", "%{http_code}")
        return int(self._curl(*self._cookies, *data, *headers, *spoofed, *status, address))

    def _address(self) -> None:
        """A client that sends a different forged address with each try is still counted as one client."""
        found = [self._try_log_in("wrong", forwarded=f"192.0.2.{number}") for number in range(1, 8)]
        expect("tries with invented addresses are limited", found[-1], 429)
        self._manage_shell("from webapp.core.models import LoginTries; LoginTries.objects.all().delete()")
        direct = ("curl", "--silent", "--unix-socket", SOCKET, "http://localhost/healthz/live")
        done = self._debian.run("runuser", "-u", "nobody", "--", *direct, check=False)
        expect("another user reaches the web tier without the proxy", done.returncode == 0, False)
        expect("metrics without the token", self._status(f"https://{NAME}/metrics"), "403")

    def _host(self) -> None:
        self._start_worker(self._enrol("bare"))
        self._run("systemctl", "stop", "worker")

    def _json_lines(self) -> None:
        self._run("sh", "-c", "echo SWEETSPOT_LOG_FORMAT=json >> /etc/sweetspot/environment")
        started_at = self._run("date", "+%Y-%m-%d %H:%M:%S").strip()
        self._run("systemctl", "restart", "sweetspot.target")
        self._until("the server is ready", self._is_ready)
        for part in ("web", "tasks", "beat"):
            unit = f"sweetspot-{part}.service"
            pid = self._run("systemctl", "show", "--value", "--property=MainPID", unit).strip()
            lines = self._run("journalctl", f"_PID={pid}", f"--since={started_at}", "-o", "cat").splitlines()
            bad = [line for line in lines if not line.startswith("{")]
            expect(f"lines of {part} that are not JSON", bad, [])
            expect(f"{part} has lines", bool(lines) or part == "beat", True)

    def _again(self) -> None:
        before = self._facts()
        self._run(f"{SOURCE}/{SERVER_SCRIPT}", "install")
        expect("settings, keys and release", self._facts(), before)

    def _facts(self) -> str:
        return self._run(
            "sh", "-c", "sha256sum /etc/sweetspot/*/* /etc/sweetspot/environment; readlink /opt/sweetspot/current"
        )

    def _backup(self) -> None:
        self._run("systemctl", "start", "sweetspot-backup.service")
        token = self._run("sh", "-c", ". /etc/sweetspot/environment; echo $SWEETSPOT_METRICS_TOKEN").strip()
        metrics = self._curl("--header", f"Authorization: Bearer {token}", f"https://{NAME}/metrics")
        age_s = float(re.findall(r"^sweetspot_backup_age_seconds (\S+)$", metrics, re.M)[0])
        expect("age of the backup", 0 <= age_s < WAIT_S, True)
        folder = self._run("sh", "-c", "ls -d /var/backups/sweetspot/2*Z | tail -n 1").strip()
        expect("files", self._run("ls", folder).split(), ["database.dump", "release", "settings.tar.gz"])
        self._run(SERVER, "manage", "create_admin", "later")
        for _ in range(2):  # what a restore leaves can be backed up and restored again
            self._run(SERVER, "restore", folder)
            folder = self._run(SERVER, "backup").strip().rpartition(" ")[2]
        expect("people", self._people(), "admin")

    def _move(self) -> None:
        """Everything but the built release is removed; the settings and the data come from a backup."""
        folder = self._run(SERVER, "backup").strip().rpartition(" ")[2]
        self._run("mv", folder, "/root/moved")
        hosts = self._run("grep", "-c", "^user host", REDIS_USERS)
        self._run("systemctl", "stop", "sweetspot.target", "redis-server@sweetspot", "nginx")
        self._run("rm", "-r", "/etc/sweetspot", "/opt/sweetspot/current", "/var/backups/sweetspot", REDIS_USERS)
        self._run("tar", "-C", "/", "-xzf", "/root/moved/settings.tar.gz")
        self._run("sed", "-i", "s|@/sweetspot?|@/moved?|", "/etc/sweetspot/environment")
        self._run(f"{SOURCE}/{SERVER_SCRIPT}", "install", OTHER_NAME, NAME)
        expect("people of the empty database", self._people(), "")
        self._run(SERVER, "restore", "/root/moved")
        expect("people", self._people(), "admin")
        self._run("systemctl", "stop", "sweetspot.target")
        self._run("runuser", "-u", "postgres", "--", "dropdb", "moved")
        self._run(SERVER, "restore", "/root/moved")
        expect("people", self._people(), "admin")
        expect("users of hosts in Redis", self._run("grep", "-c", "^user host", REDIS_USERS), hosts)
        self._curl(f"https://{NAME}/healthz")

    def _upgrade(self) -> None:
        """The commands of docs/how-to/server-on-debian.md for a machine without internet."""
        old = self._run("readlink", "/opt/sweetspot/current")
        self._run("sh", "-c", f"echo '# changed' >> {SOURCE}/webapp/wsgi.py")
        self._run("sh", "-c", f"set -e; cd {SOURCE}\n{PREPARE}")
        self._debian.cut_network()
        self._run("sh", "-c", f"set -e; cd {SOURCE}\n{INSTALL_FROM_ARCHIVE}")
        self._run("sh", "-c", "test -e /opt/sweetspot/current/.build/wheelhouse/*.zip")
        expect("a new release runs", self._run("readlink", "/opt/sweetspot/current") != old, True)
        self._run(SERVER, "manage", "create_admin", "later")
        self._run(SERVER, "roll-back")
        expect("the old release runs", self._run("readlink", "/opt/sweetspot/current"), old)
        expect("people", self._people(), "admin")
        self._until("the server is ready", self._is_ready)

    def _rename(self) -> None:
        self._run(SERVER, "install", OTHER_NAME)
        self._curl(f"https://{OTHER_NAME}/healthz")
        trust = ("-CAfile", AUTHORITY, "-verify_return_error", "-verify_hostname", OTHER_NAME)
        self._run("openssl", "s_client", "-connect", "localhost:6379", *trust)
        self._until("the server is ready", self._is_ready)

    def _renewal(self) -> None:
        """A missing certificate is due like an old one."""
        certificate = "/etc/sweetspot/tls/server.crt"
        before = self._run("sha256sum", certificate)
        self._run(SERVER, "certificates")
        expect("certificate that is not due", self._run("sha256sum", certificate), before)
        self._run("rm", certificate)
        self._run("systemctl", "start", "sweetspot-certificates.service")
        expect("a new certificate", self._run("sha256sum", certificate) != before, True)
        self._curl(f"https://{NAME}/healthz")
        self._run("openssl", "s_client", "-connect", "localhost:6379", "-CAfile", AUTHORITY, "-verify_return_error")

    def _own_certificate(self) -> None:
        """Without the authority, the certificate is one that the server cannot renew."""
        self._run(SERVER, "install", OTHER_NAME)  # the certificate is valid for this name
        self._run("sh", "-c", "rm /etc/sweetspot/authority/*; chmod 600 /etc/sweetspot/tls/server.key")
        before = self._run("sha256sum", "/etc/sweetspot/tls/server.crt")
        self._run(SERVER, "install", OTHER_NAME)
        expect("certificate", self._run("sha256sum", "/etc/sweetspot/tls/server.crt"), before)
        self._until("the server is ready", self._is_ready)

    def _uninstall(self) -> None:
        self._run(SERVER, "uninstall")
        expect("releases", self._run("sh", "-c", "ls -d /opt/sweetspot 2>/dev/null || true"), "")
        expect("units", self._run("systemctl", "list-units", "--plain", "--no-legend", "sweetspot*"), "")
        self._run("sh", "-c", f"set -e; cd {SOURCE}\n{INSTALL_FROM_ARCHIVE}")
        expect("people of the kept database", self._people(), "admin")
        self._run(SERVER, "uninstall", "--data")
        left = "/etc/sweetspot /var/backups/sweetspot /var/lib/sweetspot /var/cache/sweetspot"
        expect("files", self._run("sh", "-c", f"ls -d {left} {REDIS_USERS} 2>/dev/null || true"), "")
        databases = self._run("runuser", "-u", "postgres", "--", "psql", "-Atc", "select datname from pg_database")
        expect("databases", {"sweetspot", "moved"} & set(databases.split()), {"sweetspot"})
        expect("failed units", self._run("systemctl", "--failed", "--plain", "--no-legend"), "")

    def _people(self) -> str:
        return self._manage_shell(
            "from webapp.core.models import User; print(*User.objects.values_list('username', flat=True))"
        )

    def _status(self, address: str, *options: str) -> str:
        return self._curl(*options, "--output", "/dev/null", "--write-out", "%{http_code}", address)

    def _curl(self, *arguments: str) -> str:
        return self._run("curl", "--silent", "--show-error", "--cacert", AUTHORITY, *arguments)

    CHECKS: ClassVar[Mapping[str, Callable[["_Check"], None]]] = {
        "units are valid and run": _units,
        "plain HTTP is redirected, static files are served": _pages,
        "log-in, and forms of other sites are refused": _log_in,
        "the client's address comes from the proxy only": _address,
        "a host enrols, and reaches its own queue over TLS": _host,
        "log lines are JSON": _json_lines,
        "a certificate is renewed when it is due": _renewal,
        "a second installation changes nothing": _again,
        "backup and restore": _backup,
        "another machine, with another name and database": _move,
        "another public name": _rename,
        "a certificate of another authority": _own_certificate,
        "upgrade without internet, and roll-back": _upgrade,
        "removal, a new installation with the kept data, and removal of everything": _uninstall,
    }


if __name__ == "__main__":
    run_command(main)
