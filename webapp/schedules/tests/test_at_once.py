"""Two processes at once, with database connections of their own, and a process that is killed."""

import threading
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import pytest
from django.db import connection

from webapp.core.models import Role
from webapp.core.people import remove_user
from webapp.hosts.models import Target
from webapp.plans.services import delete_plan
from webapp.runs.models import Run
from webapp.runs.services import start_run
from webapp.schedules import tasks
from webapp.schedules.models import Occurrence, SchedulerTick, Trigger
from webapp.schedules.services import create_schedule
from webapp.schedules.tests.clock import Clock
from webapp.schedules.tests.moments import DUE
from webapp.schedules.tests.occurrences import states
from webapp.tests.factories.hosts import a_target
from webapp.tests.factories.people import a_user
from webapp.tests.factories.schedules import a_schedule, a_spec
from webapp.tests.threads import at_once

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("broker")]


class Killed(BaseException):
    """Nothing catches it, as nothing catches SIGKILL."""


@pytest.mark.parametrize("_again", range(3))
def test_two_ticks_at_once_start_one_run(at_noon: Clock, target: Target, _again: int) -> None:
    a_schedule(targets=[target])
    at_noon.set(DUE)
    assert at_once(lambda: tasks.run_schedules(DUE), lambda: tasks.run_schedules(DUE)) == [None, None]
    assert (Run.objects.count(), states()) == (1, ["started"])


def test_two_ticks_start_one_run_also_when_both_believe_to_be_alone(
    at_noon: Clock, target: Target, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process that loses its connection loses the lock of the tick, and goes on."""
    a_schedule(targets=[target], trigger=Trigger.ONCE, once_at=DUE)
    monkeypatch.setattr(tasks, "_alone", lambda: nullcontext(True))
    at_noon.set(DUE)
    assert at_once(lambda: tasks.run_schedules(DUE), lambda: tasks.run_schedules(DUE)) == [None, None]
    assert states() == ["started"]
    assert Run.objects.count() == 1


@pytest.mark.parametrize("step", ["before the run", "after the run"])
def test_a_process_killed_before_its_commit_starts_nothing_and_the_next_tick_starts_one(
    at_noon: Clock, target: Target, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    a_schedule(targets=[target])

    def killed(**fields: Any) -> Run:
        if step == "after the run":
            start_run(**fields)
        raise Killed

    with monkeypatch.context() as patched:
        patched.setattr(tasks, "start_run", killed)
        with pytest.raises(Killed):
            at_noon.to(DUE)
    assert (Run.objects.count(), states()) == (0, ["waiting"])
    at_noon.after(seconds=5)
    assert (Run.objects.count(), states()) == (1, ["started"])


def test_a_process_killed_after_its_commit_has_started_one_run(
    at_noon: Clock, target: Target, monkeypatch: pytest.MonkeyPatch
) -> None:
    a_schedule(targets=[target])

    def killed(*_: object) -> None:
        raise Killed

    with monkeypatch.context() as patched:
        patched.setattr(tasks, "_note_tried", killed)
        with pytest.raises(Killed):
            at_noon.to(DUE)
    assert SchedulerTick.objects.get().at < DUE
    assert states() == ["started"]
    at_noon.after(seconds=5)
    assert (Run.objects.count(), states()) == (1, ["started"])


def test_a_connection_that_dies_in_a_tick_keeps_no_later_tick_out(at_noon: Clock, target: Target) -> None:
    a_schedule(targets=[target])

    def die() -> bool:
        with tasks._alone() as mine:
            connection.close()
            return mine

    assert at_once(die) == [True]
    at_noon.to(DUE)
    assert states() == ["started"]


def test_a_tick_that_starts_a_follower_and_an_admin_who_removes_the_owner_do_not_deadlock(
    at_noon: Clock, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The tick comes from the first schedule to its follower; by name the follower is first."""
    admin, owner = a_user("ada", Role.ADMIN), a_user("olga")
    first = a_schedule(owner, name="z first", targets=[a_target()])
    a_schedule(owner, name="a follower", trigger=Trigger.AFTER_SCHEDULE, after_schedule=first, condition="any")
    delete_plan(plan=first.version.plan, by=admin)  # so the tick misses the first, and then the follower
    in_tick = threading.Event()
    at_noon.set(DUE)
    hold_in(monkeypatch, in_tick)

    def remove() -> None:
        assert in_tick.wait(10)
        remove_user(user=owner, by=admin)

    assert at_once(lambda: tasks.run_schedules(DUE), remove) == [None, None]
    assert "deadlock" not in caplog.text
    first.refresh_from_db()
    assert (first.owner, first.enabled) == (admin, False)
    missed = Occurrence.objects.filter(state="missed").values_list("schedule__name", flat=True)
    assert sorted(missed) == ["a follower", "z first"]


def hold_in(monkeypatch: pytest.MonkeyPatch, reached: threading.Event) -> None:
    """The tick stops where it holds the first schedule, until the admin has had the time to lock what they need."""
    refuse: Callable[..., None] = tasks._refuse_invalid

    def slow(*args: Any) -> None:
        if not reached.is_set():
            reached.set()
            threading.Event().wait(0.7)
        refuse(*args)

    monkeypatch.setattr(tasks, "_refuse_invalid", slow)


def test_of_two_schedules_with_one_name_the_second_is_refused(at_noon: Clock) -> None:
    specs = [a_spec(name="twin"), a_spec(name="twin")]
    person = a_user()
    found = at_once(*(lambda spec=spec: create_schedule(spec=spec, by=person) for spec in specs))
    refused = [one for one in found if isinstance(one, Exception)]
    assert [getattr(one, "code", repr(one)) for one in refused] == ["name_refused"]
