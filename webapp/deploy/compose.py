"""`make compose-env` and `make compose-check`: docker-compose.yml with secrets, and tried from end to end.

A script of its own that needs nothing but Python's standard library and a Docker engine: whoever runs Sweetspot
in containers has no virtual environment.
"""

import json
import os
import secrets
import shutil
import socket
import ssl
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from http.client import HTTPException
from pathlib import Path

CLONE = Path(__file__).resolve().parents[2]
NO_ENGINE = 3  # exit status of a check that could not be made
BUILD_LIMIT_S = 3600
UP_LIMIT_S = 600
PLAN_LIMIT_S = 900
SECRETS = ("SWEETSPOT_SECRET_KEY", "SWEETSPOT_DATABASE_PASSWORD", "SWEETSPOT_REDIS_PASSWORD", "SWEETSPOT_METRICS_TOKEN")
SERVICES = ("postgres", "redis", "web", "tasks", "beat", "worker")
PROFILES = ("--profile", "worker", "--profile", "balancer")
BALANCED = "balanced-web"
CLIENTS = 8  # each has one request in flight at most
LOAD_S = 20.0
HOST = "compose-example"
# Small on purpose: what is tried is the way there and back, not the storage.
PLAN = """\
title: Compose check
repeats: 2
common: {size: 16M, runtime: 2s, ioengine: io_uring}
parts:
  - name: read
    factors: {pattern: randread, block_size: 4k, iodepth: 4}
"""
LOAD_PLAN = """\
import sys
from webapp.plans.services import create_plan
from webapp.plans.document import import_plan
print(create_plan(document=import_plan(sys.stdin.read()), by=None).slug)
"""
FACTS = """\
import json
from webapp.hosts.models import Host
from webapp.results.models import Result, Sample
from webapp.runs.models import Run
print(json.dumps([Run.objects.count(), Result.objects.count(), Sample.objects.count(), Host.objects.count()]))
"""
ADD_CLIENT = """\
from webapp.core.models import Role
from webapp.core.services import create_api_token, create_user, generated_password
user = create_user(username="load", password=generated_password(), role=Role.OPERATOR)
print(create_api_token(user=user, name="load", may_arm=False))
"""
LIST_NOTES = """\
import json
from webapp.runs.models import Note
print(json.dumps(list(Note.objects.values_list("text", flat=True))))
"""
DUMP = "/tmp/sweetspot.dump"  # noqa: S108 - in the container of PostgreSQL
OTHER_NAME = "other.sweetspot.test"
CERTIFICATE_LIMIT_S = 180  # Redis looks for a new certificate every minute
ASK_REDIS = f"""\
import socket, ssl
context = ssl.create_default_context(cafile="/tls/ca.crt")
context.wrap_socket(socket.create_connection(("redis", 6379), timeout=5), server_hostname="{OTHER_NAME}")
"""


class Trouble(Exception):
    """Something stands in the way; the text says what, where and what to do."""


def say(text: str) -> None:
    print(text, flush=True)


