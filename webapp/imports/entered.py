"""Values that a person measured without a tool of ours, such as the minutes of a nightly job, as an import.

What differs is a label: `before` and `after` of the label `change`, or two hosts.
"""

import re
from collections.abc import Mapping
from datetime import UTC, date, datetime, time

import msgspec
from django.db import transaction

from webapp.core.errors import Refusal
from webapp.core.models import User
from webapp.imports.files import FileRead, Test
from webapp.imports.measurement import MAX_METRIC, Measurement
from webapp.imports.services import add_read, begin_import, end_import
from webapp.results.metrics import entered_key
from webapp.results.models import Import

TOOL = "entered by hand"
LEAST = 1e-9  # above 0; ratios of smaller values exceed the range of a float
_NUMBER = re.compile(r"(\d+(\.\d*)?|\.\d+)(e[+-]?\d+)?", re.ASCII | re.IGNORECASE)
MAX_NAME, MAX_UNIT, MAX_LEVEL, MAX_VALUES, MAX_NOTE = 80, 20, 100, 1000, 5000


class Entered(msgspec.Struct, frozen=True, kw_only=True):
    """`values`: for each level of what differs, one value for each repeat."""

    name: str
    unit: str
    lower_is_better: bool
    differs: str  # a label: host, controller, drive, layout, or any other
    values: Mapping[str, tuple[float, ...]]
    labels: Mapping[str, str] = {}  # of all values
    note: str = ""
    on: date | None = None

    @property
    def key(self) -> str:
        """Of its metric."""
        return entered_key(self.name, self.unit, lower_is_better=self.lower_is_better)


def read_values(text: str) -> dict[str, tuple[float, ...]]:
    """Lines `before: 348 351`; a decimal point, and spaces or semicolons between values. Raises Refusal."""
    values_by_level: dict[str, tuple[float, ...]] = {}
    for line in filter(None, map(str.strip, text.splitlines())):
        level, colon, values = line.rpartition(":")
        if not colon or not level.strip() or len(level) > MAX_LEVEL or level.strip() in values_by_level:
            raise Refusal(
                "entered_values", f"`{line[:60]}` is not a line of values. Write name: 348 351, each name once."
            )
        values_by_level[level.strip()] = tuple(map(_number, re.split(r"[\s;]+", values.strip())))
    if not values_by_level or sum(map(len, values_by_level.values())) > MAX_VALUES:
        raise Refusal("entered_values", f"Enter 1 to {MAX_VALUES:,} values.")
    return values_by_level


def _number(text: str) -> float:
    if not _NUMBER.fullmatch(text):
        raise Refusal("entered_values", f"`{text[:40]}` is not a number of 0 or more, such as 348 or 30.5.")
    number = float(text)
    if number and not LEAST <= number <= MAX_METRIC:
        raise Refusal("entered_values", f"`{text[:40]}` is outside {LEAST:g} to {MAX_METRIC:g}. Use another unit.")
    return number


@transaction.atomic
def enter_values(entered: Entered, *, by: User | None) -> Import:
    """Store the values as an import that has ended. Raises Refusal."""
    _check(entered)
    made = begin_import(title=entered.name, pattern="", given=entered.labels, by=by)
    made.source, made.note = f"{TOOL}, {entered.unit}" if entered.unit else TOOL, entered.note
    made.save(update_fields=["source", "note"])
    add_read(made, [FileRead(path=TOOL, format=TOOL, tests=tuple(_tests(entered)))])
    return end_import(made, by=by)


def _tests(entered: Entered) -> list[Test]:
    at = None if entered.on is None else datetime.combine(entered.on, time(12), UTC)
    return [
        Test(
            measured=(
                Measurement(
                    tool=TOOL, name=entered.name, direction=None, is_io=False, factors={}, measured_at=at,
                    metrics={entered.key: value},
                ),
            ),
            labels={**entered.labels, entered.differs: level},
        )
        for level, values in entered.values.items()
        for value in values
    ]  # fmt: skip


def _check(entered: Entered) -> None:
    for what, text, most in (("name", entered.name, MAX_NAME), ("unit", entered.unit, MAX_UNIT)):
        if len(text) > most or set(text) & set("[]\0\n\r"):
            raise Refusal(f"entered_{what}", f"The {what} has at most {most} characters and no square brackets.")
    if not entered.name.strip() or not entered.differs.strip():
        raise Refusal("entered_name", "Say what was measured, and what differs between the values.")
    if entered.differs in entered.labels:
        words = f"`{entered.differs[:60]}` differs between the values. Remove it from the labels of all values."
        raise Refusal("entered_labels", words)
    if len(entered.note) > MAX_NOTE or "\0" in entered.note:
        raise Refusal("entered_note", f"The note has at most {MAX_NOTE:,} characters.")
