"""Trials on several hosts: what is planned, claimed, started together, taken in and ended as a whole."""

from datetime import timedelta
from typing import Any

import msgspec
import pytest
from django.test import Client
from django.utils import timezone
from msgspec.structs import replace

from webapp.core.errors import Refusal
from webapp.hosts.models import Host, HostState, Target
from webapp.plans.document import Order, Part
from webapp.results.models import Result
from webapp.results.reading.rows import read_rows
from webapp.results.reading.trial_streams import trial_streams
from webapp.runs.dispatch.dispatcher import common_start, dispatch_host
from webapp.runs.dispatch.host_queues import queues
from webapp.runs.dispatch.leases import expire_leases
from webapp.runs.models import Attempt, Run, TargetLock, Trial
from webapp.runs.reasons import OTHER_HOST
from webapp.runs.services import cancel_run, start_run
from webapp.tests.factories.hosts import a_drive, a_host
from webapp.tests.factories.people import a_user
from webapp.tests.factories.plans import DOCUMENT, a_version
from webapp.tests.factories.reports import (
    ACCEPTED,
    CANCELLED,
    DONE,
    RESULT,
    STARTED,
    failed,
    queued_orders,
    sample,
    say,
)
from worker.contract.items import CommonStart, Item
from worker.contract.orders import TrialOrder
from worker.contract.reports import AttemptReply
from worker.contract.tests.examples import AT
from worker.contract.workload import FlushStep, PauseStep

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("broker")]


@pytest.fixture
def drives() -> list[Target]:
    """One on each of three hosts."""
    return [a_drive(a_host(), slug="nvme0") for _ in range(3)]


def started(targets: list[Target], hosts_at_once: str = "2", **changes: Any) -> Run:
    factors = {"pattern": "randread", "hosts_at_once": hosts_at_once} | changes
    document = msgspec.structs.replace(
        DOCUMENT, parts=(Part(name="p", factors=factors),), repeats=1, order=Order.LISTED, retries=1
    )
    return start_run(version=a_version(document), targets=targets, by=None, seed=1)


def active(run: Run) -> list[Attempt]:
    return list(Attempt.objects.filter(run=run, kind="trial", ended_at=None).order_by("created_at"))


def story(stream: int, *, ahead_s: float = 0.0) -> tuple[Item, ...]:
    """What a host reports until its result; its clock is ahead by so much."""
    result = replace(RESULT, stream=stream, began_at=AT + ahead_s + 0.004 * stream, started_at=AT + ahead_s)
    start = CommonStart(at=AT + ahead_s, start_at=AT, uncertainty_s=0.001 * (stream + 1))
    return ACCEPTED, start, replace(STARTED, stream=stream), sample(stream=stream), result


def end(attempt: Attempt, *items: Item) -> AttemptReply:
    return say(attempt.host, attempt, (1, items))


def trial_of(run: Run) -> Trial:
    return run.trials.get()


# ---- planned and claimed


def test_a_trial_uses_one_target_of_each_host(drives: list[Target]) -> None:
    run = started(drives, "1, 3")
    places = [trial.place for trial in run.trials.order_by("index")]
    assert places == [*map(str, drives), " + ".join(map(str, drives))]


def test_all_hosts_get_their_orders_together(drives: list[Target]) -> None:
    run = started(drives[:2])
    first, second = active(run)
    assert {first.host, second.host} == {drives[0].host, drives[1].host}
    assert first.number == second.number == 1
    for number, drive in enumerate(drives[:2]):
        (order,) = queued_orders(drive.host)
        assert isinstance(order, TrialOrder)
        assert [(stream.number, stream.target.id) for stream in order.streams] == [(number, "nvme0")]
        assert order.start_limit_s
    held = {key for drive in drives[:2] for key in drive.lock_keys}
    assert set(TargetLock.objects.values_list("lock_key", flat=True)) == held