def complain(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


@contextmanager
def step(name: str) -> Iterator[None]:
    """Say what is being done, and how long it took."""
    say(f"  … {name}")
    started_at = time.monotonic()
    try:
        yield
    except BaseException:
        say(f"  ✗ {name}")
        raise
    say(f"  ✓ {name} ({time.monotonic() - started_at:.0f} s)")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def environment_text() -> str:
    """The content of a new .env: every secret anew, 256 bits each."""
    lines = [f"{name}={secrets.token_hex(32)}" for name in SECRETS]
    return "\n".join(["# Made by `make compose-env`. Keep it, and keep it to yourself.", *lines]) + "\n"


def write_environment(path: Path) -> None:
    """Write .env, readable by its owner alone. Raises Trouble where there is one: its secrets open the data."""
    try:
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError as error:
        raise Trouble(
            f"{path} is there already, and the data were made with its secrets. It is left as it is."
        ) from error
    with os.fdopen(fd, "w") as file:
        file.write(environment_text())


def main(command: str) -> int:
    if command == "env":
        write_environment(CLONE / ".env")
        say("Wrote .env. Next: docker compose up --build --detach")
        return 0
    tool = compose_tool()
    if tool is None:
        complain("compose-check was NOT made: there is no Docker engine that answers here, or no docker compose.")
        return NO_ENGINE
    with tempfile.TemporaryDirectory(prefix="sweetspot-compose-") as folder:
        return _Check(tool, Path(folder)).run()


def compose_tool() -> list[str] | None:
    """`docker compose`, else `docker-compose`; None where neither or no engine is there."""
    if (
        shutil.which("docker") is None
        or subprocess.run(["docker", "info"], capture_output=True, check=False).returncode
    ):
        return None
    if subprocess.run(["docker", "compose", "version"], capture_output=True, check=False).returncode == 0:
        return ["docker", "compose"]
    return ["docker-compose"] if shutil.which("docker-compose") else None


class _Check:
    """One project with a name, secrets and ports of its own; it is gone afterwards, whatever happens."""

    def __init__(self, tool: list[str], folder: Path) -> None:
        self._env = folder / "env"
        self._balancer_port = free_port()
        ports = {"PORT": free_port(), "REDIS_PORT": free_port(), "BALANCER_PORT": self._balancer_port}
        lines = (f"SWEETSPOT_{name}={port}\n" for name, port in ports.items())
        self._env.write_text(environment_text() + "".join(lines))
        project = f"sweetspot-check-{secrets.token_hex(3)}"
        self._argv = [*tool, "--env-file", str(self._env), "--project-name", project]
        self._tool = tool
        self._last_error = ""

    def run(self) -> int:
        say(f"Checking docker-compose.yml with {' '.join(self._tool)}:")
        try:
            self._refuses_without_secrets()
            with step("building the images"):
                self._compose(*PROFILES, "build", limit_s=BUILD_LIMIT_S)
            self._come_up()
            self._enrol()
            slug = self._manage("shell", "--no-imports", "-c", LOAD_PLAN, stdin=PLAN).strip().splitlines()[-1]
            self._measure(slug, "a plan through io_uring in the worker's container")
            before = self._facts()
            self._restart_each()
            self._same(before)
            self._back_up()
            self._measure(slug, "the same plan after the restarts")
            self._restore(before)
            self._kill_one_of_two()
            self._rename()
        except Trouble as trouble:
            complain(str(trouble))
            self._show_logs()
            return 1
        finally:
            with step("removing containers and volumes of the check"):
                self._compose(*PROFILES, "down", "--volumes", "--remove-orphans")
        say("All checks of docker-compose.yml passed.")
        return 0

    def _refuses_without_secrets(self) -> None:
        bare = {name: value for name, value in os.environ.items() if name not in SECRETS}
        nothing = self._env.with_name("nothing")
        nothing.touch()
        argv = [*self._tool, "--env-file", str(nothing), "config"]
        done = subprocess.run(argv, cwd=CLONE, env=bare, capture_output=True, text=True, check=False)
        if done.returncode == 0 or "make compose-env" not in done.stderr:
            raise Trouble(f"Without secrets it does not refuse to start: {done.stderr or done.stdout}")
        say("  ✓ it refuses to start without secrets")

    def _come_up(self) -> None:
        with step("starting PostgreSQL, Redis, web tier, tasks and beat"):
            self._compose("up", "--detach", limit_s=UP_LIMIT_S)
            self._await_ready()

    def _await_ready(self) -> None:
        probe = (
            "import ssl, urllib.request as r;"
            "r.urlopen('https://localhost:8443/healthz', timeout=5,"
            " context=ssl.create_default_context(cafile='/tls/ca.crt'))"
        )
        until = time.monotonic() + UP_LIMIT_S
        while self._exec("web", "python", "-c", probe, check=False) is None:
            if time.monotonic() > until:
                raise Trouble(f"/healthz was not ready within {UP_LIMIT_S} s")
            time.sleep(1)

    def _enrol(self) -> None:
        with step("enrolling the example worker and starting it"):
            token = self._manage("enrolment_token", "--host", HOST).strip().splitlines()[-1]
            enrol = ["enrol", "--server", "https://web:8443", "--ca", "/tls/ca.crt", "--name", HOST, "--token", "-"]
            run = ["--profile", "worker", "run", "--rm", "--no-deps", "-T", "worker", *enrol]
            self._compose(*run, stdin=token + "\n")
            self._compose("--profile", "worker", "up", "--detach", "worker", limit_s=UP_LIMIT_S)

    def _measure(self, slug: str, what: str) -> None:
        with step(what):
            until = time.monotonic() + 120
            options = ["--host", HOST, "--target", "scratch", "--wait", "--json"]
            while True:
                done = self._exec("web", "python", "manage.py", "run_plan", slug, *options, check=False)
                if done is not None:
                    return
                if time.monotonic() > until:
                    raise Trouble(f"{what}: not every trial is done\n{self._last_error}")
                time.sleep(2)  # the worker has not said hello yet

    def _restart_each(self) -> None:
        for service in SERVICES:
            with step(f"restarting {service}"):
                self._compose("--profile", "worker", "restart", service, limit_s=UP_LIMIT_S)
                self._await_ready()

    def _same(self, before: list[int]) -> None:
        after = self._facts()
        if before != after or not all(before):
            raise Trouble(f"Runs, results, samples and hosts were {before} and are {after} now.")
        say(f"  ✓ as before: {before[0]} run, {before[1]} results, {before[2]} samples")

    def _back_up(self) -> None:
        with step("backup"):
            self._exec(
                "postgres", "pg_dump", "--username", "sweetspot", "--format", "custom", "--file", DUMP, "sweetspot"
            )
            self._manage("note_backup")

    def _restore(self, before: list[int]) -> None:
        with step("restore"):
            self._compose("stop", "web", "tasks", "beat")
            self._exec("postgres", "dropdb", "--username", "sweetspot", "--force", "sweetspot")
            self._exec("postgres", "createdb", "--username", "sweetspot", "sweetspot")
            how = ["--username", "sweetspot", "--no-owner", "--exit-on-error", "--dbname", "sweetspot"]
            self._exec("postgres", "pg_restore", *how, DUMP)
            self._come_up()
        self._same(before)

    def _kill_one_of_two(self) -> None:
        """Kill a web tier while clients add notes to a run. Every note that was answered must be stored."""
        balancer = ("--profile", "balancer")
        with step("starting two web tiers behind a load balancer"):
            self._compose(*balancer, "up", "--detach", "--scale", f"{BALANCED}=2", BALANCED, "balancer")
            killed, left = (self._compose(*balancer, "ps", "--quiet", BALANCED) or "").split()
        token = self._manage("shell", "--no-imports", "-c", ADD_CLIENT).strip().splitlines()[-1]
        load = _Load(self._balancer_port, self._exec("web", "cat", "/tls/ca.crt") or "", token)
        packets = [_packets(each) for each in (killed, left)]
        with step(f"killing one of them while {CLIENTS} clients write"), ThreadPoolExecutor(CLIENTS) as executor:
            sent = [executor.submit(load.write, client) for client in range(CLIENTS)]
            time.sleep(LOAD_S / 2)
            used = [_packets(each) - before for each, before in zip((killed, left), packets, strict=True)]
            answered_before = len(load.answered)
            _docker("kill", killed)
            counts = [each.result() for each in sent]
        answered, failed = (sum(numbers) for numbers in zip(*counts, strict=True))
        stored = set(json.loads(self._manage("shell", "--no-imports", "-c", LIST_NOTES).strip().splitlines()[-1]))
        lost = load.answered - stored
        say(f"  {answered} requests answered, {failed} failed with the web tier, {len(lost)} lost; packets: {used}")
        if lost or failed > CLIENTS:
            raise Trouble(f"Lost: {sorted(lost)}; failed: {failed}, and {CLIENTS} were in flight. {load.last_error}")
        if min(used) < CLIENTS * 2 or answered == answered_before:
            raise Trouble("The load did not reach both web tiers, or the one that was left answered nothing.")
        self._compose(*balancer, "rm", "--stop", "--force", BALANCED, "balancer")

    def _rename(self) -> None:
        with step("another public name"):
            with self._env.open("a") as file:
                file.write(f"SWEETSPOT_NAME={OTHER_NAME}\n")
            self._come_up()
            until = time.monotonic() + CERTIFICATE_LIMIT_S
            while self._exec("web", "python", "-c", ASK_REDIS, check=False) is None:
                if time.monotonic() > until:
                    raise Trouble(f"Redis has no certificate for {OTHER_NAME}:\n{self._last_error}")
                time.sleep(2)

    def _facts(self) -> list[int]:
        facts: list[int] = json.loads(self._manage("shell", "--no-imports", "-c", FACTS).strip().splitlines()[-1])
        return facts

    def _manage(self, *arguments: str, stdin: str = "") -> str:
        return self._exec("web", "python", "manage.py", *arguments, stdin=stdin) or ""

    def _exec(self, service: str, *command: str, stdin: str = "", check: bool = True) -> str | None:
        return self._compose("exec", "-T", service, *command, stdin=stdin, check=check, limit_s=PLAN_LIMIT_S)

    def _compose(self, *arguments: str, stdin: str = "", check: bool = True, limit_s: float = UP_LIMIT_S) -> str | None:
        """Its output; None where it failed and `check` is off. Raises Trouble."""
        try:
            done = subprocess.run(
                [*self._argv, *arguments], cwd=CLONE, input=stdin, capture_output=True, text=True,
                timeout=limit_s, check=False,
            )  # fmt: skip
        except subprocess.TimeoutExpired as error:
            raise Trouble(f"compose {' '.join(arguments[:3])}… took more than {limit_s:.0f} s.") from error
        self._last_error = (done.stderr or done.stdout)[-3000:]
        if done.returncode and check:
            raise Trouble(f"compose {' '.join(arguments[:4])}… failed ({done.returncode}):\n{self._last_error}")
        return None if done.returncode else done.stdout

    def _show_logs(self) -> None:
        complain(self._compose(*PROFILES, "logs", "--tail", "25", check=False) or "")
        complain(self._compose(*PROFILES, "ps", check=False) or "")


class _Load:
    """Clients that add notes to run 1 through the load balancer."""

    def __init__(self, port: int, authority: str, token: str) -> None:
        self._address = f"https://localhost:{port}/api/v1/runs/1/notes"
        self._context = ssl.create_default_context(cadata=authority)
        self._headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
        self.answered: set[str] = set()  # texts of the notes
        self.last_error = ""

    def write(self, client: int) -> tuple[int, int]:
        """Write for LOAD_S, one request after the other. Return how many were answered and how many failed."""
        until, count, failed = time.monotonic() + LOAD_S, 0, 0
        while time.monotonic() < until:
            text = f"client {client}, request {count + failed}"
            data = json.dumps({"text": text}).encode()
            request = urllib.request.Request(self._address, data, self._headers)  # noqa: S310 - always https
            try:
                with urllib.request.urlopen(request, timeout=30, context=self._context):  # noqa: S310 - as above
                    count += 1
                    self.answered.add(text)
            except (OSError, HTTPException) as error:
                failed += 1
                self.last_error = str(error)
        return count, failed


def _packets(container: str) -> int:
    """How many packets the container has received from its network."""
    return int(_docker("exec", container, "cat", "/sys/class/net/eth0/statistics/rx_packets"))


def _docker(*arguments: str) -> str:
    done = subprocess.run(["docker", *arguments], capture_output=True, text=True, check=False)
    if done.returncode:
        raise Trouble(f"docker {arguments[0]} failed ({done.returncode}): {done.stderr}")
    return done.stdout


def run(arguments: Sequence[str]) -> int:
    if list(arguments) not in (["env"], ["check"]):
        complain("compose.py env|check")
        return 2
    try:
        return main(arguments[0])
    except Trouble as trouble:
        complain(str(trouble))
        return 1


if __name__ == "__main__":
    sys.exit(run(sys.argv[1:]))
