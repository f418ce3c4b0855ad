"""Many occurrences at once, more than one tick has time for."""

from datetime import timedelta
from itertools import count
from types import SimpleNamespace

import pytest

from webapp.hosts.models import Target
from webapp.runs.models import Priority, Run
from webapp.schedules import tasks
from webapp.schedules.models import Occurrence
from webapp.schedules.tests.clock import Clock
from webapp.schedules.tests.moments import DUE
from webapp.tests.factories.hosts import a_target
from webapp.tests.factories.plans import a_version
from webapp.tests.factories.schedules import a_schedule

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("broker")]
BLOCKED = 7


@pytest.fixture
def three_a_tick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each look at the time takes a second, and a tick has time to try three occurrences."""
    seconds = count()
    monkeypatch.setattr(tasks, "time", SimpleNamespace(monotonic=lambda: float(next(seconds))))
    monkeypatch.setattr(tasks, "START_LIMIT_S", 3.5)


def blocked(clock: Clock, target: Target) -> None:
    """Schedules of high priority on a host that is away."""
    clock.away = {target.host.slug}
    version = a_version()
    for number in range(BLOCKED):
        a_schedule(name=f"blocked {number}", targets=[target], version=version, priority=Priority.HIGH)


@pytest.mark.usefixtures("three_a_tick")
def test_those_that_cannot_start_do_not_keep_others_from_starting(at_noon: Clock) -> None:
    blocked(at_noon, a_target())
    a_schedule(name="free", targets=[a_target()])
    at_noon.to(DUE)
    at_noon.after(seconds=5)
    assert not Run.objects.exists()
    at_noon.after(seconds=5)
    assert Run.objects.get().occurrence.schedule.name == "free"
    for _ in range(3):
        at_noon.after(seconds=5)
    assert not Occurrence.objects.filter(state="waiting", reason_code="").exists()  # each was tried


@pytest.mark.usefixtures("three_a_tick")
def test_one_that_is_new_does_not_wait_for_a_whole_round(at_noon: Clock) -> None:
    blocked(at_noon, a_target())
    a_schedule(name="free", targets=[a_target()], cron="1 22 * * *")
    at_noon.to(DUE)
    at_noon.after(seconds=5)
    at_noon.after(seconds=5)
    at_noon.to(DUE + timedelta(minutes=1))
    assert Run.objects.get().occurrence.schedule.name == "free"


def test_priority_decides_again_once_all_were_tried(at_noon: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    blocked(at_noon, a_target())
    with monkeypatch.context() as patched:
        patched.setattr(tasks, "START_LIMIT_S", -1.0)
        at_noon.to(DUE)
    Occurrence.objects.update(tried_at=DUE)
    at_noon.after(seconds=5)
    assert set(Occurrence.objects.values_list("tried_at", flat=True)) == {None}
