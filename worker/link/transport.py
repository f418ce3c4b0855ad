"""Kombu's Redis transport, reduced to taking orders: it writes nothing to Redis and decodes only what is an order.

Orders are not acknowledged: the server sends again whatever no host has accepted. So the host's Redis user needs no
right to write to a queue and none to run scripts, which kombu uses to put unacknowledged messages back.
"""

import logging

from kombu.transport import redis

from worker.contract.base import MAX_ORDER_BYTES
from worker.contract.orders import ORDER_TASK

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
