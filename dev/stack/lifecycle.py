"""The stack as a whole: what is started in which order, what is stopped, what is removed."""

import shutil
import signal
import socket
from collections.abc import Callable

from dev.console import say, step
from dev.stack import loop_device, postgres, processes, redis_server, services
from dev.stack.state import State

# In the order in which they are stopped: whoever has something to say is stopped before who listens.
STOPS: tuple[tuple[str, int, float], ...] = (
    (services.WORKER, signal.SIGTERM, services.WORKER_STOP_LIMIT_S),
    (services.BEAT, signal.SIGTERM, 15.0),
    (services.TASKS, signal.SIGTERM, 15.0),
    (services.WEB, signal.SIGTERM, 15.0),
    (redis_server.NAME, signal.SIGTERM, 15.0),
    (postgres.NAME, signal.SIGINT, 30.0),  # "fast": does not wait for clients
)
LABELS = {
    services.WORKER: "storage worker",
    services.BEAT: "beat",
    services.TASKS: "server's tasks",
    services.WEB: "web tier",
    redis_server.NAME: "Redis",
    postgres.NAME: "PostgreSQL",
}


def start_stores(state: State, *, careless: bool = False) -> None:
    """PostgreSQL and Redis; `careless` ones forget everything when the machine loses power. Raises Trouble."""
    state.prepare()
    with state.locked():
        _start(state, postgres.NAME, lambda: postgres.start(state, careless=careless))
        _start(state, redis_server.NAME, lambda: redis_server.start(state))


def start_server(state: State, listener: socket.socket | None) -> None:
    """Web tier (on the socket reserved for it), tasks and beat; the database must be migrated. Raises Trouble."""
    with state.locked():
        services.start_background(state)
        _start(state, services.WEB, lambda: services.start_web(state, listener))


def start_worker(state: State) -> None:
    with state.locked():
        _start(state, services.WORKER, lambda: services.start_worker(state))


def _start(state: State, name: str, begin: Callable[[], None]) -> None:
    if processes.known(state, name):
        begin()  # it only looks whether it answers
        return
    with step(f"starting {LABELS[name]}"):
        begin()


def running(state: State) -> list[str]:
    """Names of what runs now."""
    return [name for name, _, _ in STOPS if processes.known(state, name)]


def stop(state: State, *, quietly: bool = False) -> bool:
    """End exactly what was started here and give back the loop device. False if nothing ran. Raises Trouble."""
    if not state.exists:
        return False
    with state.locked():
        stopped = [_stop(state, name, number, limit_s, quietly) for name, number, limit_s in STOPS]
        detached = loop_device.detach(state)
        if detached and not quietly:
            say(f"  ✓ {detached} detached")
    return any(stopped) or bool(detached)


def _stop(state: State, name: str, number: int, limit_s: float, quietly: bool) -> bool:
    stopped = processes.stop(state, name, stop_signal=number, limit_s=limit_s)
    if stopped and not quietly:
        say(f"  ✓ {LABELS[name]} stopped")
    return stopped


def remove(state: State) -> None:
    """Stop everything and remove all data."""
    stop(state, quietly=True)
    if state.exists:
        shutil.rmtree(state.root)
