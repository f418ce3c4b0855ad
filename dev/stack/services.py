"""The processes of Sweetspot itself: web tier, the server's own Celery worker, beat, and one storage worker."""

import http.client
import os
import socket
import sys
from pathlib import Path

from dev.stack import postgres, processes, redis_server
from dev.stack.network import LOOPBACK, await_condition, listen
from dev.stack.processes import Command
from dev.stack.state import REPOSITORY, State

WEB, TASKS, BEAT, WORKER = "web", "tasks", "beat", "worker"
DEFAULT_PORT = 8000
START_LIMIT_S = 60.0
WORKER_STOP_LIMIT_S = 60.0  # it stops its trial, restores settings and sends its last reports
CELERY = (sys.executable, "-m", "celery", "--app", "webapp.celery")
QUIET = ("--without-gossip", "--without-mingle", "--without-heartbeat")


def public_url(state: State) -> str:
    return f"http://{LOOPBACK}:{state.read_facts('ports.json').get(WEB, 0)}"


def reserve_address(state: State) -> socket.socket | None:
    """The web tier's socket: its last port if free, else the default port, else any. None if the web tier runs."""
    if processes.known(state, WEB):
        return None
    ports = state.read_facts("ports.json")
    listener = listen(ports.get(WEB, 0), DEFAULT_PORT)
    state.write_facts("ports.json", {**ports, WEB: listener.getsockname()[1]})
    return listener


def environment(state: State) -> dict[str, str]:
    """The environment of every process of this stack; extends the caller's environment."""
    passed = ("SWEETSPOT_SMTP_URL", "SWEETSPOT_MAIL_FROM", "SWEETSPOT_WEBHOOK_NETWORKS")
    own = {name: value for name, value in os.environ.items() if name in passed or not name.startswith("SWEETSPOT_")}
    return {
        **own,
        "DJANGO_SETTINGS_MODULE": "webapp.settings.base",
        "PYTHONUNBUFFERED": "1",
        "PYTHONPATH": str(REPOSITORY),
        "SWEETSPOT_SECRET_KEY": state.secret("secret_key"),
        "SWEETSPOT_DATABASE_URL": postgres.url(state),
        "SWEETSPOT_REDIS_URL": redis_server.url(state),
        "SWEETSPOT_PUBLIC_URL": public_url(state),
        "SWEETSPOT_STATIC_ROOT": str(state.static),
        "SWEETSPOT_HTTPS": "0",
    }


def _command(state: State, name: str, *argv: str, pass_fds: tuple[int, ...] = ()) -> Command:
    return Command(name=name, argv=argv, environment=environment(state), folder=REPOSITORY, pass_fds=pass_fds)


def web(state: State, listener: socket.socket) -> Command:
    options = ("--config", "python:webapp.serving", "--graceful-timeout", "5")
    gunicorn = (sys.executable, "-m", "gunicorn", "webapp.wsgi", "--bind", f"fd://{listener.fileno()}")
    return _command(state, WEB, *gunicorn, *options, pass_fds=(listener.fileno(),))


def tasks(state: State) -> Command:
    queue = ("worker", "--queues", "server", "--pool", "threads", "--concurrency", "2", "--hostname", "server@%h")
    return _command(state, TASKS, *CELERY, *queue, *QUIET, "--loglevel", "INFO")


def beat(state: State) -> Command:
    return _command(state, BEAT, *CELERY, "beat", "--pidfile=", "--loglevel", "INFO")


def worker_state(state: State) -> Path:
    return state.root / "worker"


def worker_argv(state: State, *argv: str) -> tuple[str, ...]:
    paths = ("--state", str(worker_state(state)), "--policy", str(state.root / "policy.toml"))
    return (sys.executable, "-m", "worker", *paths, *argv)


def worker(state: State) -> Command:
    return _command(state, WORKER, *worker_argv(state, "start"))


def start_web(state: State, listener: socket.socket | None) -> None:
    """Start the web tier on its socket (None if it runs), and wait until it answers. Raises ToolError."""
    if listener:
        _start(state, web(state, listener))
        listener.close()
    await_web(state)


def await_web(state: State) -> None:
    """Wait until the web tier answers. Raises ToolError."""
    if not await_condition(lambda: _web_answers(state), limit_s=START_LIMIT_S):
        raise processes.failure(state, WEB, f"did not answer within {START_LIMIT_S:.0f} s")


def start_background(state: State) -> None:
    for command in (tasks(state), beat(state)):
        _start(state, command)


def start_worker(state: State) -> None:
    """Start the storage worker unless it runs, and wait until it accepts orders. Raises ToolError."""
    if processes.known(state, WORKER):
        return
    log = processes.log_path(state, WORKER)
    seen = log.stat().st_size if log.exists() else 0
    _start(state, worker(state))
    if not await_condition(lambda: _worker_ready(state, seen), limit_s=START_LIMIT_S):
        raise processes.failure(state, WORKER, f"accepted no orders within {START_LIMIT_S:.0f} s")


def _start(state: State, command: Command) -> None:
    if processes.known(state, command.name) is None:
        processes.start(state, command)


def _require_running(state: State, name: str) -> None:
    if processes.known(state, name) is None:
        raise processes.failure(state, name, "ended at once")


def _web_answers(state: State) -> bool:
    _require_running(state, WEB)
    connection = http.client.HTTPConnection(LOOPBACK, state.read_facts("ports.json")[WEB], timeout=20)
    try:
        connection.request("GET", "/")
        status = connection.getresponse().status
    except OSError:
        return False
    finally:
        connection.close()
    if status >= 500:
        raise processes.failure(state, WEB, f"answers with HTTP status {status}")
    return True


def _worker_ready(state: State, seen: int) -> bool:
    _require_running(state, WORKER)
    with processes.log_path(state, WORKER).open("rb") as log:
        log.seek(seen)
        return b" ready." in log.read()
