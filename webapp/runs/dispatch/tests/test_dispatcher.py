"""Who gets which order, with the real broker: races, a broker that is away, an emptied Redis."""

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from celery.app.base import Celery
from django.utils import timezone
from pytest_django import Settings

from webapp.celery import app
from webapp.core.models import AuditEntry
from webapp.hosts.models import Host, HostState
from webapp.runs.actions.run_actions import arm_run, disarm_run
from webapp.runs.arming import arming_of
from webapp.runs.dispatch import orders
from webapp.runs.dispatch.dispatcher import dispatch_host, request_inventory
from webapp.runs.dispatch.leases import publish_again
from webapp.runs.dispatch.queue import HEARD_WITHIN_SECONDS, QueueState
from webapp.runs.models import (
    ACTIVE_ATTEMPT_STATES,
    Attempt,
    AttemptKind,
    Run,
    RunState,
    TargetLock,
    TrialState,
)
from webapp.runs.services import cancel_run
from webapp.runs.tasks import dispatch_all, tick
from webapp.tests.factories.attempts import make_overdue
from webapp.tests.factories.hosts import a_drive, a_host, a_target
from webapp.tests.factories.reports import ACCEPTED, DONE, queued_envelopes, queued_orders, run_to_the_end, say
from webapp.tests.factories.runs import a_run
from webapp.tests.threads import at_once
from worker.contract.orders import CloseRunOrder, InventoryOrder, TrialOrder, queue_name
from worker.contract.signing import seal
from worker.contract.workload import Pattern
from worker.orders import executor
from worker.recipes.fio import workload_of

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("broker")]


