"""Which messages of its queue a worker looks into."""

from typing import Any

import pytest

from worker.contract.base import MAX_ORDER_BYTES
from worker.contract.orders import ORDER_TASK
from worker.link.celery_app import problem_of

HEADERS = {"lang": "py", "task": ORDER_TASK, "id": "1", "eta": None, "expires": None, "retries": 0}
PROPERTIES = {"delivery_tag": "1", "body_encoding": "base64", "delivery_info": {}}
MESSAGE: dict[str, Any] = {
    "body": "W10=",
    "content-encoding": "utf-8",
    "content-type": "application/json",
    "headers": HEADERS,
    "properties": PROPERTIES,
}


def test_it_takes_a_message_as_the_server_sends_it() -> None:
    assert problem_of(MESSAGE) == ""


@pytest.mark.parametrize(
    "message",
    [
        [],
        {},
        {**MESSAGE, "more": 1},
        {**MESSAGE, "content-type": "application/x-python-serialize"},
        {**MESSAGE, "content-encoding": "binary"},
        {**MESSAGE, "body": 1},
        {**MESSAGE, "body": "x" * (3 * MAX_ORDER_BYTES)},
        {**MESSAGE, "headers": None},
        {**MESSAGE, "headers": {**HEADERS, "compression": "application/x-bz2"}},
        {**MESSAGE, "headers": {**HEADERS, "unknown": 1}},
        {**MESSAGE, "headers": {**HEADERS, "task": "celery.chain"}},
        {**MESSAGE, "headers": {**HEADERS, "eta": "2999-01-01T00:00:00"}},
        {**MESSAGE, "properties": {}},
        {**MESSAGE, "properties": {**PROPERTIES, "body_encoding": "other"}},
        {**MESSAGE, "properties": {**PROPERTIES, "delivery_tag": None}},
    ],
)
def test_it_drops_everything_else_before_it_decodes_the_body(message: object) -> None:
    assert problem_of(message)
