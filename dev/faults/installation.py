"""The whole Sweetspot that the faults happen to, each part started so that it can be started again."""

import io
import os
import pwd
import shutil
import socket
import sys
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import django
import psycopg
from django.core.management import call_command

from dev.console import ToolError, step
from dev.faults import clock, disks
from dev.faults.clock import Clock
from dev.faults.disks import MIB, SmallDisk
from dev.faults.host import RELAY, LabHost
from dev.faults.network import Network
from dev.faults.supervisor import Watchman
from dev.stack import postgres, processes, redis_server, services
from dev.stack.network import LOOPBACK, await_condition, free_port, is_free
from dev.stack.processes import Command
from dev.stack.state import REPOSITORY, State

DATABASE_BYTES = 600 * MIB
LEASE_S = 25  # shorter than the longest outage, so that attempts are lost and revived
GATEWAY = "gateway"
POSTGRES_SETTINGS = ("max_wal_size=64MB", "min_wal_size=32MB", "checkpoint_timeout=30s", "log_checkpoints=off")
START_LIMIT_S = 60.0


class World:
    def __init__(self, state: State, hosts: int) -> None:
        self.state = state
        self.root = os.getuid() == 0
        self.ended = threading.Event()
        state.prepare()
        library = clock.build(state.root) if clock.compiler() else None
        self.clocks_jump = library is not None
        self.network = Network(hosts)
        self.server_clock = Clock(state.root / "clock-server", library)
        fio = shutil.which("fio") or ""
        self.hosts = [
            LabHost(state, self.network, number, Clock(state.root / f"clock-{number}", library), fio=fio)
            for number in range(hosts)
        ]
        self.database_disk: SmallDisk | None = None
        self._web_port, self._broker_port = free_port(), free_port()  # as hosts see them
        self.watchman = Watchman(state, self._services())

    # ---- bringing it up

    def bring_up(self) -> None:
        with step("PostgreSQL and Redis"):
            self._prepare_database_disk()
            postgres.ensure_cluster(self.state)
            self._start_postgres()
            redis_server.start(self.state)
        services.reserve_address(self.state).close()  # type: ignore[union-attr] # only for the port's number
        os.environ.update(self.environment())
        django.setup()
        with step("tables, web tier, tasks, beat"):
            call_command("migrate", verbosity=0)
            call_command("setup", stdout=io.StringIO())
            self._start_web()
            self._start_tasks()
            self._start_beat()
        with step(f"{len(self.hosts)} hosts with disks, networks and workers"):
            self._start_gateway()
            for host in self.hosts:
                self._bring_up_host(host)
            self._await_hosts()
        self.watchman.start()

    def _prepare_database_disk(self) -> None:
        if self.root:
            owner = str(pwd.getpwnam(postgres.SYSTEM_USER).pw_uid)
            self.database_disk = disks.memory_disk(postgres.folder(self.state), DATABASE_BYTES, owner=owner)

    def _bring_up_host(self, host: LabHost) -> None:
        from webapp.hosts.services import issue_enrolment_token

        host.prepare(root=self.root)
        self._start_relay(host)
        port = self._web_port + (0 if self.network.real else host.number)
        if not await_condition(lambda: self._relayed(host), limit_s=START_LIMIT_S):
            raise processes.failure(self.state, host.relay, "does not listen")
        host.enrol(f"http://{LOOPBACK}:{port}", issue_enrolment_token(by=None, slug=host.slug))
        host.start_worker()

    def _relayed(self, host: LabHost) -> bool:
        """Somebody listens on two ports in the host's network (proc(5): state 0A)."""
        record = processes.known(self.state, host.relay)
        if record is None:
            raise processes.failure(self.state, host.relay, "ended at once")
        port = self._web_port + (0 if self.network.real else host.number)
        table = Path(f"/proc/{record.pid}/net/tcp").read_text()
        return f":{port:04X} 00000000:0000 0A" in table

    def _await_hosts(self) -> None:
        def all_greeted() -> bool:
            with self.database() as connection:
                row = connection.execute("select count(*) from hosts_host where capabilities <> '{}'").fetchone()
            return bool(row and row[0] == len(self.hosts))

        if not await_condition(all_greeted, limit_s=START_LIMIT_S):
            raise processes.failure(self.state, self.hosts[0].worker, "did not greet")

    # ---- the parts

    def environment(self) -> dict[str, str]:
        address, _, name = redis_server.url(self.state).partition("@")
        return {
            **services.environment(self.state),
            "SWEETSPOT_LEASE_SECONDS": str(LEASE_S),
            "SWEETSPOT_WORKER_REDIS_URL": f"{address}@{LOOPBACK}:{self._broker_port}/{name.rpartition('/')[2]}",
        }

    def _services(self) -> dict[str, Callable[[], None]]:
        parts: dict[str, Callable[[], None]] = {
            postgres.NAME: self._start_postgres,
            redis_server.NAME: lambda: redis_server.start(self.state),
            services.WEB: self._start_web,
            services.TASKS: self._start_tasks,
            services.BEAT: self._start_beat,
        }
        return {**parts, **{host.worker: host.start_worker for host in self.hosts}}

    def _start_postgres(self) -> None:
        command = postgres.command(self.state, settings=POSTGRES_SETTINGS)
        environment = {**command.environment, **self.server_clock.environment}
        processes.start(self.state, replace(command, environment=environment))
        postgres.start(self.state)  # waits until it answers

    def _start(self, command: Command) -> None:
        environment = {**command.environment, **self.environment(), **self.server_clock.environment}
        processes.start(self.state, replace(command, environment=environment))

    def _start_web(self) -> None:
        port = self.state.read_facts("ports.json")[services.WEB]
        if not await_condition(lambda: is_free(port), limit_s=START_LIMIT_S):
            raise ToolError(f"Port {port} is not free: children of the last web tier are still there.")
        listener = services.reserve_address(self.state)
        if listener is None:
            return
        with listener:
            self._start(services.web(self.state, listener))
        await_condition(lambda: _listens(port), limit_s=START_LIMIT_S)

    def _start_tasks(self) -> None:
        self._start(services.tasks(self.state))

    def _start_beat(self) -> None:
        self._start(services.beat(self.state))

    def _start_gateway(self) -> None:
        if not self.network.real:
            return
        here, ports = self.network.server_address, self.state.read_facts("ports.json")
        rules = (
            f"tcp:{here}:{self._web_port}:{LOOPBACK}:{ports[services.WEB]}",
            f"tcp:{here}:{self._broker_port}:{LOOPBACK}:{ports[redis_server.NAME]}",
        )
        argv = (sys.executable, str(RELAY), str(self.state.root / "gateway.json"), *rules)
        processes.start(self.state, Command(GATEWAY, argv, dict(os.environ), REPOSITORY))

    def _start_relay(self, host: LabHost) -> None:
        there, ports = self.network.server_address, self.state.read_facts("ports.json")
        if self.network.real:
            host.start_relay(
                f"http:{LOOPBACK}:{self._web_port}:{there}:{self._web_port}",
                f"tcp:{LOOPBACK}:{self._broker_port}:{there}:{self._broker_port}",
            )
            return
        rules = [f"http:{LOOPBACK}:{self._web_port + host.number}:{LOOPBACK}:{ports[services.WEB]}"]
        if host.number == 0:
            rules.append(f"tcp:{LOOPBACK}:{self._broker_port}:{LOOPBACK}:{ports[redis_server.NAME]}")
        host.start_relay(*rules)

    # ---- what faults and the witness need

    def database(self) -> "psycopg.Connection[tuple[object, ...]]":
        """A connection of one's own, past Django. Raises psycopg.OperationalError while it is down."""
        return psycopg.connect(
            host=str(postgres.folder(self.state)), user=postgres.ROLE, dbname=postgres.DATABASE, autocommit=True,
            connect_timeout=5, options="-c statement_timeout=20000",
        )  # fmt: skip

    def pause(self, seconds: float) -> None:
        """Wait, or less where the campaign is being ended."""
        self.ended.wait(seconds)

    def close(self) -> None:
        self.ended.set()
        self.watchman.stop()
        for host in self.hosts:
            processes.stop(self.state, host.worker, limit_s=15)
            processes.stop(self.state, host.relay, limit_s=2)
        for name, limit_s in ((services.BEAT, 5.0), (services.TASKS, 5.0), (services.WEB, 5.0), (GATEWAY, 2.0)):
            processes.stop(self.state, name, limit_s=limit_s)
        processes.stop(self.state, redis_server.NAME, limit_s=5)
        processes.stop(self.state, postgres.NAME, stop_signal=2, limit_s=10)


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex((LOOPBACK, port)) == 0
