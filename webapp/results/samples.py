"""Samples as parameters of a statement: an array for each column, as text, so that it is the same prepared statement
whatever they are. For few; many are copied.
"""

import base64
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from typing import Any

from webapp.results.bad_item import BadItem
from webapp.results.clock import moment
from webapp.results.packed import check_packed
from worker.contract.items import DirectionSample, Sample

# Of a row: column and PostgreSQL's type.
_TYPES = {
    "stream": "int2", "second": "int4", "direction": "varchar", "at": "timestamptz", "interval_ms": "int4",
    "ios": "int8",
    "bytes": "int8", "runtime_ms": "int4", "p50_ns": "int8", "p99_ns": "int8", "p999_ns": "int8", "latency": "bytea",
    "utilisation_percent": "float8", "queue_depth": "float8", "telemetry": "float4[]",
}  # fmt: skip
_AS_TEXT = {"latency": "decode(v.latency, 'base64')", "telemetry": "v.telemetry::float4[]"}
_LATENCY = [*_TYPES].index("latency")
_LARGEST_INT4 = 2**31 - 1

COLUMNS = ", ".join(_TYPES)  # of the table, but for the attempt
NUMBER_OF_COLUMNS = 1 + len(_TYPES)
VALUES = ", ".join(_AS_TEXT.get(name, f"v.{name}") for name in _TYPES)
_ARRAYS = ", ".join(f"%({name})s::text::{'text' if name in _AS_TEXT else kind}[]" for name, kind in _TYPES.items())
ROWS = f"unnest({_ARRAYS}) as v({COLUMNS})"

Row = tuple[Any, ...]


def columns(samples: Iterable[Sample]) -> dict[str, str]:
    """Parameters of a statement that has ROWS in it. Raises BadItem."""
    found = _rows(samples)
    values = zip(*found, strict=True) if found else ((),) * len(_TYPES)
    return {name: _WRITERS.get(name, _array)(each) for name, each in zip(_TYPES, values, strict=True)}


def _rows(samples: Iterable[Sample]) -> list[Row]:
    rows = [_row(sample, each) for sample in samples for each in sample.directions]
    check_packed(row[_LATENCY] for row in rows)
    return rows


def _row(sample: Sample, measured: DirectionSample) -> Row:
    """In the order of _TYPES."""
    device = sample.device
    return (
        sample.stream,
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
        list(sample.telemetry) if sample.telemetry and measured is sample.directions[0] else None,
    )


def _int4(number: int, what: str) -> int:
    """A number for a column of four bytes: binary COPY would cut a larger one off. Raises BadItem."""
    if number > _LARGEST_INT4:
        raise BadItem(f"{what} of {number} is out of range.")
    return number


def _array(values: Sequence[object]) -> str:
    """Numbers, and words that need no quotation marks."""
    return "{" + ",".join(["NULL" if value is None else str(value) for value in values]) + "}"


def _bytes(values: Sequence[bytes]) -> str:
    return "{" + ",".join([f'"{base64.b64encode(value).decode()}"' for value in values]) + "}"


def _arrays(values: Sequence[Sequence[object] | None]) -> str:
    return "{" + ",".join(["NULL" if value is None else f'"{_array(value)}"' for value in values]) + "}"


def _moments(values: Sequence[datetime]) -> str:
    return _array([value.isoformat() for value in values])


_WRITERS: dict[str, Callable[[Sequence[Any]], str]] = {"latency": _bytes, "telemetry": _arrays, "at": _moments}
