"""How large the database is, what grows, and when its disk is full."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from shutil import disk_usage

from django.conf import settings
from django.db import connection
from django.utils import timezone

from webapp.storage.models import DailySize

RATE_OVER = timedelta(days=30)  # the growth of one busy night says little
KEPT_FOR = timedelta(days=400)


@dataclass(frozen=True)
class Kind:
    """`prefixes` are beginnings of names of tables. The first kind with one of them has the table."""

    label: str
    prefixes: tuple[str, ...]
    limit: str  # what ends its growth


KINDS: Mapping[str, Kind] = {
    "samples": Kind("Samples", ("results_sample",), "thinned after SWEETSPOT_SAMPLE_DAYS; deleted with their run"),
    "results": Kind("Results", ("results_result",), "deleted with their run or import"),
    "output": Kind(
        "Output of engines", ("results_streamrun", "results_attachment", "results_kernelline", "results_drivereading"),
        "deleted with its run",
    ),
    "imports": Kind("Imports", ("results_import", "results_origin"), "deleted on the page of the import"),
    "runs": Kind("Runs and trials", ("runs_",), "deleted by hand, or after SWEETSPOT_RUN_DAYS"),
    "audit": Kind("Audit log", ("core_auditentry",), "exported and deleted by manage.py delete_audit_entries"),
    "changes": Kind("Change numbers", ("core_change",), "merged every ten minutes"),
    "other": Kind("Everything else", ("",), "hosts, plans, schedules, findings, and PostgreSQL's own tables"),
}  # fmt: skip


@dataclass(frozen=True)
class Table:
    name: str
    bytes: int  # with indexes and TOAST tables
    rows: int  # estimated by PostgreSQL's last ANALYZE


@dataclass(frozen=True)
class Size:
    """`rows` are trials for runs, files for imports, and 0 for everything else."""

    kind: str
    bytes: int
    rows: int
    bytes_per_day: float | None  # over the last 30 days; null without an earlier day. Below 0: it shrinks

    @property
    def label(self) -> str:
        return KINDS[self.kind].label

    @property
    def limit(self) -> str:
        return KINDS[self.kind].limit


@dataclass(frozen=True)
class Storage:
    sizes: tuple[Size, ...]  # largest first
    database_bytes: int
    free_bytes: int | None  # of the disk of the database; null if the server cannot see it

    @property
    def bytes_per_day(self) -> float | None:
        rates = [size.bytes_per_day for size in self.sizes if size.bytes_per_day is not None]
        return sum(rates) if rates else None

    @property
    def fastest(self) -> Size | None:
        """The kind that grows fastest; null if none grows."""
        growing = [size for size in self.sizes if (size.bytes_per_day or 0) > 0]
        return max(growing, key=lambda size: size.bytes_per_day or 0, default=None)

    @property
    def days_left(self) -> float | None:
        """Until the disk is full at this rate; null if that is unknown or the database does not grow."""
        rate = self.bytes_per_day
        return self.free_bytes / rate if self.free_bytes is not None and rate and rate > 0 else None


def tables() -> list[Table]:
    """Partitions are tables of their own."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT relname, pg_total_relation_size(oid), greatest(reltuples, 0)::bigint FROM pg_class "
            "WHERE relkind = 'r' AND relnamespace = current_schema()::regnamespace"
        )
        return [Table(*row) for row in cursor.fetchall()]


def read_storage() -> Storage:
    database_bytes, sizes, rows = _measure()
    earlier = _earlier_sizes()
    today = timezone.now().date()
    rates = {size.kind: (sizes[size.kind] - size.bytes) / (today - size.day).days for size in earlier}
    by_kind = [Size(kind, sizes[kind], rows[kind], rates.get(kind)) for kind in KINDS]
    return Storage(tuple(sorted(by_kind, key=lambda size: -size.bytes)), database_bytes, _free_bytes())


def _measure() -> tuple[int, Counter[str], Counter[str]]:
    """Bytes of the database, bytes by kind, and rows of the first tables by kind."""
    sizes: Counter[str] = Counter()
    rows: Counter[str] = Counter()
    for table in tables():
        kind = _kind_of(table.name)
        sizes[kind] += table.bytes
        if kind != "other" and table.name.startswith(_COUNTED.get(kind, KINDS[kind].prefixes[0])):
            rows[kind] += table.rows
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_database_size(current_database())")
        database_bytes = int(cursor.fetchone()[0])
    sizes["other"] += max(0, database_bytes - sizes.total())
    return database_bytes, sizes, rows


# The tables whose rows people count, for kinds of several tables.
_COUNTED = {"runs": "runs_trial", "imports": "results_importedfile", "output": "results_streamrun"}


def _kind_of(table: str) -> str:
    return next(kind for kind, about in KINDS.items() if table.startswith(about.prefixes))


def _earlier_sizes() -> list[DailySize]:
    """Of each kind, the size on the earliest known day of the last 30, today excluded."""
    today = timezone.now().date()
    known = DailySize.objects.filter(day__gte=today - RATE_OVER, day__lt=today).order_by("kind", "day")
    return list(known.distinct("kind"))


def _free_bytes() -> int | None:
    try:
        return disk_usage(settings.DATABASE_DISK).free if settings.DATABASE_DISK else None
    except OSError:
        return None


def note_sizes() -> None:
    """Record the sizes of today. A second call on a day replaces them."""
    today = timezone.now().date()
    _, sizes, _ = _measure()
    DailySize.objects.bulk_create(
        [DailySize(day=today, kind=kind, bytes=sizes[kind]) for kind in KINDS],
        update_conflicts=True, update_fields=["bytes"], unique_fields=["day", "kind"],
    )  # fmt: skip
    DailySize.objects.filter(day__lt=today - KEPT_FOR).delete()
