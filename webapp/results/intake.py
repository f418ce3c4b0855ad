"""What one report has to say about one attempt, gathered so that it is written in few statements."""

from dataclasses import dataclass, field
from datetime import UTC, datetime

from webapp.results.models import LegRun, Sample
from webapp.runs.models import Attempt, SettingChange


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
        if self.samples:
            Sample.objects.bulk_create(self.samples, batch_size=2000)
        if self.setting_changes:
            SettingChange.objects.bulk_create(self.setting_changes)
        self.samples, self.setting_changes = [], []


def moment(seconds: float) -> datetime:
    """A Unix time of the contract. Raises BadItem where it is no date."""
    try:
        return datetime.fromtimestamp(seconds, tz=UTC)
    except (OverflowError, OSError, ValueError) as error:
        raise BadItem(f"{seconds} is no Unix time.") from error
