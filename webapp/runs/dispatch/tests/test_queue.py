"""The order of the queue, and that hosts follow it."""

import pytest
from django.db import IntegrityError, transaction

from webapp.core.models import AuditEntry
from webapp.hosts.models import Target
from webapp.runs.actions.run_actions import move_in_queue
from webapp.runs.dispatch.dispatcher import dispatch_host
from webapp.runs.dispatch.queue import queued_runs
from webapp.runs.models import Attempt, Run, RunState
from webapp.runs.services import start_run
from webapp.tests.factories.hosts import a_target
from webapp.tests.factories.plans import a_version
from webapp.tests.factories.reports import ACCEPTED, DONE, run_to_the_end, say
from webapp.tests.factories.runs import a_run
from webapp.tests.refusals import refuses
from webapp.tests.threads import at_once

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("broker")]


@pytest.fixture
def target() -> Target:
    return a_target()


def queue(target: Target, count: int = 3) -> list[Run]:
    return [a_run(target, trials=1, queue_position=place) for place in range(1, count + 1)]


def numbers() -> list[int]:
    return list(queued_runs().values_list("number", flat=True))


def finish_all(target: Target) -> list[int]:
    """Play the worker until nothing is left; numbers of the runs whose trials came, in order."""
    dispatch_host(target.host_id)
    order = []
    for _ in range(20):
        attempt = Attempt.objects.filter(ended_at=None, host=target.host_id).select_related("run").first()
        if attempt is None:
            break
        if attempt.trial_id:
            assert attempt.run
            order.append(attempt.run.number)
            run_to_the_end(target.host, attempt)
        else:
            say(target.host, attempt, (1, (ACCEPTED, DONE)))
    return order


def test_hosts_take_runs_in_the_order_of_the_queue(target: Target) -> None:
    first, second, third = queue(target)
    move_in_queue(run=third, before=first, by=None)
    move_in_queue(run=second, after=first, by=None)
    assert numbers() == [3, 1, 2]
    assert finish_all(target) == [3, 1, 2]
    assert set(Run.objects.values_list("queue_position", flat=True)) == {None}


def test_a_run_that_has_begun_on_a_host_goes_on_there(target: Target) -> None:
    first = a_run(target, trials=2, queue_position=1)
    second = a_run(target, trials=1, queue_position=2)
    dispatch_host(target.host_id)
    move_in_queue(run=second, before=first, by=None)
    assert finish_all(target) == [1, 1, 2]


def test_moving_twice_is_moving_once(target: Target) -> None:
    first, _, third = queue(target)
    for _ in range(2):
        move_in_queue(run=third, before=first, by=None)
    move_in_queue(run=third, before=third, by=None)
    assert numbers() == [3, 1, 2]
    assert AuditEntry.objects.count() == 1


def test_a_run_that_has_ended_is_not_in_the_queue(target: Target) -> None:
    first, second, _ = queue(target)
    Run.objects.filter(pk=first.pk).update(state=RunState.DONE, queue_position=None)
    with refuses("not_waiting"):
        move_in_queue(run=second, before=first, by=None)
    with refuses("position_missing"):
        move_in_queue(run=second, by=None)
    assert numbers() == [2, 3]


def test_two_runs_never_share_a_place(target: Target) -> None:
    first, second, _ = queue(target)
    with pytest.raises(IntegrityError), transaction.atomic():
        Run.objects.filter(pk=first.pk).update(queue_position=second.queue_position)


def test_people_who_move_and_start_at_once_leave_an_order_without_twins(target: Target) -> None:
    first, second, third = queue(target)
    version = a_version()
    found = at_once(
        lambda: move_in_queue(run=third, before=first, by=None),
        lambda: move_in_queue(run=second, before=first, by=None),
        lambda: move_in_queue(run=first, after=third, by=None),
        *(lambda: start_run(version=version, targets=[target], by=None).number for _ in range(2)),
    )
    assert not [each for each in found if isinstance(each, Exception)]
    places = list(queued_runs().values_list("queue_position", flat=True))
    assert None not in places
    assert len(set(places)) == 5
    assert numbers()[3:] == [4, 5]


def test_runs_without_a_place_come_last_by_number(target: Target) -> None:
    a_run(target, trials=1)
    a_run(target, trials=1, queue_position=5)
    assert numbers() == [2, 1]
    assert finish_all(target) == [2, 1]
