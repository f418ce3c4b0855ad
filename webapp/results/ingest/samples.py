"""The rows of `Sample`: the source of each column, and the COPY that writes them."""

from collections.abc import Iterable, Iterator
from functools import cache
from typing import Any

from django.db import connection

from webapp.results.ingest.bad_item import BadItem
from webapp.results.ingest.clock import moment
from webapp.results.ingest.quota import check_samples
from webapp.results.models import NO_IO, Sample
from webapp.results.partitions import ensure_partition
from webapp.runs.models import Attempt
from worker.contract.histogram import Histogram
from worker.contract.items import Direction, DirectionSample
from worker.contract.items import Sample as SampleItem
from worker.contract.packing import pack

_COLUMNS = {str(field.column): field for field in Sample._meta.concrete_fields}
_COPY = f"COPY {Sample._meta.db_table} ({', '.join(_COLUMNS)}) FROM STDIN (FORMAT BINARY)"
_MAX_REAL = 3.4028234e38


def copy_samples(attempt: Attempt, samples: Iterable[SampleItem]) -> None:
    """Write one row for each direction of each sample. Raises BadItem and Django's database errors."""
    samples = list(samples)
    check_samples(attempt, samples)
    ensure_partition(attempt.created_at.date())
    with connection.wrap_database_errors, connection.cursor() as cursor, cursor.copy(_COPY) as copy:
        copy.set_types(_types())
        for row in _rows(attempt, samples):
            copy.write_row([row[column] for column in _COLUMNS])


@cache
def _types() -> list[str]:
    return [(field.db_type(connection) or "").partition("(")[0] for field in _COLUMNS.values()]


def _rows(attempt: Attempt, samples: Iterable[SampleItem]) -> Iterator[dict[str, Any]]:
    for sample in samples:
        for place, measured in enumerate(sample.directions):
            yield _row(attempt, sample, measured.direction.value, measured, first=place == 0)
        if not sample.directions:  # of an idle workload
            yield _row(attempt, sample, NO_IO, _NOTHING, first=True)


# Its direction is not used.
_NOTHING = DirectionSample(direction=Direction.READ, ios=0, bytes=0, latency=pack(Histogram()))


def _row(
    attempt: Attempt, sample: SampleItem, direction: str, measured: DirectionSample, *, first: bool
) -> dict[str, Any]:
    """Telemetry is stored with the first direction only. Raises BadItem."""
    if sample.length_ms > sample.offset_ms:
        raise BadItem(f"A sample of {sample.length_ms} ms ends {sample.offset_ms} ms after the beginning.")
    device = sample.device
    return {
        "attempt_id": attempt.pk,
        "day": attempt.created_at.date(),
        "stream": sample.stream,
        "offset_ms": sample.offset_ms,
        "length_ms": sample.length_ms,
        "direction": direction,
        "at": moment(sample.at),
        "estimated": sample.estimated,
        "ios": measured.ios,
        "bytes": measured.bytes,
        "p50_ns": measured.p50_ns,
        "p99_ns": measured.p99_ns,
        "p999_ns": measured.p999_ns,
        "latency": measured.latency,
        "utilisation_percent": device.utilisation_percent if device else None,
        "queue_depth": device.queue_depth if device else None,
        "telemetry": [_real(value) for value in sample.telemetry] if first and sample.telemetry else None,
    }


def _real(number: float | None) -> float | None:
    """Binary COPY cuts off a number that is too large for its column. Raises BadItem."""
    if number is not None and abs(number) > _MAX_REAL:
        raise BadItem(f"{number} is out of range.")
    return number
