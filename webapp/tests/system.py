"""The whole system for a test: gunicorn on a loopback port, real workers, the test's own database and Redis.

The periodic ticks, which beat starts in production, are called by `System.until`, so a test
sees each step of them and needs no further process.
"""

import json
import os
import signal
import socket
import ssl
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote
from uuid import UUID

from django.conf import settings
from django.db import connection

from dev.stack.network import await_condition, free_port
from webapp.hosts.models import Host, Target
from webapp.hosts.services import issue_enrolment_token
from webapp.plans.document import PlanDocument
from webapp.plans.services import create_plan
from webapp.runs.models import OPEN_RUN_STATES, Run
from webapp.runs.services import start_run
from webapp.runs.tasks import tick as tick_runs
from webapp.schedules.tasks import tick as tick_schedules

ROOT = Path(__file__).parents[2]
TICK_EVERY_S = 1.0
START_LIMIT_S = 30.0
READY = " is ready."  # a worker has registered and takes orders


def database_url() -> str:
    """The test's database, as a child process can reach it."""
    facts = connection.settings_dict
    query = f"?host={quote(facts['HOST'], safe='')}" + (f"&port={facts['PORT']}" if facts["PORT"] else "")
    return f"postgres://{quote(facts['USER'])}:{quote(facts['PASSWORD'])}@/{facts['NAME']}{query}"


def await_true(condition: Callable[[], object], *, limit_s: float, what: str) -> None:
    assert await_condition(lambda: bool(condition()), limit_s=limit_s), f"{what}: not within {limit_s:.0f} s"


def _is_socket(descriptor: Path) -> bool:
    """False for one that was closed meanwhile."""
    try:
        return str(descriptor.readlink()).startswith("socket:")
    except FileNotFoundError:
        return False


class Process:
    """One child with its log."""

    def __init__(self, command: Sequence[str], log: Path, environment: dict[str, str]) -> None:
        self.log = log
        self.child = subprocess.Popen(
            list(command), cwd=ROOT, env=environment, stdout=log.open("ab"), stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL, start_new_session=True,
        )  # fmt: skip

    def ended(self) -> bool:
        return self.child.poll() is not None

    def kill(self) -> None:
        """SIGKILL to it alone; what it started is on its own."""
        self.child.kill()
        self.child.wait(10)

    def kill_with_children(self) -> None:
        os.killpg(self.child.pid, signal.SIGKILL)
        self.child.wait(10)

    def stop(self, limit_s: float = 30) -> None:
        self.child.terminate()
        try:
            self.child.wait(limit_s)
        except subprocess.TimeoutExpired:
            self.kill()
            raise


class Web:
    """gunicorn over the test's database."""

    def __init__(self, folder: Path) -> None:
        self._log = folder / "web.log"  # of all starts of this web tier
        self._port = free_port()
        self.url = f"http://127.0.0.1:{self._port}"
        self.environment = {
            **os.environ,
            "SWEETSPOT_DATABASE_URL": database_url(),
            "SWEETSPOT_PUBLIC_URL": self.url,
            "SWEETSPOT_REDIS_URL": settings.REDIS_URL,
            "SWEETSPOT_DEBUG": "0",
        }
        self._process: Process | None = None
        self.program = [sys.executable, "-m"]  # what runs a Python module
        self.trust: ssl.SSLContext | None = None

    def start(self) -> None:
        command = [
            *self.program, "gunicorn", "webapp.wsgi", "--config", "python:webapp.serving",
            "--bind", f"127.0.0.1:{self._port}", "--workers", "1", "--log-level", "warning",
        ]  # fmt: skip
        self._process = Process(command, self._log, self.environment)
        await_true(self._answers, limit_s=START_LIMIT_S, what="gunicorn answers")

    def ensure_running(self) -> None:
        if self._process is None or self._process.ended():
            self.start()

    @property
    def log(self) -> str:
        return self._log.read_text()

    def _answers(self) -> bool:
        """A whole exchange: the socket listens before there is a process that serves it."""
        assert self._process
        assert not self._process.ended(), self.log
        try:
            with urllib.request.urlopen(self.url + "/healthz/live", context=self.trust, timeout=5) as answer:
                return bool(answer.status == 200)
        except OSError:
            return False

    def idle(self) -> socket.socket:
        """A connection on which nothing is said."""
        return socket.create_connection(("127.0.0.1", self._port), timeout=60)

    def connections(self) -> int:
        """How many sockets the process that serves has."""
        assert self._process
        pid = self._process.child.pid
        (served_by,) = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        return sum(_is_socket(each) for each in Path(f"/proc/{served_by}/fd").iterdir())

    def stop(self) -> None:
        if self._process and not self._process.ended():
            self._process.stop()

    def kill(self) -> None:
        assert self._process
        self._process.kill_with_children()


