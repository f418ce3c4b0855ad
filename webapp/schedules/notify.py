"""Notices about schedules: a due time was missed, a run is late."""

from datetime import datetime

from webapp.schedules.models import Occurrence, Schedule


def notify_missed(schedule: Schedule, due_at: datetime, *, count: int, reason: str) -> None:
    """Tell subscribers that one or several due times were missed, the latest at `due_at`."""


def notify_late(occurrence: Occurrence, deadline: datetime) -> None:
    """Tell subscribers that a run has passed its deadline."""
