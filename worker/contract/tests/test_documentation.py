"""docs/reference/message-contract.md shows one example of every message, and each is read by the real decoder."""

import json
import re
from pathlib import Path

import msgspec
import pytest

from worker.contract import orders
from worker.contract.base import Message, Workload, encode
from worker.contract.items import Item
from worker.contract.orders import Order
from worker.contract.postgres import PostgresWorkload
from worker.contract.reports import Batch, Report
from worker.contract.signing import Envelope
from worker.contract.tests import examples as ex
from worker.contract.tests.example_inventory import ARRAY

PAGE = Path(__file__).parents[3] / "docs/reference/message-contract.md"
EXAMPLE = re.compile(r"^#### (\w+)\n.*?```json\n(.*?)```", re.MULTILINE | re.DOTALL)

MESSAGES: list[Message] = [
    ex.TRIAL_ORDER,
    ex.SPLIT,
    ex.COPY,
    ex.PGBENCH,
    ex.SYSBENCH,
    ex.OLTP,
    ex.IDLE,
    ex.MEMORY,
    ex.ARRAY_ACTION,
    *ex.STOP_RULES,
    ex.LAYOUT_REQUEST,
    ex.CLOSE_RUN_ORDER,
    ex.INVENTORY_ORDER,
    ex.PURGE_ORDER,
    ex.SETTING_ORDER,
    *ex.ITEMS,
    ex.START_REQUEST,
    ex.START_REPLY,
    ex.REPORT_REPLY,
    ex.WORKER_LOG,
    ex.TOKEN_REQUEST,
    ex.TOKEN_REPLY,
    ex.HELLO,
    ARRAY,
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


@pytest.mark.parametrize("kind", [*map(type, MESSAGES), Report, Envelope], ids=lambda kind: kind.__name__)
def test_it_leaves_no_field_out_of_the_example_of(kind: type[Message]) -> None:
    shown = examples()[kind.__name__]
    assert json.loads(shown) == json.loads(encode(msgspec.json.decode(shown, type=kind)))


def test_its_examples_have_every_part_of_every_message() -> None:
    """Where a struct is in no example, neither are its fields."""
    shown = {part for message in MESSAGES for part in parts(message)} | {Report, Envelope, Batch}
    assert [
        kind.__name__
        for kind in kinds(Message)
        if kind.__struct_fields__ and kind not in {*shown, Order, Workload, PostgresWorkload}
    ] == []


def kinds(of: type[Message]) -> set[type[Message]]:
    """The contract's own, without those of tests of other packages."""
    below = {kind for kind in of.__subclasses__() if kind.__module__.startswith("worker.contract.")}
    return below.union(*map(kinds, below))


def parts(value: object) -> set[type[Message]]:
    """Types of all messages in it."""
    if isinstance(value, Message):
        return {type(value)}.union(*(parts(getattr(value, name)) for name in value.__struct_fields__))
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, tuple) else ()
    return set().union(*map(parts, inner))


def test_it_shows_no_message_that_does_not_exist() -> None:
    known = {type(message).__name__ for message in MESSAGES} | {"Report", "Envelope"}
    assert set(examples()) <= known


def test_it_describes_every_kind_of_item_and_order() -> None:
    shown = set(examples())
    assert {kind.__name__ for kind in (*Item.__args__, *orders.AnyOrder.__args__)} <= shown
