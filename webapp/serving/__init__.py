"""Settings of gunicorn (`--config python:webapp.serving`), and the directory of its temporary files.

https://docs.gunicorn.org/en/stable/settings.html
"""

import fcntl
import logging
import os
import shutil
import socket
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any

from webapp.settings.logs import LOGGING

# The directory of uploads and responses in progress, in TMPDIR. It is removed at the end, or after a crash at the
# next start.

PREFIX = "sweetspot-web-"


class OwnDirectory:
    """The directory that `tempfile` uses in this process and in its children."""

    def __init__(self) -> None:
        _remove_left()
        self.path, self._lock = _create()  # locked until the last process of this server has ended
        tempfile.tempdir = str(self.path)

    def remove(self) -> None:
        tempfile.tempdir = None
        shutil.rmtree(self.path, ignore_errors=True)
        os.close(self._lock)


def _create() -> tuple[Path, int]:
    """Create and lock a directory. Try again if another starting server has removed it as a leftover."""
    while True:
        path = Path(tempfile.mkdtemp(prefix=PREFIX))
        with suppress(OSError):
            lock = _lock(path)
            if path.exists():
                return path, lock
            os.close(lock)


def _remove_left() -> None:
    """Remove the directories of servers that were killed."""
    for path in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        if path.lstat().st_uid != os.getuid():
            continue
        with suppress(OSError):  # locked by a running server
            lock = _lock(path)
            shutil.rmtree(path, ignore_errors=True)
            os.close(lock)


def _lock(directory: Path) -> int:
    """The descriptor that holds the lock. Raises OSError."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


worker_class = "webapp.serving.worker.Worker"
# Measured on two cores: with two processes, the cores are idle for a seventh of the time, because the processes wait
# for commits and reports. With four processes, the same work takes more CPU time.
workers = 3
# They exchange data with clients; few others run Django (`webapp.serving.worker`). More than the transfers at the same
# time and the requests that wait for Django.
threads = 256
# An idle connection waits in a selector and does not occupy a thread. All clients send requests at least once a minute:
# an idle worker sends a Hello every minute, and open pages send a request every 1 to 15 seconds.
keepalive = 75
# Of one process. Not many more than its share of 2,000 hosts that connect at once: their first reports would wait
# longer than those in the other processes.
worker_connections = 800
control_socket_disable = True
# By default, gunicorn takes the headers SCRIPT_NAME and PATH_INFO from clients on loopback, and thus from everybody
# behind a proxy that forwards them. No proxy has to set them.
forwarder_headers = ""
# Its lines have the format of all others.
logconfig_dict = {**LOGGING, "loggers": {**LOGGING["loggers"], "gunicorn.error": {"handlers": [], "propagate": True}}}
logging.captureWarnings(True)

FIRST_BYTE_S = 30


def on_starting(server: Any) -> None:
    """In the first process, before it starts others."""
    server.own_directory = OwnDirectory()


def on_exit(server: Any) -> None:
    server.own_directory.remove()


def when_ready(server: Any) -> None:
    """Accept a connection only when data has arrived on it. Otherwise a thread would wait up to five seconds for data.

    Browsers open spare connections. Sixteen of them in each process would block all other clients.
    https://man7.org/linux/man-pages/man7/tcp.7.html (TCP_DEFER_ACCEPT)
    """
    for listener in server.LISTENERS:
        if listener.sock.family in (socket.AF_INET, socket.AF_INET6):
            listener.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_DEFER_ACCEPT, FIRST_BYTE_S)
