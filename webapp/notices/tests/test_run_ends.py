"""Runs that end are announced once, in words."""

from datetime import timedelta
from io import StringIO
from typing import Any

import pytest
from django.core.management import call_command
from django.utils import timezone
from django_celery_beat.models import PeriodicTask

from webapp.analysis.reviews import answer_of
from webapp.notices import tasks
from webapp.notices.models import Event, Notice
from webapp.notices.tasks import announce_ended_runs, announce_run
from webapp.runs.models import Run, RunState
from webapp.tests.factories.hosts import a_target
from webapp.tests.factories.notices import a_subscription
from webapp.tests.factories.results import Lab
from webapp.tests.factories.runs import a_run
from webapp.tests.threads import at_once

pytestmark = pytest.mark.django_db


def an_ended_run(state: RunState, trials: list[str], **changes: Any) -> Run:
    now = timezone.now()
    run = a_run(
        a_target(), trials=len(trials), state=state, started_at=now - timedelta(hours=2), ended_at=now, **changes
    )
    for trial, ended in zip(run.trials.order_by("index"), trials, strict=True):
        trial.state, trial.reason_code = ended, "x"
        trial.save()
    return run


def told_of(run: Run) -> Notice:
    announce_ended_runs()
    return Notice.objects.get(payload__run=run.number)


def test_it_says_how_a_run_ended() -> None:
    a_subscription()
    run = an_ended_run(RunState.DONE, ["done", "done", "failed"])
    notice = told_of(run)
    host = run.trials.get(index=0).host.slug
    assert notice.event == Event.ENDED
    assert notice.subject == f"Run {run.number} of A plan is done: 1 of 3 trials failed"
    assert notice.text.splitlines()[:4] == [
        f"Run {run.number} of the plan A plan is done: 1 of 3 trials failed.",
        "",
        "Trials: 2 done, 1 failed, 0 cancelled of 3",
        f"Hosts: {host}",
    ]
    assert notice.text.endswith("after 2 h 00 min")
    assert notice.payload["plan"] == run.version.plan.slug
    assert notice.payload["url"].endswith(f"/runs/{run.number}/")
    assert notice.payload["detail"]["trials"] == {"total": 3, "done": 2, "failed": 1, "cancelled": 0}


def test_it_has_the_headline_of_the_run() -> None:
    a_subscription()
    lab = Lab(a_target())
    for scheduler, iops in (("none", 1000.0), ("kyber", 500.0)):
        lab.measure(*(iops,) * 4, scheduler=scheduler)
    Run.objects.filter(pk=lab.run.pk).update(ended_at=timezone.now())
    headline = answer_of(lab.run).headline
    assert "kyber" in headline
    notice = told_of(lab.run)
    assert f"Result: {headline}" in notice.text.splitlines()
    assert notice.payload["detail"]["headline"] == headline


@pytest.mark.parametrize(
    ("state", "event", "words"),
    [
        (RunState.DONE, Event.ENDED, "is done"),
        (RunState.CANCELLED, Event.ENDED, "was cancelled"),
        (RunState.FAILED, Event.FAILED, "failed"),
    ],
)
def test_it_tells_failed_from_ended(state: RunState, event: Event, words: str) -> None:
    a_subscription()
    run = an_ended_run(
        state, ["done"], reason_fields={"message": "Settings were not put back."}, reason_code="settings_not_restored"
    )
    notice = told_of(run)
    assert (notice.event, notice.subject) == (event, f"Run {run.number} of A plan {words}")
    assert "Reason: Settings were not put back." in notice.text


def test_it_announces_a_run_once_and_none_that_goes_on() -> None:
    a_subscription()
    run = an_ended_run(RunState.DONE, ["done"])
    a_run(a_target(), state=RunState.RUNNING)
    for _ in range(2):
        tasks.tick()
    assert Notice.objects.count() == 1
    run.refresh_from_db()
    assert run.announced_at
    assert not announce_run(run.pk)


@pytest.mark.django_db(transaction=True)
def test_two_that_announce_at_once_announce_once() -> None:
    a_subscription()
    run = an_ended_run(RunState.DONE, ["done"])
    assert sorted(at_once(lambda: announce_run(run.pk), lambda: announce_run(run.pk))) == [False, True]  # type: ignore[type-var]
    assert Notice.objects.count() == 1


def test_one_that_cannot_be_announced_keeps_none_from_it(monkeypatch: pytest.MonkeyPatch) -> None:
    a_subscription()
    bad, good = an_ended_run(RunState.DONE, ["done"]), an_ended_run(RunState.DONE, ["done"])
    detail = tasks._detail

    def broken(run: Run, *rest: Any) -> Any:
        if run.pk == bad.pk:
            raise KeyError("a bug")
        return detail(run, *rest)

    monkeypatch.setattr(tasks, "_detail", broken)
    announce_ended_runs()
    assert [notice.payload["run"] for notice in Notice.objects.all()] == [good.number]
    bad.refresh_from_db()
    assert bad.announced_at is None


def test_set_up_makes_beat_tick_every_five_seconds_and_drop_what_is_late() -> None:
    for _ in range(2):
        call_command("setup", stdout=StringIO(), stderr=StringIO())
    task = PeriodicTask.objects.get(name="notices")
    assert (task.task, task.interval.every, task.expire_seconds) == (tasks.tick.name, 5, 5)
