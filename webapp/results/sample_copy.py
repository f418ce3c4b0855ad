"""Many samples at once by binary COPY, which takes two thirds of the time of a statement for the seconds of a minute.

The rows are put together here: psycopg takes longer for that than PostgreSQL for all that it does with them. Before
each value stands its length, -1 for a NULL; numbers are big-endian.
https://www.postgresql.org/docs/current/sql-copy.html, "Binary Format"
"""

from collections.abc import Iterable, Sequence
from functools import cache
from struct import Struct, error
from uuid import UUID

from django.db import connection

from webapp.results.bad_item import BadItem
from webapp.results.clock import moment
from webapp.results.samples import COLUMNS, NUMBER_OF_COLUMNS
from worker.contract.items import DeviceSample, Direction, DirectionSample, Sample

_COPY = f"copy results_sample (attempt_id, {COLUMNS}) from stdin (format binary)"
_SIGNATURE, _TRAILER = b"PGCOPY\n\xff\r\n\0" + bytes(8), b"\xff\xff"
_EPOCH_US = 946_684_800_000_000  # PostgreSQL counts from the year 2000
_FAR_S = 2**37  # before the year 9999, where dates end
_OID_OF_REAL = 700

_NULL = Struct(">i").pack(-1)
_TO_RUNTIME = (
    ">hi16sihiii{}siqiiiqiqii"  # number of columns; attempt, stream, second, direction; at, interval, ios, ...
)
_LENGTHS_OF_NAMES = {len(each) for each in Direction}
_HEADS = {length: Struct(_TO_RUNTIME.format(length)) for length in _LENGTHS_OF_NAMES}
_WHOLE_HEADS = {length: Struct(_TO_RUNTIME.format(length) + 3 * "iq" + "i") for length in _LENGTHS_OF_NAMES}
_WHOLE = Struct(">iq")
_LENGTH = Struct(">i")
_DEVICE = Struct(">idid")
_ARRAY, _REAL = Struct(">iiIii"), Struct(">if")


def copy(told: Iterable[tuple[UUID, Sequence[Sample]]]) -> None:
    """Samples of several attempts, their histograms looked through before.

    Raises BadItem, and what the database says of rows that it does not take.
    """
    found = [(attempt.bytes, sample) for attempt, samples in told for sample in samples]
    if not found:
        return
    rows = b"".join([_rows(attempt, sample) for attempt, sample in found])
    with connection.wrap_database_errors, connection.connection.cursor() as cursor, cursor.copy(_COPY) as stream:
        stream.write(b"".join((_SIGNATURE, rows, _TRAILER)))


def _rows(attempt: bytes, sample: Sample) -> bytes:
    """One for each direction; what was read beside the I/O stands with the first."""
    try:
        at, telemetry = _microseconds(sample.at), sample.telemetry
        parts: list[bytes] = []
        for each in sample.directions:
            parts += (_head(attempt, at, sample, each), each.latency, _tail(sample.device, telemetry))
            telemetry = ()
    except (error, OverflowError) as wrong:
        raise BadItem(f"A number of second {sample.second} of stream {sample.stream} is out of range.") from wrong
    return b"".join(parts)


def _microseconds(at: float) -> int:
    if not 0 <= at < _FAR_S:
        moment(at)  # raises BadItem where it is none
    return round(at * 1_000_000) - _EPOCH_US


def _head(attempt: bytes, at: int, sample: Sample, measured: DirectionSample) -> bytes:
    """From the number of columns to the length of the histogram."""
    name = measured.direction.encode()
    told = (
        NUMBER_OF_COLUMNS, 16, attempt, 2, sample.stream, 4, sample.second, len(name), name,
        8, at, 4, sample.interval_ms, 8, measured.ios, 8, measured.bytes, 4, measured.runtime_ms,
    )  # fmt: skip
    p50, p99, p999 = measured.p50_ns, measured.p99_ns, measured.p999_ns
    if p50 is not None and p99 is not None and p999 is not None:
        return _WHOLE_HEADS[len(name)].pack(*told, 8, p50, 8, p99, 8, p999, len(measured.latency))
    percentiles = b"".join([_NULL if each is None else _WHOLE.pack(8, each) for each in (p50, p99, p999)])
    return _HEADS[len(name)].pack(*told) + percentiles + _LENGTH.pack(len(measured.latency))


def _tail(device: DeviceSample | None, telemetry: Sequence[float | None]) -> bytes:
    """What was read beside the I/O, the values as an array of `real`."""
    if device is None or not telemetry or None in telemetry:
        return _device(device) + _reals(telemetry)
    flat: list[float] = [4] * (2 * len(telemetry))
    flat[1::2] = telemetry  # type: ignore[assignment]
    whole, told = _whole_tail(len(telemetry)), (8, device.utilisation_percent, 8, device.queue_depth)
    size = whole.size - _DEVICE.size - _LENGTH.size
    return whole.pack(*told, size, 1, 0, _OID_OF_REAL, len(telemetry), 1, *flat)


@cache
def _whole_tail(values: int) -> Struct:
    return Struct(_DEVICE.format + "iiiIii" + values * "if")


def _device(device: DeviceSample | None) -> bytes:
    return _DEVICE.pack(8, device.utilisation_percent, 8, device.queue_depth) if device else _NULL + _NULL


def _reals(values: Sequence[float | None]) -> bytes:
    """As array_send makes it: dimensions, whether there are NULLs, type, length, first index, elements."""
    if not values:
        return _NULL
    elements = [_NULL if value is None else _REAL.pack(4, value) for value in values]
    array = _ARRAY.pack(1, int(None in values), _OID_OF_REAL, len(values), 1) + b"".join(elements)
    return _LENGTH.pack(len(array)) + array
