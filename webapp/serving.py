"""How gunicorn serves: its settings, wherever it is started (`--config python:webapp.serving`).

https://docs.gunicorn.org/en/stable/settings.html
"""

import socket
from typing import Any

worker_class = "gthread"
workers = 2
# After an outage reports wait in all of them for one that writes for all (results.together). A thread costs a
# connection to the database once it was used.
threads = 16
control_socket_disable = True

FIRST_BYTE_S = 30


def when_ready(server: Any) -> None:
    """Connections are accepted when something was said on them: a thread would wait for that, for five seconds.

    Browsers open some that they may want later; sixteen of those in each process, and nobody else would be served.
    https://man7.org/linux/man-pages/man7/tcp.7.html (TCP_DEFER_ACCEPT)
    """
    for listener in server.LISTENERS:
        if listener.sock.family in (socket.AF_INET, socket.AF_INET6):
            listener.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_DEFER_ACCEPT, FIRST_BYTE_S)
