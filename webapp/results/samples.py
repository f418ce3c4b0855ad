"""Samples on their way into the database: few in the statement of the ordinary second, many by binary COPY.

In a statement they are an array for each column, as text, so that it is the same prepared statement whatever they are.
COPY cannot be prepared, and takes two thirds of the time for the 60 seconds of a minute.
"""

import base64
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from functools import cache
from struct import Struct
from typing import Any
from uuid import UUID

from django.db import connection

from webapp.results.bad_item import BadItem
from webapp.results.clock import moment
from webapp.results.packed import check_packed
from worker.contract.items import DirectionSample, Sample

# Of a row: column and PostgreSQL's type.
_TYPES = {
    "leg": "int2", "second": "int4", "direction": "varchar", "at": "timestamptz", "interval_ms": "int4", "ios": "int8",
    "bytes": "int8", "runtime_ms": "int4", "p50_ns": "int8", "p99_ns": "int8", "p999_ns": "int8", "latency": "bytea",
    "utilisation_percent": "float8", "queue_depth": "float8", "beside": "float4[]",
}  # fmt: skip
_AS_TEXT = {"latency": "decode(v.latency, 'base64')", "beside": "v.beside::float4[]"}
_SENT_AS = {"beside": "bytea"}  # bytes that are the array already, see _reals
_LATENCY = [*_TYPES].index("latency")
_LARGEST_INT4 = 2**31 - 1

COLUMNS = ", ".join(_TYPES)  # of the table, but for the attempt
VALUES = ", ".join(_AS_TEXT.get(name, f"v.{name}") for name in _TYPES)
_ARRAYS = ", ".join(f"%({name})s::text::{'text' if name in _AS_TEXT else kind}[]" for name, kind in _TYPES.items())
ROWS = f"unnest({_ARRAYS}) as v({COLUMNS})"
_COPY = f"copy results_sample (attempt_id, {COLUMNS}) from stdin (format binary)"

Row = tuple[Any, ...]


def columns(samples: Iterable[Sample]) -> dict[str, str]:
    """Parameters of a statement that has ROWS in it. Raises BadItem."""
    found = _rows(samples)
    values = zip(*found, strict=True) if found else ((),) * len(_TYPES)
    return {name: _WRITERS.get(name, _array)(each) for name, each in zip(_TYPES, values, strict=True)}


def copy(told: Iterable[tuple[UUID, Sequence[Sample]]]) -> None:
    """Samples of several attempts. Raises BadItem, and what the database says of rows that it does not take."""
    rows = [(attempt, *row) for attempt, samples in told for row in _rows(samples)]
    if not rows:
        return
    with connection.wrap_database_errors, connection.connection.cursor() as cursor, cursor.copy(_COPY) as stream:
        stream.set_types(["uuid", *(_SENT_AS.get(name, kind) for name, kind in _TYPES.items())])
        for row in rows:
            stream.write_row((*row[:-1], _reals(row[-1])))


def _rows(samples: Iterable[Sample]) -> list[Row]:
    rows = [_row(sample, each) for sample in samples for each in sample.directions]
    check_packed(row[_LATENCY] for row in rows)
    return rows


def _row(sample: Sample, measured: DirectionSample) -> Row:
    """In the order of _TYPES."""
    device = sample.device
    return (
        sample.leg,
        sample.second,
        measured.direction.value,
        moment(sample.at),
        _int4(sample.interval_ms, "An interval"),
        measured.ios,
        measured.bytes,
        _int4(measured.runtime_ms, "A runtime"),
        measured.p50_ns,
        measured.p99_ns,
        measured.p999_ns,
        measured.latency,
        device.utilisation_percent if device else None,
        device.queue_depth if device else None,
        list(sample.beside) if sample.beside and measured is sample.directions[0] else None,
    )


def _int4(number: int, what: str) -> int:
    """A number for a column of four bytes: binary COPY would cut a larger one off. Raises BadItem."""
    if number > _LARGEST_INT4:
        raise BadItem(f"{what} of {number} is out of range.")
    return number


def _reals(values: Sequence[float | None] | None) -> bytes | None:
    """PostgreSQL's binary form of a list of `real` (array_send); psycopg's own takes longer than all else of a row."""
    if values is None:
        return None
    head = (1, int(None in values), _OID_OF_REAL, len(values), 1)
    try:
        if None in values:
            sent = b"".join(_NULL if value is None else _REAL.pack(4, value) for value in values)
            return _HEAD.pack(*head) + sent
        flat: list[float] = [4] * (2 * len(values))
        flat[1::2] = values  # type: ignore[assignment]
        return _whole(len(values)).pack(*head, *flat)
    except OverflowError as error:
        raise BadItem("A sensor's value is out of range.") from error


_OID_OF_REAL = 700
_HEAD, _REAL, _NULL = Struct(">iiIii"), Struct(">if"), Struct(">i").pack(-1)


@cache
def _whole(length: int) -> Struct:
    return Struct(">iiIii" + length * "if")


def _array(values: Sequence[object]) -> str:
    """Numbers, and words that need no quotation marks."""
    return "{" + ",".join(["NULL" if value is None else str(value) for value in values]) + "}"


def _bytes(values: Sequence[bytes]) -> str:
    return "{" + ",".join([f'"{base64.b64encode(value).decode()}"' for value in values]) + "}"


def _arrays(values: Sequence[Sequence[object] | None]) -> str:
    return "{" + ",".join(["NULL" if value is None else f'"{_array(value)}"' for value in values]) + "}"


def _moments(values: Sequence[datetime]) -> str:
    return _array([value.isoformat() for value in values])


_WRITERS: dict[str, Callable[[Sequence[Any]], str]] = {"latency": _bytes, "beside": _arrays, "at": _moments}
