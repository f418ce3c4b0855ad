"""What one report has to say about one attempt, gathered so that it is written in few statements."""

from dataclasses import dataclass, field
from datetime import UTC, datetime
from operator import attrgetter

from django.db import connection

from webapp.results.models import LegRun, Sample
from webapp.runs.models import Attempt, SettingChange

COPY_FROM = 50  # rows; fewer are inserted
# Of a sample's row: attribute and PostgreSQL's type.
COLUMNS = (
    ("attempt_id", "uuid"), ("leg", "int2"), ("second", "int4"), ("direction", "varchar"), ("at", "timestamptz"),
    ("interval_ms", "int4"), ("ios", "int8"), ("bytes", "int8"), ("runtime_ms", "int4"), ("p50_ns", "int8"),
    ("p99_ns", "int8"), ("p999_ns", "int8"), ("latency", "bytea"), ("utilisation_percent", "float8"),
    ("queue_depth", "float8"), ("beside", "float4[]"),
)  # fmt: skip
_COPY = f"copy {Sample._meta.db_table} ({', '.join(name for name, _ in COLUMNS)}) from stdin (format binary)"
_VALUES = attrgetter(*(name for name, _ in COLUMNS))


class BadItem(Exception):
    """An item that is well formed and yet cannot be true; its text says which and why."""


@dataclass
class Intake:
    """`attempt` is locked. Rows are collected and written by `flush`."""

    attempt: Attempt
    changes: dict[str, object] = field(default_factory=dict)  # of the attempt, but for its state
    samples: list[Sample] = field(default_factory=list)
    setting_changes: list[SettingChange] = field(default_factory=list)
    ended: bool = False
    _legs: set[int] | None = None

    def require_leg(self, leg: int, what: str) -> None:
        """Raises BadItem for a leg that never started."""
        if self._legs is None:
            self._legs = set(LegRun.objects.filter(attempt=self.attempt).values_list("leg", flat=True))
        if leg not in self._legs:
            raise BadItem(f"A {what} of leg {leg}, which has not started.")

    def leg_started(self, leg: int) -> None:
        if self._legs is not None:
            self._legs.add(leg)

    def change(self, **changes: object) -> None:
        """Note new values of the attempt's columns."""
        self.changes |= changes
        for name, value in changes.items():
            setattr(self.attempt, name, value)

    def flush(self) -> None:
        """Write what was collected; rules that only the database can see are seen here."""
        if len(self.samples) > COPY_FROM:
            _copy_samples(self.samples)
        elif self.samples:
            Sample.objects.bulk_create(self.samples)
        if self.setting_changes:
            SettingChange.objects.bulk_create(self.setting_changes)
        self.samples, self.setting_changes = [], []


def _copy_samples(samples: list[Sample]) -> None:
    """The same by binary COPY: about five times as quick for many rows."""
    with connection.cursor() as cursor, cursor.copy(_COPY) as copy:
        copy.set_types([kind for _, kind in COLUMNS])
        for row in map(_VALUES, samples):
            copy.write_row(row)


def moment(seconds: float) -> datetime:
    """A Unix time of the contract. Raises BadItem where it is no date."""
    try:
        return datetime.fromtimestamp(seconds, tz=UTC)
    except (OverflowError, OSError, ValueError) as error:
        raise BadItem(f"{seconds} is no Unix time.") from error
