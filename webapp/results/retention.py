"""Old samples are thinned, and runs are deleted on request.

A partition of samples (`results.retention`) is thinned once its month is over and every run with an attempt in it
ended more than SWEETSPOT_SAMPLE_DAYS ago: a new table with about one sample in ten takes its place, and the old
table is dropped. Each sample in it also has the lowest, mean and highest IOPS of its ten seconds. One run that is
open or ended lately keeps its whole partition as it is. Results with their histograms, and everything else that they
lead back to, stay.
"""

import logging
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta

from django.conf import settings
from django.db import OperationalError, connection, transaction
from django.db.backends.utils import CursorWrapper
from django.db.models import Exists, OuterRef, Q, QuerySet
from django.utils import timezone

from webapp.core import changes
from webapp.core.errors import Refusal
from webapp.core.models import User
from webapp.core.services import audit
from webapp.results.models import Configuration, Sample, StreamRun
from webapp.runs.models import OPEN_RUN_STATES, Attempt, Run
from webapp.runs.services import retire_number
from webapp.runs.states import locked_run

# The partitions of the table of samples: one per month, by the day on which the server created the attempt.
#
# All samples of an attempt are in one partition, regardless of the worker's clock, so the primary key (attempt,
# stream, offset, direction, day) keeps each sample once.
#
#     results_sample_2026_11            all samples of attempts of November 2026
#     results_sample_2026_11_thinned    about one in ten of them, see `results.retention`

TABLE = "results_sample"
SAMPLES = "samples"  # the scope of their changes after a run has ended
_NAME = re.compile(rf"{TABLE}_(\d{{4}})_(\d{{2}})(_thinned)?")
_LOCK = 0x53414D50  # of PostgreSQL's advisory locks: one process creates partitions at a time

_EXCHANGE_WAIT = "5s"

_known: set[date] = set()  # months whose committed partition this process knows


@dataclass(frozen=True)
class Partition:
    month: date  # its first day
    thinned: bool = False

    @property
    def table(self) -> str:
        return f"{TABLE}_{self.month:%Y_%m}" + ("_thinned" if self.thinned else "")

    @property
    def next_month(self) -> date:
        return (self.month + timedelta(days=31)).replace(day=1)

    @property
    def span(self) -> tuple[datetime, datetime]:
        """The range of times in which its attempts were created: from, to (exclusive)."""
        return _midnight(self.month), _midnight(self.next_month)


def create_partitions() -> None:
    """Create the partitions of this month and the next if they are missing."""
    this_month = Partition(timezone.now().date().replace(day=1))
    ensure_partition(this_month.month)
    ensure_partition(this_month.next_month)


def ensure_partition(day: date) -> None:
    """Create the partition of attempts of this day if it is missing."""
    month = day.replace(day=1)
    if month in _known:
        return
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(%s)", [_LOCK])
        if month not in {partition.month for partition in partitions()}:
            _create_table(cursor, Partition(month))
            attach(cursor, Partition(month))
        transaction.on_commit(lambda: _known.add(month))


