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
_KEY = Struct(">hi16sihii")  # number of columns; attempt, leg, second
_DIRECTIONS = {each: Struct(f">i{len(each)}s").pack(len(each), each.encode()) for each in Direction}
_COUNTS = Struct(">iqiiiqiqii")  # at, interval, ios, bytes, runtime
_ALL_NUMBERS = Struct(">iqiiiqiqii" + 3 * "iq" + "i")  # the same, percentiles, and the length of the histogram
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
        key = _KEY.pack(NUMBER_OF_COLUMNS, 16, attempt, 2, sample.leg, 4, sample.second)
        at = _microseconds(sample.at)
        device, beside = _device(sample.device), _reals(sample.beside)
        rows: list[bytes] = []
        for each in sample.directions:
            numbers = _numbers(at, sample.interval_ms, each)
            rows += (key, _DIRECTIONS[each.direction], numbers, each.latency, device, beside)
            beside = _NULL
    except (error, OverflowError) as wrong:
        raise BadItem(f"A number of second {sample.second} of leg {sample.leg} is out of range.") from wrong
    return b"".join(rows)


def _microseconds(at: float) -> int:
    if not 0 <= at < _FAR_S:
        moment(at)  # raises BadItem where it is none
    return round(at * 1_000_000) - _EPOCH_US


def _numbers(at: int, interval_ms: int, measured: DirectionSample) -> bytes:
    """From the moment to the length of the histogram."""
    percentiles = p50, p99, p999 = measured.p50_ns, measured.p99_ns, measured.p999_ns
    counts = 8, at, 4, interval_ms, 8, measured.ios, 8, measured.bytes, 4, measured.runtime_ms
    if None not in percentiles:
        return _ALL_NUMBERS.pack(*counts, 8, p50, 8, p99, 8, p999, len(measured.latency))
    told = b"".join([_NULL if each is None else _WHOLE.pack(8, each) for each in percentiles])
    return _COUNTS.pack(*counts) + told + _LENGTH.pack(len(measured.latency))


def _device(device: DeviceSample | None) -> bytes:
    return _DEVICE.pack(8, device.utilisation_percent, 8, device.queue_depth) if device else _NULL + _NULL


def _reals(values: Sequence[float | None]) -> bytes:
    """An array of `real` (array_send): dimensions, whether there are NULLs, type, length, first index, elements."""
    if not values:
        return _NULL
    head = (1, int(None in values), _OID_OF_REAL, len(values), 1)
    if None in values:
        array = _ARRAY.pack(*head) + b"".join([_NULL if value is None else _REAL.pack(4, value) for value in values])
        return _LENGTH.pack(len(array)) + array
    flat: list[float] = [4] * (2 * len(values))
    flat[1::2] = values  # type: ignore[assignment]
    whole = _whole(len(values))
    return whole.pack(whole.size - 4, *head, *flat)


@cache
def _whole(length: int) -> Struct:
    """Of an array without NULLs, with its own length before it."""
    return Struct(">iiiIii" + length * "if")
