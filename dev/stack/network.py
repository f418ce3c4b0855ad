"""Free ports on loopback, and waiting for a condition."""

import errno
import socket
import time
from collections.abc import Callable

LOOPBACK = "127.0.0.1"
POLL_S = 0.05


def is_free(port: int) -> bool:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOOPBACK, port))
        except OSError as error:
            if error.errno in (errno.EADDRINUSE, errno.EACCES):
                return False
            raise
    return True


def listen(*preferred: int) -> socket.socket:
    """A listening socket on the first free port of `preferred`, else on a port that the kernel picks.

    The socket is passed to the process that serves it, so that no other process can take the port meanwhile.
    """
    for port in (*filter(None, preferred), 0):
        listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((LOOPBACK, port))
            listener.listen(128)
        except OSError as error:
            listener.close()
            if error.errno not in (errno.EADDRINUSE, errno.EACCES) or not port:
                raise
        else:
            return listener
    raise AssertionError("unreachable: port 0 is bound or raises")


def free_port(*preferred: int) -> int:
    """The first free port of `preferred`, else one that the kernel picks."""
    for port in preferred:
        if port and is_free(port):
            return port
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.bind((LOOPBACK, 0))
        return int(probe.getsockname()[1])


def await_condition(ready: Callable[[], bool], *, limit_s: float, every_s: float = POLL_S) -> bool:
    """Poll until `ready` returns true; False after the limit."""
    until = time.monotonic() + limit_s
    while not ready():
        if time.monotonic() > until:
            return False
        time.sleep(every_s)
    return True
