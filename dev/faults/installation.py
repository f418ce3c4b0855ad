"""The private installation that the faults hit: server, network and storage hosts. Each service can be restarted."""

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
import redis
from django.core.management import call_command

from dev.console import ToolError, step
from dev.faults import clock, disks
from dev.faults.clock import Clock
from dev.faults.disks import SmallDisk
from dev.faults.fault_schedule import ScheduledFault
from dev.faults.host import PROXY, StorageHost
from dev.faults.network import SERVER_ADDRESS, Network
from dev.faults.service_supervisor import ServiceSupervisor
from dev.stack import postgres, processes, redis_server, services
from dev.stack.loop_device import MIB
from dev.stack.network import LOOPBACK, await_condition, free_port, is_free
from dev.stack.processes import Command
from dev.stack.state import REPOSITORY, State

DATABASE_BYTES = 600 * MIB
LEASE_S = 25  # shorter than the longest fault, so that some leases expire
GATEWAY = "gateway"
BROKER_POLL_S = 1
POSTGRES_SETTINGS = ("max_wal_size=64MB", "min_wal_size=32MB", "checkpoint_timeout=30s", "log_checkpoints=off")
START_LIMIT_S = 60.0


class Installation:
    def __init__(self, state: State, hosts: int) -> None:
        self.state = state
        self.ended = threading.Event()
        state.prepare()
        library = clock.build(state.root)
        self.network = Network(hosts)
        self.server_clock = Clock(state.root / "clock-server", library)
        fio = shutil.which("fio") or ""
        self.hosts = [
            StorageHost(state, self.network, number, Clock(state.root / f"clock-{number}", library), fio=fio)
            for number in range(hosts)
        ]
        self.database_disk: SmallDisk | None = None
        self._web_port, self._broker_port = free_port(), free_port()  # as the hosts use them
        self.supervisor = ServiceSupervisor(state, self._services())

    # ---- start

    def bring_up(self) -> None:
        with step("PostgreSQL and Redis"):
            self._prepare_database_disk()
            postgres.ensure_cluster(self.state)
            self._start_postgres()
            redis_server.start(self.state)
        services.reserve_address(self.state).close()  # type: ignore[union-attr] # only reserves the port number
        os.environ.update(self.environment())
        django.setup()
        with step("tables, web tier, tasks, beat"):
            call_command("migrate", verbosity=0)
            call_command("setup", stdout=io.StringIO())
            self._start_web()
            self._start_tasks()
            self._start_beat()
            services.await_web(self.state)  # its first answer takes long on a busy machine
        with step(f"{len(self.hosts)} hosts with disks, networks and workers"):
            self._start_gateway()
            for host in self.hosts:
                self._bring_up_host(host)
            self._await_hosts()
        self.supervisor.start()

    def _prepare_database_disk(self) -> None:
        owner = str(pwd.getpwnam(postgres.SYSTEM_USER).pw_uid)
        self.database_disk = disks.memory_disk(postgres.folder(self.state), DATABASE_BYTES, owner=owner)

    def _bring_up_host(self, host: StorageHost) -> None:
        from webapp.hosts.services import issue_enrolment_token

        host.prepare()
        self._start_proxy(host)
        if not await_condition(lambda: self._proxy_listens(host), limit_s=START_LIMIT_S):
            raise processes.failure(self.state, host.proxy, "does not listen")
        host.enrol(f"http://{LOOPBACK}:{self._web_port}", issue_enrolment_token(by=None, slug=host.slug))
        host.start_worker()

    def _proxy_listens(self, host: StorageHost) -> bool:
        """Whether a socket listens on the web port in the host's network (proc(5): state 0A)."""
        record = processes.known(self.state, host.proxy)
        if record is None:
            raise processes.failure(self.state, host.proxy, "ended at once")
        table = Path(f"/proc/{record.pid}/net/tcp").read_text()
        return f":{self._web_port:04X} 00000000:0000 0A" in table

    def _await_hosts(self) -> None:
        def all_registered() -> bool:
            with self.database() as connection:
                row = connection.execute("select count(*) from hosts_host where capabilities <> '{}'").fetchone()
            return bool(row and row[0] == len(self.hosts))

        if not await_condition(all_registered, limit_s=START_LIMIT_S):
            raise processes.failure(self.state, self.hosts[0].worker, "did not register")

    # ---- services

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
            raise ToolError(f"Port {port} is not free: processes of the last web tier still run.")
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
        ports = self.state.read_facts("ports.json")
        rules = (
            f"tcp:{SERVER_ADDRESS}:{self._web_port}:{LOOPBACK}:{ports[services.WEB]}",
            f"tcp:{SERVER_ADDRESS}:{self._broker_port}:{LOOPBACK}:{ports[redis_server.NAME]}",
        )
        argv = (sys.executable, str(PROXY), str(self.state.root / "gateway.json"), *rules)
        processes.start(self.state, Command(GATEWAY, argv, dict(os.environ), REPOSITORY))

    def _start_proxy(self, host: StorageHost) -> None:
        host.start_proxy(
            f"http:{LOOPBACK}:{self._web_port}:{SERVER_ADDRESS}:{self._web_port}",
            f"tcp:{LOOPBACK}:{self._broker_port}:{SERVER_ADDRESS}:{self._broker_port}",
        )

    # ---- access for faults and invariants

    def database(self) -> "psycopg.Connection[tuple[object, ...]]":
        """A connection without Django. Raises psycopg.OperationalError while PostgreSQL is down."""
        return psycopg.connect(
            host=str(postgres.folder(self.state)), user=postgres.ROLE, dbname=postgres.DATABASE, autocommit=True,
            connect_timeout=5, options="-c statement_timeout=20000",
        )  # fmt: skip

    def broker(self) -> redis.Redis:
        return redis.Redis.from_url(redis_server.url(self.state), socket_timeout=BROKER_POLL_S + 4)

    def host(self, fault: ScheduledFault) -> StorageHost:
        return self.hosts[fault.host % len(self.hosts)]

    def pause(self, seconds: float) -> None:
        """Wait; return at once when the campaign ends."""
        self.ended.wait(seconds)

    def close(self) -> None:
        self.ended.set()
        self.supervisor.stop()
        for host in self.hosts:
            processes.stop(self.state, host.worker, limit_s=15)
            processes.stop(self.state, host.proxy, limit_s=2)
        for name, limit_s in ((services.BEAT, 5.0), (services.TASKS, 5.0), (services.WEB, 5.0), (GATEWAY, 2.0)):
            processes.stop(self.state, name, limit_s=limit_s)
        processes.stop(self.state, redis_server.NAME, limit_s=5)
        processes.stop(self.state, postgres.NAME, stop_signal=2, limit_s=10)


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex((LOOPBACK, port)) == 0