def test_each_host_does_the_steps_and_waits_for_those_of_the_others(drives: list[Target]) -> None:
    started(drives[:2], before="once flush; pause 30s; pause 40s", size="1G")
    first, second = (queued_orders(drive.host)[0] for drive in drives[:2])
    assert isinstance(first, TrialOrder)
    assert isinstance(second, TrialOrder)
    assert first.steps == second.steps == (FlushStep(), PauseStep(seconds=30), PauseStep(seconds=40))
    assert (first.start_limit_s or 0) >= first.total_limit_s + 70
    assert first.streams[0].workload.seed != second.streams[0].workload.seed


def test_no_host_gets_an_order_while_one_is_busy(drives: list[Target]) -> None:
    alone = started(drives[1:2], "1")
    run = started(drives[:2])
    assert active(run) == []
    end(active(alone)[0], *story(0), DONE)
    closing = Attempt.objects.get(kind="close_run", run=alone)
    say(closing.host, closing, (1, (ACCEPTED, DONE)))
    assert len(active(run)) == 2


def test_trials_of_the_run_never_overlap(drives: list[Target]) -> None:
    """A host that is measured alone is alone."""
    run = started(drives, "1, 3")
    (only,) = active(run)
    for drive in drives:
        dispatch_host(drive.host_id)
    assert active(run) == [only]
    end(only, *story(0), DONE)
    assert [attempt.host for attempt in active(run)] == [drives[1].host]


def test_two_runs_do_not_wait_for_each_other(drives: list[Target]) -> None:
    """The second one does not take the host that the first one does not use now."""
    first, second = started(drives[:2], "1, 2"), started(drives[:2], "1, 2")
    dispatch_host(drives[1].host_id)
    assert (len(active(first)), len(active(second))) == (1, 0)
    end(active(first)[0], *story(0), DONE)
    assert (len(active(first)), len(active(second))) == (1, 0)
    (entry, waiting) = next(queue.entries for queue in queues() if queue.host == drives[1].host)
    assert (entry.run, waiting.run) == (first, second)
    assert waiting.waits_for == f"run {first.number} goes first"


def test_it_waits_while_a_host_takes_no_trials(drives: list[Target]) -> None:
    """The other host is free for other runs meanwhile."""
    Host.objects.filter(pk=drives[1].host_id).update(state=HostState.ACTIVE)
    busy = started(drives[1:2], "1")
    run = started(drives[:2])
    Host.objects.filter(pk=drives[1].host_id).update(state=HostState.MAINTENANCE)
    other = started(drives[:1], "1")
    assert len(active(busy)) == 1
    assert (len(active(run)), len(active(other))) == (0, 1)


# ---- the common start


def test_the_start_is_known_once_all_hosts_are_ready(drives: list[Target]) -> None:
    first, second = active(started(drives[:2]))
    assert common_start(host=first.host, attempt_id=first.pk) is None
    assert common_start(host=first.host, attempt_id=first.pk) is None
    start = common_start(host=second.host, attempt_id=second.pk)
    assert start
    assert start > timezone.now()
    assert common_start(host=first.host, attempt_id=first.pk) == start


def test_only_the_host_of_an_active_attempt_may_ask(drives: list[Target]) -> None:
    first, second = active(started(drives[:2]))
    with pytest.raises(Refusal, match="no such attempt"):
        common_start(host=second.host, attempt_id=first.pk)
    end(first, ACCEPTED, failed())
    with pytest.raises(Refusal, match="ended"):
        common_start(host=first.host, attempt_id=first.pk)


# ---- taken in


def test_its_result_is_the_sum_over_all_hosts(drives: list[Target]) -> None:
    run = started(drives[:2])
    first, second = active(run)
    end(second, *story(1, ahead_s=100), DONE)
    assert not Result.objects.exists()
    assert trial_of(run).state == "running"
    assert TargetLock.objects.exists()
    end(first, *story(0), DONE)
    trial = trial_of(run)
    assert trial.state == "done"
    assert not TargetLock.objects.exists()
    result = Result.objects.get()
    assert result.ios == 2 * RESULT.directions[0].ios
    (row,) = read_rows(Result.objects.all())
    assert row.target_name == f"{drives[0]} + {drives[1]}"
    table = trial_streams(trial, [row])
    assert table
    assert table.start
    assert [(each.stream, each.target) for each in table.figures] == [(0, str(drives[0])), (1, str(drives[1]))]
    assert table.start.skew_ms == pytest.approx(4, abs=0.01)  # although the second host's clock is 100 s ahead
    assert (table.start.hosts, table.start.uncertainty_ms, table.start.good) == (2, 2.0, True)
    client = Client()
    client.force_login(a_user())
    page = client.get(f"/runs/{run.number}/trials/1/").content.decode()
    assert "The hosts began within 4.0 ms" in page
    assert "2 hosts at once" in page
    told = client.get(f"/api/v1/trials/{trial.pk}").json()
    assert told["target"] == f"{drives[0]} + {drives[1]}"