class StorageHost:
    """A worker with a state directory and a policy of its own."""

    def __init__(self, folder: Path, web: Web, slug: str, policy: str, wrap: Callable[[list[str]], list[str]]) -> None:
        self.slug = slug
        self._state = folder / slug
        self._policy = folder / f"{slug}.policy.toml"
        self._policy.write_text(policy)
        self._policy.chmod(0o600)
        self._log = folder / f"{slug}.log"
        self._web = web
        self.wrap = wrap
        self.process: Process | None = None
        self.enrolment_token = ""

    def command(self, *arguments: str) -> list[str]:
        base = [sys.executable, "-m", "worker", "--state", str(self._state), "--policy", str(self._policy)]
        return self.wrap([*base, *arguments])

    def run(self, *arguments: str) -> str:
        done = subprocess.run(
            self.command(*arguments), cwd=ROOT, capture_output=True, text=True, timeout=60, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def enrol(self) -> None:
        self.enrolment_token = issue_enrolment_token(by=None, slug=self.slug)
        self.run("enrol", "--server", self._web.url, "--token", self.enrolment_token)

    def launch(self) -> None:
        self.process = Process(self.command("start"), self._log, dict(os.environ))

    def start(self) -> None:
        since, before = time.time(), self.log.count(READY)
        self.launch()
        await_true(
            lambda: self._greeted(since) and self.log.count(READY) > before,  # a report alone also makes it seen
            limit_s=START_LIMIT_S,
            what=f"{self.slug} says hello",
        )

    def ensure_running(self) -> None:
        if self.process is None or self.process.ended():
            self.start()

    def _greeted(self, since: float) -> bool:
        assert self.process
        assert not self.process.ended(), self.log
        seen = self.host.last_seen_at
        return seen is not None and seen.timestamp() >= since and bool(self.host.capabilities)

    @property
    def log(self) -> str:
        return self._log.read_text() if self._log.exists() else ""

    @property
    def host(self) -> Host:
        return Host.objects.get(slug=self.slug)

    @property
    def enrolment(self) -> dict[str, Any]:
        """What the worker keeps of its enrolment, secrets and all."""
        facts: dict[str, Any] = json.loads((self._state / "worker.json").read_text())
        return facts

    @property
    def host_id(self) -> UUID:
        return UUID(self.enrolment["host"])

    def greet(self) -> None:
        """A changed policy file makes it say hello at once, and not within a minute."""
        self._policy.touch()

    def target(self, slug: str) -> Target:
        return Target.objects.get(host__slug=self.slug, slug=slug, in_policy=True)

    def kill(self) -> None:
        assert self.process
        self.process.kill()

    def stop(self) -> None:
        if self.process and not self.process.ended():
            self.process.stop()


class System:
    def __init__(self, folder: Path, web: Web) -> None:
        self.folder = folder
        self.web = web
        self.hosts: list[StorageHost] = []

    def add_host(
        self, slug: str, policy: str, *, wrap: Callable[[list[str]], list[str]] = lambda command: command
    ) -> StorageHost:
        """Enrol a worker through the real HTTP path and start it."""
        host = StorageHost(self.folder, self.web, slug, policy, wrap)
        self.hosts.append(host)
        host.enrol()
        host.start()
        return host

    def start_run(self, document: PlanDocument, *targets: Target, armed: Sequence[str] = ()) -> Run:
        plan = create_plan(document=document, by=None)
        version = plan.versions.get()
        return start_run(version=version, targets=targets, by=None, armed=tuple(armed))

    def until(self, condition: Callable[[], object], *, limit_s: float, what: str) -> None:
        """Wait for it while the periodic task does its work."""
        due = 0.0
        until = time.monotonic() + limit_s
        while not condition():
            now = time.monotonic()
            assert now < until, f"{what}: not within {limit_s:.0f} s\n" + "\n".join(h.log[-3000:] for h in self.hosts)
            if now >= due:
                tick_runs()
                tick_schedules()
                due = now + TICK_EVERY_S
            time.sleep(0.05)  # between two looks

    def until_ended(self, run: Run, *, limit_s: float) -> Run:
        def ended() -> bool:
            run.refresh_from_db()
            return run.state not in OPEN_RUN_STATES

        self.until(ended, limit_s=limit_s, what=f"run {run.number} ends")
        return run

    def get(self, path: str, *, token: str = "") -> Any:
        request = urllib.request.Request(self.web.url + path)
        if token:
            request.add_header("Authorization", f"Bearer {token}")
        with urllib.request.urlopen(request, timeout=10) as answer:
            return json.load(answer)

    def stop_hosts(self) -> None:
        for host in self.hosts:
            host.stop()
