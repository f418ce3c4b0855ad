"""Faults of processes: killed, frozen, terminated, restarted.

A fault function injects the fault, holds it for its duration and reverts it. Faults may overlap, so its process may
already be down.
"""

import contextlib
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

import redis

from dev.faults.fault_schedule import ScheduledFault
from dev.faults.installation import Installation
from dev.stack import postgres, processes, redis_server, services
from worker.process import supervisor

SECOND_WORKER = "second worker"
SECOND_WORKER_LIMIT_S = 60.0  # for its end
FaultFunction = Callable[[Installation, ScheduledFault], None]


def _signal(pids: list[int], number: int) -> None:
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)


def _pid(installation: Installation, name: str) -> list[int]:
    """The service's main process; empty if it is down."""
    record = processes.known(installation.state, name)
    return [record.pid] if record else []


def _pids(installation: Installation, name: str) -> list[int]:
    """The service's process and all its descendants, parents first."""
    return [each for pid in _pid(installation, name) for each in processes.tree(pid)]


def _kill(installation: Installation, fault: ScheduledFault, name: str, pids: list[int]) -> None:
    """SIGKILL; in half of the cases the service stays down for the fault's duration."""
    with installation.supervisor.paused(name):
        _signal(pids, signal.SIGKILL)
        installation.pause(fault.duration_s if fault.choice < 0.5 else 0)


def _freeze(installation: Installation, fault: ScheduledFault, pids: list[int]) -> None:
    _signal(pids, signal.SIGSTOP)
    try:
        installation.pause(fault.duration_s)
    finally:
        _signal(pids, signal.SIGCONT)


def _killer(name: str) -> FaultFunction:
    return lambda installation, fault: _kill(installation, fault, name, _pids(installation, name))


def _freezer(name: str) -> FaultFunction:
    return lambda installation, fault: _freeze(installation, fault, _pids(installation, name))


def _child_killer(name: str) -> FaultFunction:
    """Kill one child of the service, perhaps in the middle of a transaction."""

    def kill(installation: Installation, fault: ScheduledFault) -> None:
        children = _pids(installation, name)[1:]
        _signal(children[int(fault.choice * len(children)) :][:1], signal.SIGKILL)

    return kill


# ---- hosts


def kill_worker(installation: Installation, fault: ScheduledFault) -> None:
    """Kill the worker alone, without its child processes."""
    name = installation.host(fault).worker
    _kill(installation, fault, name, _pid(installation, name))


def kill_worker_repeatedly(installation: Installation, fault: ScheduledFault) -> None:
    """Kill the worker again while it recovers."""
    for _ in range(4):
        _signal(_pid(installation, installation.host(fault).worker), signal.SIGKILL)
        installation.pause(0.6 + 2 * fault.choice)


def freeze_worker(installation: Installation, fault: ScheduledFault) -> None:
    _freeze(installation, fault, _pid(installation, installation.host(fault).worker))


def terminate_worker(installation: Installation, fault: ScheduledFault) -> None:
    """SIGTERM, as a service manager sends it."""
    name = installation.host(fault).worker
    with installation.supervisor.paused(name):
        _signal(_pid(installation, name), signal.SIGTERM)
        installation.pause(fault.duration_s)


def terminate(installation: Installation, name: str) -> None:
    """SIGTERM. The service is started again at once."""
    _signal(_pid(installation, name), signal.SIGTERM)


def kill(installation: Installation, name: str) -> None:
    """SIGKILL, without its child processes. The service is started again at once."""
    _signal(_pid(installation, name), signal.SIGKILL)


def start_second_worker(installation: Installation, fault: ScheduledFault) -> None:
    """A copy of the state directory is used by a second worker, in half of the cases as on another machine.

    It ends by SIGTERM, and so restores what it may have changed: nobody else knows its journal.
    """
    second = installation.host(fault).second_worker(sees_the_first=fault.choice < 0.5)
    try:
        installation.pause(fault.duration_s)
    finally:
        second.terminate()
        second.wait(SECOND_WORKER_LIMIT_S)


def _await_fio(installation: Installation, fault: ScheduledFault) -> list[int]:
    until = time.monotonic() + 5
    while not (found := fio_pids(installation, installation.host(fault).worker)) and time.monotonic() < until:
        installation.pause(0.05)
    return found


def fio_pids(installation: Installation, worker: str) -> list[int]:
    return [pid for pid in _pids(installation, worker) if _read(pid, "comm").strip() == b"fio"]


def _read(pid: int, name: str) -> bytes:
    try:
        return Path(f"/proc/{pid}/{name}").read_bytes()
    except OSError:
        return b""


def kill_fio(installation: Installation, fault: ScheduledFault) -> None:
    _signal(_await_fio(installation, fault), signal.SIGKILL)


def freeze_fio(installation: Installation, fault: ScheduledFault) -> None:
    _freeze(installation, fault, _await_fio(installation, fault))


def kill_fio_supervisor(installation: Installation, fault: ScheduledFault) -> None:
    """Kill the process between worker and fio."""
    _await_fio(installation, fault)
    program = os.fsencode(Path(supervisor.__file__).name)
    below_worker = _pids(installation, installation.host(fault).worker)[1:]
    _signal([pid for pid in below_worker if program in _read(pid, "cmdline")], signal.SIGKILL)


# ---- server


def kill_postgres(installation: Installation, fault: ScheduledFault) -> None:
    """Kill the postmaster alone; its children notice that and end."""
    _kill(installation, fault, postgres.NAME, _pid(installation, postgres.NAME))


def restart_postgres(installation: Installation, fault: ScheduledFault) -> None:
    """A "fast" shutdown, as an upgrade does it."""
    with installation.supervisor.paused(postgres.NAME):
        _signal(_pid(installation, postgres.NAME), signal.SIGINT)
        installation.pause(min(fault.duration_s, 5))


def empty_redis(installation: Installation, _: ScheduledFault) -> None:
    with contextlib.suppress(redis.exceptions.RedisError), installation.broker() as connection:
        connection.flushall()


FAULTS: dict[str, FaultFunction] = {
    "kill worker": kill_worker,
    "kill worker 4 times": kill_worker_repeatedly,
    "freeze worker": freeze_worker,
    "terminate worker": terminate_worker,
    SECOND_WORKER: start_second_worker,
    "kill fio": kill_fio,
    "freeze fio": freeze_fio,
    "kill fio's supervisor": kill_fio_supervisor,
    "kill web tier": _killer(services.WEB),
    "kill web process": _child_killer(services.WEB),
    "freeze web tier": _freezer(services.WEB),
    "kill tasks": _killer(services.TASKS),
    "freeze tasks": _freezer(services.TASKS),
    "kill beat": _killer(services.BEAT),
    "freeze beat": _freezer(services.BEAT),
    "kill PostgreSQL": kill_postgres,
    "kill backend": _child_killer(postgres.NAME),  # PostgreSQL then disconnects all clients and recovers
    "freeze PostgreSQL": _freezer(postgres.NAME),
    "restart PostgreSQL": restart_postgres,
    "kill Redis": _killer(redis_server.NAME),
    "freeze Redis": _freezer(redis_server.NAME),
    "empty Redis": empty_redis,
}
