"""How gunicorn serves: its settings, wherever it is started (`--config python:webapp.serving`).

https://docs.gunicorn.org/en/stable/settings.html
"""

import gc
import socket
from typing import Any

worker_class = "gthread"
# Measured on two cores: of two processes, one or the other waits for a commit or for more reports so often that a
# seventh of the cores' time is idle, and with four more is spent on the same.
workers = 3
# `worker_api.report_interval` takes half of them being busy for too much load. A thread costs a connection to the
# database once it was used.
threads = 16
# An idle connection waits in a selector and takes no thread. Our clients ask again within a minute at most: a worker
# without orders says hello each minute, open pages ask every 1 to 15 seconds.
keepalive = 75
control_socket_disable = True

FIRST_BYTE_S = 30
OBJECTS_BETWEEN_COLLECTIONS = 10_000  # a report of a minute has as many; Python's own is 700


def when_ready(server: Any) -> None:
    """Connections are accepted when something was said on them: a thread would wait for that, for five seconds.

    Browsers open some that they may want later; sixteen of those in each process, and nobody else would be served.
    https://man7.org/linux/man-pages/man7/tcp.7.html (TCP_DEFER_ACCEPT)
    """
    for listener in server.LISTENERS:
        if listener.sock.family in (socket.AF_INET, socket.AF_INET6):
            listener.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_DEFER_ACCEPT, FIRST_BYTE_S)


def post_worker_init(worker: Any) -> None:  # noqa: ARG001 - gunicorn gives it
    """What was loaded stays, so that no search for garbage goes through it, and they are seldom: reports make many
    objects and no cycles. https://docs.python.org/3/library/gc.html
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(OBJECTS_BETWEEN_COLLECTIONS, *gc.get_threshold()[1:])
