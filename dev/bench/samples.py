"""Samples for the benchmark of pages: each result of `dev.bench.rows` gets one a second, as a measured trial has.

PostgreSQL makes them, one month after the other. A partition is filled before it has its primary key: sorting the
keys once is much faster than keeping an index up to date.
"""

from datetime import date

from django.db import connection, transaction
from django.db.backends.utils import CursorWrapper

from webapp.results.models import Result, StreamRun
from webapp.results.retention import TABLE, Partition, attach, partitions
from worker.contract.packing import Histogram, pack

NOISE = "1 + 0.08 * (random() + random() + random() - 1.5)"  # standard deviation 0.04
KEY = "attempt_id, stream, offset_ms, direction, day"
# All columns of Sample; r is its result, s its stream and n the number of the second.
VALUES = {
    "attempt_id": "s.attempt_id", "day": "(s.started_at AT TIME ZONE 'UTC')::date", "stream": "s.stream",
    "offset_ms": "1000 * n", "length_ms": "1000", "direction": "r.direction",
    "at": "s.started_at + n * interval '1 second'", "estimated": "false", "ios": "r.iops * noise",
    "bytes": "r.bytes_per_s * noise", "p50_ns": "r.p50_ns / noise", "p99_ns": "r.p99_ns / noise",
    "p999_ns": "r.p999_ns / noise", "latency": "%s::bytea", "utilisation_percent": "99.0", "queue_depth": "8.0",
    "telemetry": "NULL",
}  # fmt: skip


def fill_samples(per_result: int) -> int:
    """Create this many samples for each result; the number of samples. The results are committed."""
    return sum(_fill_month(Partition(month), per_result) for month in _months())


def _months() -> list[date]:
    """The first day of each month in which a stream started."""
    found = StreamRun.objects.filter(results__isnull=False).order_by().datetimes("started_at", "month")
    return [at.date() for at in found]


@transaction.atomic
def _fill_month(partition: Partition, per_result: int) -> int:
    with connection.cursor() as cursor:
        if partition in partitions():
            cursor.execute(f"DROP TABLE {partition.table}")  # an empty one
        cursor.execute("SET LOCAL maintenance_work_mem = '1GB'")
        cursor.execute(f"CREATE TABLE {partition.table} (LIKE {TABLE} INCLUDING CONSTRAINTS INCLUDING DEFAULTS)")
        made = _insert(cursor, partition, per_result)
        cursor.execute(f"ALTER TABLE {partition.table} ADD PRIMARY KEY ({KEY})")
        attach(cursor, partition)
    return made


def _insert(cursor: CursorWrapper, partition: Partition, per_result: int) -> int:
    cursor.execute(
        f"INSERT INTO {partition.table} ({', '.join(VALUES)}) "  # noqa: S608 - our own names
        f"SELECT {', '.join(VALUES.values())} FROM {StreamRun._meta.db_table} s "
        f"JOIN {Result._meta.db_table} r ON r.stream_run_id = s.id "
        f"CROSS JOIN LATERAL (SELECT n, {NOISE} AS noise FROM generate_series(1, %s) n) seconds "
        "WHERE s.started_at >= %s AND s.started_at < %s",
        [pack(_histogram()), per_result, *partition.span],
    )
    return int(cursor.rowcount)


def _histogram() -> Histogram:
    """Of one second: fewer buckets than that of the whole trial."""
    return Histogram(latency_ns=tuple(range(80_000, 110_000, 2_000)), counts=tuple(range(300, 0, -20)))
