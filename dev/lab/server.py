"""Sweetspot's server on this machine for the guest: the complete server, with TLS and its own host name."""

import io
import os
import ssl
import urllib.request
from dataclasses import replace
from pathlib import Path

import django
from django.core.management import call_command

from dev.console import ToolError, step
from dev.stack import lifecycle, postgres, processes, redis_server, services
from dev.stack.network import LOOPBACK, await_condition
from dev.stack.processes import Command
from dev.stack.state import State
from webapp.deploy import certificates

NAME = "sweetspot.lab"
WEB_PORT, BROKER_PORT = 443, 6380  # as the guest uses them
FORWARDED_PORTS = {WEB_PORT: services.WEB, BROKER_PORT: redis_server.TLS_NAME}
START_LIMIT_S = 90.0


class Server:
    """`start` also sets up Django in this process; import models after it."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._tls = state.root / "tls"

    @property
    def authority(self) -> Path:
        """The certificate that the guest must trust."""
        return self._tls / "ca.crt"

    def start(self) -> None:
        """Raises ToolError."""
        with step("starting Sweetspot's server outside the guest"):
            lifecycle.remove(self._state)
            self._state.prepare()
            self._tls.mkdir(mode=0o755, exist_ok=True)
            certificates.ensure(self._tls, self._tls, [NAME, LOOPBACK])
            postgres.start(self._state, durable=False)
            redis_server.start(self._state, certificates=self._tls)
            self._start_processes()

    def _start_processes(self) -> None:
        listener = services.reserve_address(self._state)
        if listener is None:
            raise ToolError("A server of the lab is already running.")
        os.environ.update(self._environment())
        django.setup()
        call_command("migrate", verbosity=0)
        call_command("setup", stdout=io.StringIO())
        with listener:
            self._start(services.web(self._state, listener))
        if not await_condition(self._answers, limit_s=START_LIMIT_S):
            raise processes.failure(self._state, services.WEB, f"did not answer within {START_LIMIT_S:.0f} s")
        for command in (services.tasks(self._state), services.beat(self._state)):
            self._start(command)

    def _start(self, command: Command) -> None:
        environment = {**command.environment, **self._environment()}
        processes.start(self._state, replace(command, environment=environment))

    def _environment(self) -> dict[str, str]:
        certificate = f"--certfile {self._tls / 'server.crt'} --keyfile {self._tls / 'server.key'}"
        return {
            **services.environment(self._state),
            "SWEETSPOT_PUBLIC_URL": f"https://{NAME}",
            "SWEETSPOT_ALLOWED_HOSTS": f"{NAME},{LOOPBACK}",
            "SWEETSPOT_HTTPS": "1",
            "SWEETSPOT_WORKER_REDIS_URL": f"rediss://{NAME}:{BROKER_PORT}/0",
            "GUNICORN_CMD_ARGS": certificate,
        }

    def _answers(self) -> bool:
        if processes.known(self._state, services.WEB) is None:
            raise processes.failure(self._state, services.WEB, "ended at once")
        port = self._state.read_facts("ports.json")[services.WEB]
        trust = ssl.create_default_context(cafile=self.authority)
        try:
            with urllib.request.urlopen(f"https://{LOOPBACK}:{port}/healthz/live", context=trust, timeout=10) as answer:
                return bool(answer.status == 200)
        except OSError:
            return False

    def end(self) -> None:
        """Stop its processes and delete all its data."""
        lifecycle.remove(self._state)
