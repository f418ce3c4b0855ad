"""The server's clock was a year ahead, and was set back: what it noted meanwhile has no effect until then."""

from collections.abc import Iterator
from datetime import timedelta

import pytest
import time_machine
from django.utils import timezone

from webapp.hosts.models import EnrolmentToken, Host, Target
from webapp.hosts.services import note_heard
from webapp.hosts.sessions import HEARD_WITHIN, claim_session
from webapp.hosts.tasks import keep_broker
from webapp.runs.actions.run_actions import pause_run
from webapp.runs.arming import is_armed
from webapp.runs.dispatch.dispatcher import idle_hosts
from webapp.runs.dispatch.leases import correct_times_ahead, new_lease
from webapp.runs.dispatch.orders import to_publish_again
from webapp.runs.dispatch.tests.test_ahead import active, drives, started  # noqa: F401 - fixture
from webapp.runs.models import Attempt, AttemptState
from webapp.runs.tasks import tick
from webapp.schedules.models import Occurrence
from webapp.tests.factories.hosts import a_drive
from webapp.tests.factories.runs import a_run
from webapp.tests.factories.schedules import a_schedule
from worker.contract.workload import Pattern

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("broker")]
YEAR, MINUTE = timedelta(days=366), timedelta(minutes=1)


@pytest.fixture
def ahead() -> Iterator[time_machine.Traveller]:
    with time_machine.travel(timezone.now() + YEAR) as traveller:
        yield traveller


def set_back(ahead: time_machine.Traveller) -> None:
    ahead.move_to(timezone.now() - YEAR)


def heard(host: Host) -> None:
    host.refresh_from_db()
    note_heard(host=host, spool_bytes=0)


def test_a_host_that_is_heard_is_noted_at_once(
    ahead: time_machine.Traveller,
    drives: list[Target],  # noqa: F811 - fixture
) -> None:
    host = drives[0].host
    heard(host)
    set_back(ahead)
    heard(host)
    host.refresh_from_db()
    assert host.last_seen_at
    assert timezone.now() - MINUTE < host.last_seen_at <= timezone.now()


def test_a_silent_host_goes_offline_and_another_session_may_have_it(
    ahead: time_machine.Traveller,
    drives: list[Target],  # noqa: F811 - fixture
) -> None:
    host = drives[0].host
    claim_session(host=host, session="one", earlier=())
    set_back(ahead)
    keep_broker()
    ahead.shift(HEARD_WITHIN + MINUTE)
    assert not idle_hosts().filter(pk=host.pk).exists()
    host.refresh_from_db()
    claim_session(host=host, session="two", earlier=())
    assert Host.objects.get(pk=host.pk).session == "two"


def test_a_second_worker_of_then_keeps_no_host_from_trials(
    ahead: time_machine.Traveller,
    drives: list[Target],  # noqa: F811 - fixture
) -> None:
    Host.objects.filter(pk=drives[0].host_id).update(second_worker_at=timezone.now())
    set_back(ahead)
    keep_broker()
    assert active(started(drives[0])) == 1


def test_an_enrolment_token_of_then_is_not_valid_for_a_year(ahead: time_machine.Traveller) -> None:
    EnrolmentToken.objects.create(token_hash="0", expires_at=timezone.now() + timedelta(hours=1))
    set_back(ahead)
    keep_broker()
    assert EnrolmentToken.objects.get().expires_at <= timezone.now()


def test_the_attempt_of_a_host_that_is_gone_is_lost_in_time(
    ahead: time_machine.Traveller,
    drives: list[Target],  # noqa: F811 - fixture
) -> None:
    started(drives[0])
    set_back(ahead)
    tick()
    attempt = Attempt.objects.get()
    assert attempt.lease_until <= new_lease()
    ahead.move_to(attempt.lease_until + MINUTE)
    tick()
    attempt.refresh_from_db()
    assert attempt.state == AttemptState.LOST


def test_an_order_of_then_is_sent_again(
    ahead: time_machine.Traveller,
    drives: list[Target],  # noqa: F811 - fixture
) -> None:
    started(drives[0])
    set_back(ahead)
    tick()
    assert to_publish_again() == [Attempt.objects.get()]


def test_the_pause_of_then_is_not_endless(
    ahead: time_machine.Traveller,
    drives: list[Target],  # noqa: F811 - fixture
) -> None:
    run = started(drives[0])
    pause_run(run=run, by=None)
    set_back(ahead)
    tick()
    run.refresh_from_db()
    assert run.paused_at is not None
    assert run.paused_at <= timezone.now()


@pytest.mark.parametrize("by_schedule", [False, True])
def test_only_an_end_that_a_person_chose_keeps_a_run_armed(ahead: time_machine.Traveller, *, by_schedule: bool) -> None:
    run = a_run(a_drive(destroy=True), pattern=Pattern.RANDWRITE, armed_serials=["S1"])
    if by_schedule:
        Occurrence.objects.create(schedule=a_schedule(), due_at=timezone.now(), run=run, state="started")
    set_back(ahead)
    correct_times_ahead()
    run.refresh_from_db()
    assert is_armed(run) is by_schedule
