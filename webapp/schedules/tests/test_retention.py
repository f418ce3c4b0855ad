"""How long occurrences are kept."""

from datetime import timedelta

import pytest

from webapp.hosts.models import Target
from webapp.results.retention import delete_run
from webapp.runs.models import RunState
from webapp.runs.services import start_run
from webapp.schedules import tasks
from webapp.schedules.models import Occurrence, Trigger
from webapp.schedules.tasks import KEPT_FOR, delete_old_occurrences, tidy
from webapp.schedules.tests.clock import Clock, finish
from webapp.schedules.tests.moments import DUE, NOON
from webapp.schedules.tests.occurrences import latest, run_of
from webapp.tests.factories.schedules import a_schedule

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("broker")]


def test_an_occurrence_is_kept_as_long_as_its_run_and_then_for_13_months(at_noon: Clock, target: Target) -> None:
    a_schedule(targets=[target], trigger=Trigger.ONCE, once_at=DUE)
    at_noon.to(DUE)
    run = run_of(latest())
    finish(run)
    at_noon.after(seconds=5)
    at_noon.set(DUE + KEPT_FOR * 3)
    tidy()
    assert latest().run == run
    delete_run(run=run, by=None)
    at_noon.set(DUE + KEPT_FOR)
    tidy()
    assert latest().run is None
    at_noon.set(DUE + KEPT_FOR + timedelta(seconds=1))
    tidy()
    assert not Occurrence.objects.exists()


def test_a_missed_occurrence_is_deleted_and_one_that_waits_is_not(at_noon: Clock, target: Target) -> None:
    schedule = a_schedule(targets=[target])
    missed = Occurrence(schedule=schedule, due_at=NOON - timedelta(days=1), state="missed", reason_code="skipped")
    Occurrence.objects.bulk_create([missed, Occurrence(schedule=schedule, due_at=NOON - timedelta(days=2))])
    assert delete_old_occurrences(now=NOON + KEPT_FOR) == 1
    assert latest().state == "waiting"


def test_a_schedule_after_a_run_of_long_ago_is_not_due_again(at_noon: Clock, target: Target) -> None:
    run = start_run(version=a_schedule(targets=[target]).version, targets=[target], by=None)
    after = a_schedule(targets=[target], name="after", trigger=Trigger.AFTER_RUN, after_run=run)
    finish(run, RunState.FAILED, "broken")
    at_noon.after(seconds=5)
    before = list(after.occurrences.values_list("pk", "state"))
    assert [state for _, state in before] == ["missed"]
    at_noon.set(NOON + KEPT_FOR * 2)
    tidy()
    at_noon.after(seconds=5)
    assert list(after.occurrences.values_list("pk", "state")) == before


def test_many_are_deleted_in_batches(at_noon: Clock, target: Target, monkeypatch: pytest.MonkeyPatch) -> None:
    schedule = a_schedule(targets=[target])
    Occurrence.objects.bulk_create(
        Occurrence(schedule=schedule, due_at=NOON - timedelta(minutes=n), state="missed", reason_code="scheduler_down")
        for n in range(25)
    )
    monkeypatch.setattr(tasks, "BATCH", 4)
    monkeypatch.setattr(tasks, "MAX_BATCHES", 3)
    later = NOON + KEPT_FOR + timedelta(days=1)
    assert [delete_old_occurrences(now=later) for _ in range(4)] == [12, 12, 1, 0]
