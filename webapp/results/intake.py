"""What one report has to say about one attempt, gathered so that it is written in few statements."""

from dataclasses import dataclass, field
from datetime import UTC, datetime

from django.db import connection

from webapp.results.models import LegRun, Result, Sample
from webapp.runs.ending import end_attempt
from webapp.runs.models import Attempt, AttemptState, SettingChange
from webapp.runs.states import Later
from worker.contract.items import Finished

# Of a sample's row: column and PostgreSQL's type.
COLUMNS = (
    ("attempt_id", "uuid"), ("leg", "int2"), ("second", "int4"), ("direction", "varchar"), ("at", "timestamptz"),
    ("interval_ms", "int4"), ("ios", "int8"), ("bytes", "int8"), ("runtime_ms", "int4"), ("p50_ns", "int8"),
    ("p99_ns", "int8"), ("p999_ns", "int8"), ("latency", "bytea"), ("utilisation_percent", "float8"),
    ("queue_depth", "float8"), ("beside", "float4[]"),
)  # fmt: skip
_COPY = f"copy {Sample._meta.db_table} ({', '.join(name for name, _ in COLUMNS)}) from stdin (format binary)"
_TYPES = [kind for _, kind in COLUMNS]
_LARGEST_INT4 = 2**31 - 1

SampleRow = tuple[object, ...]  # in the order of COLUMNS


class BadItem(Exception):
    """An item that is well formed and yet cannot be true; its text says which and why."""


@dataclass
class Intake:
    """`attempt` is locked. Everything is collected here and in `later`, and written by `write`."""

    attempt: Attempt
    later: Later = field(default_factory=Later)  # of the attempt and its trial
    samples: list[SampleRow] = field(default_factory=list)
    setting_changes: list[SettingChange] = field(default_factory=list)
    results: list[Result] = field(default_factory=list)
    finished: Finished | None = None
    _legs: dict[int, LegRun] | None = None
    _changed_legs: dict[int, set[str]] = field(default_factory=dict)

    @property
    def legs(self) -> dict[int, LegRun]:
        """Legs that have started, by number."""
        if self._legs is None:
            known = LegRun.objects.filter(attempt=self.attempt) if self.attempt.started_at else ()
            self._legs = {leg.leg: leg for leg in known}
        return self._legs

    def leg(self, number: int, what: str) -> LegRun:
        """The leg that `what` is said of. Raises BadItem where it never started."""
        if number not in self.legs:
            raise BadItem(f"A {what} of leg {number}, which has not started.")
        return self.legs[number]

    def change_leg(self, leg: LegRun, **changes: object) -> None:
        """Note new values of a leg's columns."""
        self._changed_legs.setdefault(leg.leg, set()).update(changes)
        for name, value in changes.items():
            setattr(leg, name, value)

    def write(self) -> None:
        """Rules that only the database can see are seen here. The attempt's end comes last: its run may end with it."""
        self._write_legs()
        if self.samples:
            _copy_samples(self.samples)
        if self.setting_changes:
            SettingChange.objects.bulk_create(self.setting_changes)
        if self.results:
            Result.objects.bulk_create(self.results)
        if self.finished is None:
            self.later.write()
        else:
            outcome = AttemptState(self.finished.outcome.value)
            end_attempt(self.attempt, outcome, code=self.finished.code, message=self.finished.message, later=self.later)

    def _write_legs(self) -> None:
        new = [leg for leg in (self._legs or {}).values() if leg.pk is None]
        if new:
            LegRun.objects.bulk_create(new)
        for number, names in self._changed_legs.items():
            if self.legs[number] not in new:
                self.legs[number].save(update_fields=names)


def _copy_samples(samples: list[SampleRow]) -> None:
    """By binary COPY: about five times as quick as INSERT for many rows, and no slower for few."""
    with connection.wrap_database_errors, connection.cursor() as cursor, cursor.copy(_COPY) as copy:
        copy.set_types(_TYPES)
        for row in samples:
            copy.write_row(row)


def moment(seconds: float) -> datetime:
    """A Unix time of the contract. Raises BadItem where it is no date."""
    try:
        return datetime.fromtimestamp(seconds, tz=UTC)
    except (OverflowError, OSError, ValueError) as error:
        raise BadItem(f"{seconds} is no Unix time.") from error


def int4(number: int, what: str) -> int:
    """A number for a column of four bytes: binary COPY would cut a larger one off. Raises BadItem."""
    if number > _LARGEST_INT4:
        raise BadItem(f"{what} of {number} is out of range.")
    return number
