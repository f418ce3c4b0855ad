"""Settings of gunicorn (`--config python:webapp.serving`).

https://docs.gunicorn.org/en/stable/settings.html
"""

import logging
import socket
from typing import Any

from webapp.serving.temporary_files import OwnDirectory
from webapp.settings.logs import LOGGING

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
