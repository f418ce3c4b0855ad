"""A clock that tests set, and hosts that are heard unless a test takes them away."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta

import time_machine
from django.utils import timezone

from webapp.hosts.models import Host
from webapp.runs.models import Attempt, AttemptState, Run, RunState, Trial, TrialState
from webapp.runs.reasons import message_fields
from webapp.runs.states import transition_run
from webapp.schedules.tasks import run_schedules


class Clock:
    """Time moves only by `to` and `after`; each lets the scheduler look once."""

    def __init__(self, traveller: time_machine.Traveller) -> None:
        self._traveller = traveller
        self.away: set[str] = set()

    @property
    def now(self) -> datetime:
        return timezone.now()

    def to(self, at: datetime) -> None:
        self.set(at)
        run_schedules(at)

    def after(self, **length: float) -> None:
        self.to(self.now + timedelta(**length))

    def set(self, at: datetime) -> None:
        """Move on without the scheduler: it is down."""
        self._traveller.move_to(at, tick=False)
        Host.objects.exclude(slug__in=self.away).update(last_seen_at=at)


@contextmanager
def clock(at: datetime) -> Iterator[Clock]:
    with time_machine.travel(at, tick=False) as traveller:
        made = Clock(traveller)
        made.to(at)
        yield made


def finish(run: Run, state: RunState = RunState.DONE, reason: str = "") -> None:
    """The run ends now, as if workers had reported everything."""
    now = timezone.now()
    Trial.objects.filter(run=run).update(state=TrialState.DONE, ended_at=now)
    Attempt.objects.filter(run=run).update(state=AttemptState.DONE, ended_at=now)
    run.refresh_from_db()
    transition_run(run, state, code="no_trial_done" if state == RunState.FAILED else "", fields=message_fields(reason))
