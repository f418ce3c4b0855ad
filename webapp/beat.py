"""Beat's schedule, from the database, for a server whose clock may be set.

Celery's own reckons with times of day: after the clock was set back by two hours, what is to be done every five
seconds would next be done in two hours.
"""

import logging
import time
from datetime import datetime
from typing import Any

from django.db import DatabaseError, connection
from django.utils import timezone
from django_celery_beat.schedulers import DatabaseScheduler, ModelEntry

from webapp.core import health
from webapp.core.checks import require_safe_settings

log = logging.getLogger(__name__)

NOTE_EVERY_S = 10.0
JUMP_S = 2.0  # a clock that is slewed moves by less between two looks


class Entry(ModelEntry):  # type: ignore[misc] # it ships no types
    last_run_at: datetime

    def is_due(self) -> Any:
        """A last run in the future was noted by a clock that was ahead: it counts as just now."""
        now = timezone.now()
        if self.last_run_at and self.last_run_at > now:
            self.last_run_at = self.model.last_run_at = now
        return super().is_due()


class Scheduler(DatabaseScheduler):  # type: ignore[misc]
    Entry = Entry

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        require_safe_settings()
        self._wall_minus_monotonic_s = _wall_minus_monotonic_s()
        self._noted_at = -NOTE_EVERY_S
        super().__init__(*args, **kwargs)

    def tick(self, *args: Any, **kwargs: Any) -> Any:
        """The heap is ordered by times of day: when the clock was set it is made anew."""
        ahead_s = _wall_minus_monotonic_s()
        if abs(ahead_s - self._wall_minus_monotonic_s) > JUMP_S:
            self._wall_minus_monotonic_s = ahead_s
            self._heap = None
        self._note()
        return super().tick(*args, **kwargs)

    def _note(self) -> None:
        """Record that beat runs, for /healthz. Beat continues without its database."""
        if time.monotonic() < self._noted_at + NOTE_EVERY_S:
            return
        self._noted_at = time.monotonic()
        try:
            health.note(health.BEAT)
        except DatabaseError as error:
            connection.close()
            log.warning("Beat cannot reach the database: %s", error)


def _wall_minus_monotonic_s() -> float:
    return time.time() - time.monotonic()
