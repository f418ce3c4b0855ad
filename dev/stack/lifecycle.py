"""Starts, stops and removes the private stack as a whole."""

import signal
import socket
from collections.abc import Callable, Iterator

from dev.console import ToolError, say, step
from dev.stack import loop_device, postgres, processes, redis_server, services
from dev.stack.state import State

# In the order of stopping: clients before the services they send to.
STOPS: tuple[tuple[str, int, float], ...] = (
    (services.WORKER, signal.SIGTERM, services.WORKER_STOP_LIMIT_S),
    (services.BEAT, signal.SIGTERM, 15.0),
    (services.TASKS, signal.SIGTERM, 15.0),
    (services.WEB, signal.SIGTERM, 15.0),
    (redis_server.NAME, signal.SIGTERM, 15.0),
    (postgres.NAME, signal.SIGINT, 30.0),  # "fast" shutdown: disconnects clients
)
LABELS = {
    services.WORKER: "storage worker",
    services.BEAT: "beat",
    services.TASKS: "server's Celery worker",
    services.WEB: "web tier",
    redis_server.NAME: "Redis",
    postgres.NAME: "PostgreSQL",
}


def start_stores(state: State, *, durable: bool = True) -> None:
    """Start PostgreSQL and Redis; `durable=False` is faster and loses data in a power failure. Raises ToolError."""
    state.prepare()
    with state.locked():
        _start(state, postgres.NAME, lambda: postgres.start(state, durable=durable))
        _start(state, redis_server.NAME, lambda: redis_server.start(state))


def start_server(state: State, listener: socket.socket | None) -> None:
    """Start web tier (on its reserved socket), tasks and beat. The database must be migrated. Raises ToolError."""
    with state.locked():
        services.start_background(state)
        _start(state, services.WEB, lambda: services.start_web(state, listener))


def start_worker(state: State) -> None:
    with state.locked():
        _start(state, services.WORKER, lambda: services.start_worker(state))


def _start(state: State, name: str, start: Callable[[], None]) -> None:
    if processes.known(state, name):
        start()  # only checks that it answers
        return
    with step(f"starting {LABELS[name]}"):
        start()


def running(state: State) -> list[str]:
    """Names of the running services."""
    return [name for name, _, _ in STOPS if processes.known(state, name)]


def stop(state: State, *, quietly: bool = False) -> bool:
    """Stop the services of this state directory and detach its loop devices. False if none ran. Raises ToolError."""
    if not state.exists:
        return False
    with state.locked():
        done = list(_stop_all(state, quietly=quietly))
    return bool(done)


def _stop_all(state: State, *, quietly: bool) -> Iterator[str]:
    """Names of the services that ran and of the devices that were attached."""
    for name, number, limit_s in STOPS:
        if processes.stop(state, name, stop_signal=number, limit_s=limit_s):
            if not quietly:
                say(f"  ✓ {LABELS[name]} stopped")
            yield name
    for device in loop_device.detach_below(state.root):
        if not quietly:
            say(f"  ✓ {device} detached")
        yield device


def remove(state: State) -> None:
    """Stop everything and remove all data. Raises ToolError."""
    stop(state, quietly=True)
    try:
        from worker.kernel.mounts import remove_path
    except ModuleNotFoundError as error:  # `make stop` needs no packages, this does
        raise ToolError(
            "Everything is stopped. The data are kept, because packages are missing: run .ci/setup."
        ) from error
    if state.exists:
        remove_path(state.root)
