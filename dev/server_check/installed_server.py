"""The server in a bare Debian, as its administrator uses it."""

from collections.abc import Callable

from dev.console import ToolError
from dev.server_check.bare_debian import BareDebian
from dev.stack.network import await_condition

NAME = "sweetspot.test"
SERVER = "sweetspot-server"
SERVER_SCRIPT = f"webapp/deploy/{SERVER}"
AUTHORITY = "/etc/sweetspot/tls/ca.crt"
CURRENT = "/opt/sweetspot/current"
WAIT_S = 600.0  # against what hangs, not against a slow machine


class InstalledServer:
    def __init__(self, debian: BareDebian) -> None:
        self._debian = debian

    def _run(self, *argv: str, stdin: str = "") -> str:
        return self._debian.run(*argv, stdin=stdin).stdout

    def _manage_shell(self, code: str, stdin: str = "") -> str:
        return self._run(SERVER, "manage", "shell", "--no-imports", "-c", code, stdin=stdin).strip()

    def _enrol(self, host: str) -> str:
        """Enrol a worker with the installed release. Return its command line without the command."""
        token = self._run(SERVER, "manage", "enrolment_token", "--host", host).strip()
        release = self._run("readlink", CURRENT).strip()
        worker = f"cd {release} && exec .venv/bin/python -m worker --state /root/worker"
        enrol = f"{worker} enrol --server https://{NAME} --ca {AUTHORITY} --token -"
        self._run("sh", "-c", enrol, stdin=token + "\n")
        return worker

    def _start_worker(self, worker: str) -> None:
        self._run("systemd-run", "--quiet", "--unit=worker", "sh", "-c", f"{worker} start")
        self._until("the worker is ready", lambda: " ready." in self._run("journalctl", "-u", "worker", "-o", "cat"))

    def _is_ready(self) -> bool:
        return self._debian.run("curl", "--silent", "--fail", "http://localhost/healthz", check=False).returncode == 0

    def _until(self, what: str, condition: Callable[[], bool], limit_s: float = WAIT_S) -> None:
        if not await_condition(condition, limit_s=limit_s, every_s=1):
            raise ToolError(f"Not within {limit_s:.0f} s: {what}")


def expect(what: str, found: object, wanted: object) -> None:
    if found != wanted:
        raise ToolError(f"{what}: found {found!r}, expected {wanted!r}")