def partitions() -> list[Partition]:
    """All partitions, oldest first."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT inhrelid::regclass::text FROM pg_inherits WHERE inhparent = %s::regclass", [TABLE])
        return sorted(_parsed(name for (name,) in cursor.fetchall()), key=lambda partition: partition.month)


def _parsed(names: Iterator[str]) -> Iterator[Partition]:
    for name in names:
        if match := _NAME.fullmatch(name):
            yield Partition(date(int(match[1]), int(match[2]), 1), thinned=bool(match[3]))


# SQL. Samples are grouped by the ten seconds in which they begin; the one that goes over their end is kept.
TEN_SECONDS = "(offset_ms - length_ms) / 10000"
KEPT = f"offset_ms / 10000 > {TEN_SECONDS}"
SUMMARY = {
    "iops_min": "min(ios * 1000.0 / nullif(length_ms, 0))",
    "iops_mean": "sum(ios) * 1000.0 / nullif(sum(length_ms), 0)",
    "iops_max": "max(ios * 1000.0 / nullif(length_ms, 0))",
}
STREAM = "attempt_id, stream, direction"


@transaction.atomic
def replace_partition(partition: Partition) -> int:
    """Replace a partition by a table with only some of its rows (KEPT); return the number of dropped rows.

    Copying blocks only writers of this partition. Readers of all samples wait only while the tables are
    exchanged. Raises OperationalError if that waits for other queries for more than a few seconds.
    """
    thinned = replace(partition, thinned=True)
    columns = ", ".join(str(field.column) for field in Sample._meta.concrete_fields if field.name not in SUMMARY)
    summaries = ", ".join(f"{sql} AS {name}" for name, sql in SUMMARY.items())
    with connection.cursor() as cursor:
        cursor.execute(f"SET LOCAL lock_timeout = '{_EXCHANGE_WAIT}'")
        cursor.execute(f"LOCK TABLE {partition.table} IN SHARE MODE")
        cursor.execute(f"SELECT count(*) FROM {partition.table}")  # noqa: S608 - our own names
        ((before,),) = cursor.fetchall()
        _create_table(cursor, thinned)
        cursor.execute(f"""
            WITH summary AS (
                SELECT {STREAM}, {TEN_SECONDS} AS ten, {summaries} FROM {partition.table} GROUP BY {STREAM}, ten
            ), kept AS (SELECT {columns}, {TEN_SECONDS} AS ten FROM {partition.table} WHERE {KEPT})
            INSERT INTO {thinned.table} ({columns}, {", ".join(SUMMARY)})
            SELECT {columns}, {", ".join(SUMMARY)} FROM kept JOIN summary USING ({STREAM}, ten)
        """)  # noqa: S608 - as above
        dropped = int(before - cursor.rowcount)
        cursor.execute(f"ALTER TABLE {TABLE} DETACH PARTITION {partition.table}")
        cursor.execute(f"DROP TABLE {partition.table}")
        attach(cursor, thinned)
    changes.note(SAMPLES)
    return dropped


def _create_table(cursor: CursorWrapper, partition: Partition) -> None:
    """Create a table that can become the partition. Its check constraint saves a scan."""
    check = f"CHECK (day >= '{partition.month}' AND day < '{partition.next_month}')"
    cursor.execute(f"CREATE TABLE {partition.table} (LIKE {TABLE} INCLUDING ALL, {check})")


def attach(cursor: CursorWrapper, partition: Partition) -> None:
    """Unlike CREATE TABLE … PARTITION OF, this does not block reads and writes of the other partitions."""
    bounds = f"FROM ('{partition.month}') TO ('{partition.next_month}')"
    cursor.execute(f"ALTER TABLE {TABLE} ATTACH PARTITION {partition.table} FOR VALUES {bounds}")


def _midnight(day: date) -> datetime:
    return datetime(day.year, day.month, day.day, tzinfo=UTC)


log = logging.getLogger(__name__)


def thin_samples() -> int:
    """Thin all partitions that are old; the number of rows dropped. With SWEETSPOT_SAMPLE_DAYS=0 none are."""
    if not settings.SAMPLE_DAYS:
        return 0
    before = timezone.now() - timedelta(days=settings.SAMPLE_DAYS)
    old = [each for each in partitions() if not each.thinned and _is_old(each, before)]
    return sum(_thin(partition) for partition in old)


def _is_old(partition: Partition, before: datetime) -> bool:
    begin, end = partition.span
    attempts = Attempt.objects.filter(created_at__gte=begin, created_at__lt=end, run__isnull=False)
    young = attempts.filter(Q(run__state__in=OPEN_RUN_STATES) | Q(run__ended_at__gte=before))
    return end <= timezone.now() and not young.exists()


def _thin(partition: Partition) -> int:
    """The number of rows dropped; 0 if somebody reads the samples for long: then the next day's task tries again."""
    try:
        dropped = replace_partition(partition)
    except OperationalError as error:
        log.warning("%s could not be thinned now: %s", partition.table, error)
        return 0
    log.info("%d samples of %s were thinned out", dropped, partition.month.strftime("%B %Y"))
    return dropped


def _raw_delete(rows: QuerySet[Sample]) -> int:
    """Samples have nothing that hangs on them: they need not be loaded to be deleted."""
    return int(rows._raw_delete(rows.db))


def delete_run(*, run: Run, by: User | None) -> None:
    """Delete a run that is over, with its trials, results and samples; its plan stays.

    Raises Refusal run_open, NotFound run_unknown.
    """
    retire_number(run.number)  # first, in a transaction of its own: starts of runs do not wait for the deletion
    _delete_ended(run, by)


@transaction.atomic
def _delete_ended(run: Run, by: User | None) -> None:
    locked = locked_run(run, no_key=False)
    if locked.state in OPEN_RUN_STATES:
        raise Refusal("run_open", f"Run {locked.number} has not ended. Cancel it, and delete it after its end.")
    counts = {"trials": locked.trials.count(), "results": locked.results.count()}
    _raw_delete(Sample.objects.filter(attempt__run=locked))
    audit(by=by, action="run.delete", on=locked, detail=counts)
    locked.delete()
    transaction.on_commit(delete_orphans)


def delete_orphans() -> int:
    """Configurations that no stream leads to any more; how many there were."""
    used = StreamRun.objects.filter(configuration=OuterRef("pk"))
    observed = Attempt.objects.filter(configuration_digest=OuterRef("digest"))
    gone, _ = Configuration.objects.filter(~Exists(used), ~Exists(observed)).delete()
    return gone
