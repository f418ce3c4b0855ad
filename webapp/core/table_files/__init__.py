"""Tables as files. Each format is a module that turns a table into chunks of a few rows."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum


class Kind(StrEnum):
    TEXT = "text"
    INTEGER = "integer"
    NUMBER = "number"
    SWITCH = "switch"
    TIME = "time"


@dataclass(frozen=True)
class Column:
    """`heading` names the column in every format. `unit` is that of the stored values: B, ns, 1/s, …"""

    heading: str
    kind: Kind = Kind.TEXT
    unit: str = ""


@dataclass(frozen=True)
class Table:
    """Rows can be read once. A value has the type of its column, or is None if it is unknown."""

    columns: Sequence[Column]
    rows: Iterator[Sequence[object]]
