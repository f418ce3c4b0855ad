"""Beat goes on when the server's clock is set."""

from datetime import timedelta

import pytest
from django.utils import timezone
from django_celery_beat.models import PeriodicTask

from webapp.beat import Scheduler
from webapp.celery import app
from webapp.runs.management.commands.setup import install_tick
from webapp.runs.tasks import TICK_SECONDS

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("broker")]


def test_it_goes_on_after_the_clock_was_set_back() -> None:
    """What a clock that was two hours ahead has noted does not keep the next tick waiting."""
    install_tick()
    PeriodicTask.objects.update(last_run_at=timezone.now() + timedelta(hours=2))
    entry = Scheduler(app=app, lazy=True).schedule["tick"]
    assert 0 < entry.is_due().next <= TICK_SECONDS


def test_it_orders_what_is_due_anew_when_the_clock_jumps(monkeypatch: pytest.MonkeyPatch) -> None:
    install_tick()
    scheduler = Scheduler(app=app, lazy=True)
    scheduler.tick()
    ordered = scheduler._heap
    scheduler.tick()
    assert scheduler._heap is ordered
    monkeypatch.setattr("webapp.beat._wall_minus_monotonic_s", lambda: scheduler._wall_minus_monotonic_s - 7200)
    scheduler.tick()
    assert scheduler._heap is not ordered
