"""docs/message-contract.md shows one example of every message, and each is read by the real decoder."""

import re
from pathlib import Path

import msgspec
import pytest

from worker.contract import orders
from worker.contract.base import Message
from worker.contract.items import Item
from worker.contract.signing import Envelope
from worker.contract.tests import examples as ex

PAGE = Path(__file__).parents[3] / "docs" / "message-contract.md"
EXAMPLE = re.compile(r"^#### (\w+)\n.*?```json\n(.*?)```", re.MULTILINE | re.DOTALL)

MESSAGES: list[Message] = [
    ex.TRIAL_ORDER,
    ex.CLOSE_RUN_ORDER,
    ex.INVENTORY_ORDER,
    ex.PURGE_ORDER,
    ex.SETTING_ORDER,
    *ex.ITEMS,
    ex.REPORT_REPLY,
    ex.WORKER_LOG,
    ex.TOKEN_REQUEST,
    ex.TOKEN_REPLY,
    ex.HELLO,
    ex.HELLO_REPLY,
    ex.ENROL,
    ex.ENROL_REPLY,
    ex.PROBLEM,
]


def examples() -> dict[str, str]:
    return dict(EXAMPLE.findall(PAGE.read_text()))


@pytest.mark.parametrize("message", MESSAGES, ids=lambda m: type(m).__name__)
def test_it_shows_an_example_of(message: Message) -> None:
    name = type(message).__name__
    assert name in examples(), f"{PAGE.name} has no example of {name}"
    assert msgspec.json.decode(examples()[name], type=type(message)) == message


def test_it_shows_no_message_that_does_not_exist() -> None:
    known = {type(message).__name__ for message in MESSAGES} | {"Report", "Envelope"}
    assert set(examples()) <= known


def test_its_report_and_envelope_can_be_read() -> None:
    msgspec.json.decode(examples()["Envelope"], type=Envelope)
    assert "batches" in examples()["Report"]


def test_it_describes_every_kind_of_item_and_order() -> None:
    shown = set(examples())
    assert {kind.__name__ for kind in (*Item.__args__, *orders.AnyOrder.__args__)} <= shown