@pytest.mark.parametrize("failing", [0, 1])
def test_one_failure_ends_the_trial_and_stops_the_other_host(drives: list[Target], failing: int) -> None:
    run = started(drives[:2])
    attempts = active(run)
    broken, other = attempts[failing], attempts[1 - failing]
    end(other, *story(1 - failing))
    end(broken, ACCEPTED, failed())
    assert trial_of(run).state == "running"
    assert say(other.host, other).cancel
    say(other.host, other, (2, (CANCELLED,)))
    trial = trial_of(run)
    assert (trial.state, trial.reason) == ("failed", f"{broken.host}: fio said no")
    other.refresh_from_db()
    assert (other.state, other.outcome_code) == ("cancelled", OTHER_HOST)
    assert not Result.objects.exists()
    assert not TargetLock.objects.exists()


def test_a_lost_host_plans_the_trial_again_as_a_whole(drives: list[Target]) -> None:
    run = started(drives[:2])
    lost, other = active(run)
    end(other, *story(1), DONE)
    Attempt.objects.filter(pk=lost.pk).update(lease_until=timezone.now() - timedelta(seconds=1))
    assert expire_leases() == 1
    reply = end(lost, *story(0), DONE)
    assert reply.refusal
    assert reply.refusal.code == "superseded"
    dispatch_host(lost.host_id)
    again = active(run)
    assert [attempt.number for attempt in again] == [2, 2]
    for attempt in again:
        end(attempt, *story(drives.index(attempt.host.targets.get())), DONE)
    assert trial_of(run).state == "done"
    ios = [2 * measured.ios for measured in RESULT.directions]  # without those of the first try
    assert list(Result.objects.order_by("id").values_list("ios", flat=True)) == ios


def test_an_order_that_no_host_accepted_does_not_keep_a_stopped_trial(drives: list[Target]) -> None:
    run = started(drives[:2])
    first, silent = active(run)
    end(first, ACCEPTED, failed())
    silent.refresh_from_db()
    assert silent.lease_until <= timezone.now() + timedelta(seconds=30)
    Attempt.objects.filter(pk=silent.pk).update(lease_until=timezone.now() - timedelta(seconds=1))
    expire_leases()
    assert (trial_of(run).state, trial_of(run).reason_code) == ("failed", "fio_error")


def test_a_cancelled_run_ends_on_all_hosts(drives: list[Target]) -> None:
    run = started(drives[:2])
    attempts = active(run)
    for attempt in attempts:
        end(attempt, ACCEPTED)
    cancel_run(run=run, by=a_user())
    for attempt in attempts:
        assert say(attempt.host, attempt).cancel
        say(attempt.host, attempt, (2, (CANCELLED,)))
    assert trial_of(run).state == "cancelled"
    for closing in Attempt.objects.filter(run=run, kind="close_run"):
        say(closing.host, closing, (1, (ACCEPTED, DONE)))
    run.refresh_from_db()
    assert run.state == "cancelled"


def test_both_ends_at_the_same_time_make_one_result(drives: list[Target]) -> None:
    from webapp.tests.threads import at_once

    run = started(drives[:2])
    first, second = active(run)
    replies = at_once(lambda: end(first, *story(0), DONE), lambda: end(second, *story(1), DONE))
    assert [reply.confirmed_seq for reply in replies] == [1, 1]  # type: ignore[attr-defined]
    assert trial_of(run).state == "done"
    assert Result.objects.count() == len(RESULT.directions)
