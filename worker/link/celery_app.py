"""The worker's Celery app: one queue, one task, JSON only, no remote control."""

import logging
import warnings
from collections.abc import Callable
from typing import Any
from urllib.parse import unquote, urlsplit

from celery import Celery
from celery.exceptions import CPendingDeprecationWarning
from celery.signals import setup_logging
from kombu.entity import Queue
from kombu.transport import redis
from redis.credentials import CredentialProvider

from worker.contract.base import MAX_ORDER_BYTES
from worker.contract.orders import ORDER_TASK, queue_name
from worker.link.enrolment import Enrolment

# Kombu's Redis transport, reduced to taking orders: it writes nothing to Redis and decodes only what is an order.
#
# Orders are not acknowledged: the server sends again whatever no host has accepted. So the host's Redis user needs no
# right to write to a queue and none to run scripts, which kombu uses to put unacknowledged messages back.

log = logging.getLogger(__name__)

_PARTS = {"body", "content-encoding", "content-type", "headers", "properties"}
_HEADERS = {
    "argsrepr", "eta", "expires", "group", "group_index", "id", "ignore_result", "kwargsrepr", "lang", "origin",
    "parent_id", "replaced_task_nesting", "retries", "root_id", "shadow", "stamped_headers", "stamps", "task",
    "timelimit",
}  # fmt: skip
MAX_BODY_CHARACTERS = 2 * MAX_ORDER_BYTES  # base64, and a little JSON around the order


class QoS(redis.QoS):
    restore_at_shutdown = False

    def restore_visible(self, *_: object, **__: object) -> None:
        """Nothing is unacknowledged, so nothing is put back."""


class Channel(redis.Channel):
    QoS = QoS


class Transport(redis.Transport):
    Channel = Channel

    def _deliver(self, message: object, queue: str) -> None:
        """Drop a message with anything that an order has not, such as compression, before its body is decoded."""
        problem = problem_of(message)
        if problem:
            log.warning("A message was dropped, because %s.", problem)
        else:
            super()._deliver(message, queue)  # type: ignore[no-untyped-call]


def problem_of(message: object) -> str:
    """Why this cannot be an order as the server sends it, in words; "" if it can."""
    if not isinstance(message, dict) or message.keys() != _PARTS:
        return "its parts are not those of an order"
    if (message["content-type"], message["content-encoding"]) != ("application/json", "utf-8"):
        return "it is not JSON"
    if not isinstance(message["body"], str) or len(message["body"]) > MAX_BODY_CHARACTERS:
        return "its body is not a text of an order's size"
    return _problem_of_headers(message["headers"]) or _problem_of_properties(message["properties"])


def _problem_of_headers(headers: object) -> str:
    if not isinstance(headers, dict) or not headers.keys() <= _HEADERS:
        return "its headers are not those of an order"
    if headers.get("task") != ORDER_TASK or headers.get("eta") or headers.get("expires"):
        return "it is another task, or one for later"
    return ""


def _problem_of_properties(properties: object) -> str:
    if isinstance(properties, dict) and isinstance(properties.get("delivery_tag"), str):
        return "" if properties.get("body_encoding") == "base64" else "its body is not base64"
    return "its properties are not those of an order"


class _Conf:
    """Celery's options. A class, so that no celeryconfig.py of the working directory is read."""

    accept_content = ("json",)
    task_serializer = "json"
    result_accept_content = ("json",)
    task_ignore_result = True
    task_store_errors_even_if_ignored = False
    task_acks_late = True  # with no_ack: no acknowledgement at all
    worker_prefetch_multiplier = 1
    worker_enable_remote_control = False  # a remote `shutdown` needs no signature
    worker_send_task_events = False
    worker_hijack_root_logger = False
    worker_redirect_stdouts = False
    worker_pool = "solo"
    worker_concurrency = 1
    broker_connection_retry = True
    broker_connection_retry_on_startup = True
    broker_connection_max_retries = None  # forever; the default gives up after 100 tries
    broker_heartbeat = 0
    worker_cancel_long_running_tasks_on_connection_loss = False
    task_create_missing_queues = False
    timezone = "UTC"


class Credentials(CredentialProvider):
    """User and password of the broker, read from the current enrolment at every log-in."""

    def __init__(self, enrolment: Callable[[], Enrolment]) -> None:
        self._enrolment = enrolment

    def get_credentials(self) -> tuple[str, str]:
        parts = urlsplit(self._enrolment().broker_url)
        return unquote(parts.username or ""), unquote(parts.password or "")


class _App(Celery):  # type: ignore[misc]
    """Log in with the current password after the old one was revoked during a connection or a wait."""

    credentials: Credentials

    def connection_for_read(self, url: str | None = None, **options: Any) -> Any:
        connection = super().connection_for_read(url, **options)
        connection.credential_provider = self.credentials
        connection.transport_cls = Transport
        return connection


def make_app(enrolled: Callable[[], Enrolment], take_order: Callable[[str], None]) -> Celery:
    """Make the app that consumes this host's queue and passes every order's text to `take_order`.

    `enrolled` returns the current enrolment: the password in it may change. `take_order` may get an order several
    times; it verifies the order and writes it to the journal, no more.
    """
    enrolment = enrolled()
    queue = queue_name(enrolment.host)
    # No fixups: where DJANGO_SETTINGS_MODULE is set, Celery's would load Django into the worker.
    app = _App("sweetspot-worker", broker=enrolment.broker_url, set_as_current=False, fixups=set())
    app.credentials = Credentials(enrolled)
    app.config_from_object(_Conf)
    app.conf.task_default_queue = queue
    app.conf.task_queues = [Queue(queue, no_ack=True, no_declare=True)]  # type: ignore[no-untyped-call]
    app.conf.broker_use_ssl = enrolment.broker_tls
    app.conf.broker_transport_options = transport_options(queue)

    @app.task(name=ORDER_TASK)
    def order(envelope: str) -> None:
        take_order(envelope)

    return app


def transport_options(queue: str) -> dict[str, object]:
    """Use only keys below the queue's own name, so that a Redis user can be confined to them."""
    return {
        "priority_steps": [0],  # one list a queue instead of four
        "unacked_key": f"{queue}:unacked",
        "unacked_index_key": f"{queue}:unacked_index",
        "socket_connect_timeout": 3,
        "socket_keepalive": True,
        "health_check_interval": 25,
    }


def consume(app: Celery, enrolment: Enrolment) -> int:
    """Take orders until told to stop (SIGTERM) or until Celery gives up; returns Celery's exit code."""
    setup_logging.connect(_leave_logging_alone, weak=False)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="You're running the worker with superuser privileges")
        warnings.filterwarnings("ignore", category=CPendingDeprecationWarning)
        worker = app.Worker(
            queues=[queue_name(enrolment.host)],
            hostname=f"sweetspot@{enrolment.host}",
            pool="solo",
            concurrency=1,
            without_gossip=True,
            without_mingle=True,
            without_heartbeat=True,
            quiet=True,
        )
        try:
            worker.start()
        except SystemExit as end:
            return int(end.code or 0)
    return int(worker.exitcode or 0)


def _leave_logging_alone(**_: object) -> None:
    """A receiver of `setup_logging` tells Celery that logging is set up already."""