@contextmanager
def no_broker(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The same app with a broker at a port where nothing listens."""
    away = Celery("away", broker="redis://127.0.0.1:1/0", set_as_current=False)
    away.conf.update(app.conf.changes | {"broker_url": "redis://127.0.0.1:1/0"})
    with monkeypatch.context() as patched:
        patched.setattr(orders, "app", away)
        yield


def empty_queue(host: Host) -> None:
    with app.connection_for_read() as broker:
        broker.default_channel.client.delete(queue_name(str(host.id)))


def test_it_sends_the_trial_as_it_was_planned() -> None:
    target = a_drive()
    run = a_run(target, pattern=Pattern.RANDWRITE, armed_serials=[target.serial])
    attempt = dispatch_host(target.host_id)
    assert attempt
    (order,) = queued_orders(target.host)
    assert isinstance(order, TrialOrder)
    assert (order.run, order.trial) == (str(run.pk), str(attempt.trial_id))
    assert order.streams[0].target.serial == target.serial
    assert workload_of(order.streams[0]).pattern is Pattern.RANDWRITE
    assert [(request.name, request.value) for request in order.settings] == [("scheduler", "none")]
    assert order.arming
    assert (order.arming.serials, order.arming.by) == ((target.serial,), "system")
    assert order.total_limit_s >= 3 + 60
    attempt.refresh_from_db()
    assert attempt.published_at


def test_it_destroys_nothing_whose_arming_went_stale_before_the_run_began() -> None:
    target = a_drive()
    run = a_run(
        target, pattern=Pattern.RANDWRITE, armed_serials=[target.serial], armed_until=timezone.now() - timedelta(1)
    )
    assert dispatch_host(target.host_id) is None
    assert arming_of(run) is None
    arm_run(run=run, serials=[target.serial], by=None)
    (order,) = queued_orders(target.host)
    assert isinstance(order, TrialOrder)
    assert order.arming
    assert order.arming.serials == (target.serial,)
    assert order.arming.until > time.time() + 3000


def test_a_disarmed_run_sends_nothing_that_destroys() -> None:
    target = a_drive()
    run = a_run(target, pattern=Pattern.RANDWRITE, armed_serials=[target.serial])
    assert disarm_run(run=run, by=None)
    assert not disarm_run(run=run, by=None)
    assert dispatch_host(target.host_id) is None
    assert AuditEntry.objects.get(action="run.disarm").detail == {"serials": [target.serial]}
    arm_run(run=run, serials=[target.serial, "and more"], by=None)
    assert run.armed_serials == [target.serial]
    assert queued_orders(target.host)


def test_an_order_that_is_sent_again_after_disarming_destroys_nothing() -> None:
    target = a_drive()
    run = a_run(target, pattern=Pattern.RANDWRITE, armed_serials=[target.serial])
    attempt = dispatch_host(target.host_id)
    assert attempt
    queued_orders(target.host)
    run.refresh_from_db()
    disarm_run(run=run, by=None)
    order = orders.order_for(Attempt.objects.get(pk=attempt.pk))
    assert isinstance(order, TrialOrder)
    assert order.arming is None


def test_it_signs_orders_that_expire(settings: Settings) -> None:
    target = a_target()
    a_run(target)
    dispatch_host(target.host_id)
    (order,) = queued_orders(target.host)
    late = executor.problem(order, now=time.time() + settings.ORDER_EXPIRES_SECONDS + 5, newest=0.0)
    assert late is not None
    assert late[0] == "order_expired"


def test_it_gives_a_busy_host_nothing() -> None:
    target = a_target()
    a_run(target)
    assert dispatch_host(target.host_id)
    assert dispatch_host(target.host_id) is None
    assert len(queued_envelopes(target.host)) == 1


@pytest.mark.parametrize(
    "changes",
    [
        {"state": HostState.MAINTENANCE},
        {"state": HostState.REVOKED},
        {"last_seen_at": None},
        {"last_seen_at": timezone.now() - timedelta(seconds=HEARD_WITHIN_SECONDS + 5)},
    ],
)
def test_it_gives_nothing_to_a_host_that_is_not_there(changes: dict[str, Any]) -> None:
    target = a_target(a_host(**changes))
    a_run(target)
    assert dispatch_host(target.host_id) is None
    assert not Attempt.objects.exists()


def test_it_lets_one_of_two_dispatchers_win(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("DEBUG", "webapp.runs.dispatch.dispatcher")
    target = a_target()
    a_run(target, trials=3)
    for _ in range(5):
        found = at_once(*[lambda: dispatch_host(target.host_id)] * 4)
        assert sum(isinstance(one, Attempt) for one in found) == 1, found
        assert sum(one is None for one in found) == 3, found
        Attempt.objects.all().delete()
        target.trials.update(state=TrialState.PLANNED, attempts_left=2)
    assert "somebody else was first" not in caplog.text, "the database had to refuse it"


def test_it_never_uses_a_drive_from_two_hosts_at_once() -> None:
    shared = "eui.shared"
    targets = [a_drive(lock_keys=[shared], serial="S", stable_id=shared) for _ in range(2)]
    a_run(*targets, trials=4, pattern=Pattern.RANDREAD)
    seen = []
    for _ in range(12):
        at_once(*[lambda host_id=target.host_id: dispatch_host(host_id) for target in targets])
        active = list(Attempt.objects.filter(state__in=ACTIVE_ATTEMPT_STATES, kind=AttemptKind.TRIAL))
        assert len(active) <= 1
        for attempt in active:
            seen.append(attempt.host_id)
            run_to_the_end(attempt.host, attempt)
        for close in Attempt.objects.filter(state__in=ACTIVE_ATTEMPT_STATES, kind=AttemptKind.CLOSE_RUN):
            say(close.host, close, (1, (ACCEPTED, DONE)))
    assert set(seen) == {target.host_id for target in targets}
    assert targets[0].trials.get(index=0).run.state == RunState.DONE


def test_an_array_and_a_member_of_it_are_not_used_at_once() -> None:
    array, member = a_drive(lock_keys=["wwn-1", "wwn-2"]), a_drive(lock_keys=["wwn-2"])
    a_run(array, member, trials=1)
    first = dispatch_host(array.host_id)
    assert first
    assert set(TargetLock.objects.values_list("lock_key", flat=True)) == {"wwn-1", "wwn-2"}
    assert dispatch_host(member.host_id) is None
    run_to_the_end(array.host, first)
    assert dispatch_host(member.host_id)


def test_it_runs_hosts_side_by_side_and_closes_each() -> None:
    targets = [a_target(), a_target()]
    run = a_run(*targets, trials=1)
    dispatch_all()
    assert Attempt.objects.filter(state__in=ACTIVE_ATTEMPT_STATES).count() == 2
    for number, target in enumerate(targets):
        run_to_the_end(target.host, Attempt.objects.get(host=target.host, kind=AttemptKind.TRIAL))
        say(target.host, Attempt.objects.get(host=target.host, kind=AttemptKind.CLOSE_RUN), (1, (ACCEPTED, DONE)))
        run.refresh_from_db()
        assert run.state == (RunState.DONE if number else RunState.RUNNING)


def test_it_puts_settings_back_before_the_next_run() -> None:
    target = a_target()
    first, second = a_run(target, trials=1), a_run(target, trials=1)
    attempt = dispatch_host(target.host_id)
    assert attempt
    assert attempt.run == first
    run_to_the_end(target.host, attempt)
    close = Attempt.objects.latest("created_at")
    assert (close.kind, close.run) == (AttemptKind.CLOSE_RUN, first)
    say(target.host, close, (1, (ACCEPTED, DONE)))
    assert Attempt.objects.latest("created_at").run == second
    assert isinstance(queued_orders(target.host)[1], CloseRunOrder)


@pytest.mark.parametrize("hosts", [1, 2], ids=["host by host", "hosts at once"])
def test_it_restores_settings_once_after_the_clock_was_set_back(hosts: int) -> None:
    targets = [a_target() for _ in range(hosts)]
    run = a_run(*targets, trials=1)
    Run.objects.filter(pk=run.pk).update(one_at_a_time=hosts > 1)
    for _ in range(hosts):
        dispatch_all()
        trial = Attempt.objects.get(kind=AttemptKind.TRIAL, state__in=ACTIVE_ATTEMPT_STATES)
        Attempt.objects.filter(pk=trial.pk).update(created_at=timezone.now() + timedelta(hours=1))
        run_to_the_end(trial.host, trial)
    closing = Attempt.objects.filter(kind=AttemptKind.CLOSE_RUN, state__in=ACTIVE_ATTEMPT_STATES)
    for _ in range(hosts):
        for close in closing.select_related("host"):
            say(close.host, close, (1, (ACCEPTED, DONE)))
        dispatch_all()
    run.refresh_from_db()
    assert run.state == RunState.DONE
    assert Attempt.objects.filter(kind=AttemptKind.CLOSE_RUN).count() == hosts
    assert QueueState().holding == set()


def test_it_sends_again_after_the_broker_was_away(monkeypatch: pytest.MonkeyPatch) -> None:
    target = a_target()
    a_run(target)
    with no_broker(monkeypatch):
        before = time.monotonic()
        attempt = dispatch_host(target.host_id)
        assert time.monotonic() - before < 5
        assert attempt
        attempt.refresh_from_db()
        assert attempt.published_at is None
        publish_again()
    assert queued_envelopes(target.host) == []
    tick()
    (order,) = queued_orders(target.host)
    assert order.attempt == str(attempt.pk)


def test_it_sends_again_after_redis_was_emptied() -> None:
    target = a_target()
    a_run(target)
    attempt = dispatch_host(target.host_id)
    assert attempt
    (first,) = queued_envelopes(target.host)
    empty_queue(target.host)
    assert publish_again() == 0  # not overdue yet
    make_overdue(attempt)
    assert publish_again() == 1
    (again,) = queued_envelopes(target.host)
    assert again != first
    assert queued_orders(target.host)[0].attempt == str(attempt.pk)
    assert Attempt.objects.count() == 1


def test_it_does_not_pile_up_orders_for_a_host_that_is_away() -> None:
    target = a_target()
    a_run(target)
    attempt = dispatch_host(target.host_id)
    assert attempt
    make_overdue(attempt)
    assert publish_again() == 0
    assert len(queued_envelopes(target.host)) == 1


def test_it_does_not_send_accepted_or_cancelled_orders_again() -> None:
    target = a_target()
    run = a_run(target)
    attempt = dispatch_host(target.host_id)
    assert attempt
    empty_queue(target.host)
    make_overdue(attempt)
    cancel_run(run=run, by=None)
    assert publish_again() == 0
    say(target.host, attempt, (1, (ACCEPTED,)))
    assert publish_again() == 0


def test_it_asks_an_idle_host_to_look_again() -> None:
    host: Host = a_host()
    attempt = request_inventory(host.pk)
    assert attempt
    (order,) = queued_orders(host)
    assert isinstance(order, InventoryOrder)
    assert request_inventory(host.pk) is None
    say(host, attempt, (1, (ACCEPTED, DONE)))
    attempt.refresh_from_db()
    assert attempt.state == "done"


def test_it_releases_the_drive_when_a_trial_ends() -> None:
    target = a_target()
    a_run(target, trials=1)
    attempt = dispatch_host(target.host_id)
    assert attempt
    assert [TargetLock.objects.get().lock_key] == target.lock_keys
    run_to_the_end(target.host, attempt)
    assert not TargetLock.objects.exists()
    assert isinstance(attempt.pk, UUID)


def test_it_orders_in_the_version_that_the_host_agreed_to() -> None:
    target = a_target()
    a_run(target)
    dispatch_host(target.host_id)
    attempt = Attempt.objects.select_related("host").get()
    assert orders.order_for(attempt).version == 2
    attempt.host.contract = 3
    order = orders.order_for(attempt)
    assert (order.version, json.loads(seal(order, bytes(32)))["version"]) == (3, 3)
