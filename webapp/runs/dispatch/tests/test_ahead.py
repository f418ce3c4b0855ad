"""A run on several hosts that waits for one of them lets later runs use the others, if they end in time."""

from datetime import timedelta
from typing import Any

import msgspec
import pytest
from django.db import IntegrityError, transaction
from django.utils import timezone

from webapp.hosts.maintenance_windows import add_single_window, delete_window, open_window
from webapp.hosts.models import Host, Target
from webapp.plans.document import Order, Part
from webapp.runs.actions.run_actions import pause_run
from webapp.runs.dispatch.dispatcher import create_attempt, dispatch_host
from webapp.runs.dispatch.host_queues import Entry, queues
from webapp.runs.models import Attempt, AttemptKind, Run
from webapp.runs.services import start_run
from webapp.tests.factories.hosts import a_drive, a_host
from webapp.tests.factories.plans import DOCUMENT, a_version
from webapp.tests.factories.reports import ACCEPTED, DONE, RESULT, STARTED, sample, say

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("broker")]


@pytest.fixture
def drives() -> list[Target]:
    """One on each of three hosts."""
    return [a_drive(a_host(), slug="nvme0") for _ in range(3)]


def started(*targets: Target, runtime: str = "3s", **factors: Any) -> Run:
    """With one trial, on all targets at once if there are several."""
    at_once = {"hosts_at_once": str(len(targets))} if len(targets) > 1 else {}
    levels = {"pattern": "randread", "size": "64m"} | at_once | factors
    levels |= {} if "amount" in factors else {"runtime": runtime}
    parts = (Part(name="p", factors=levels),)
    document = msgspec.structs.replace(DOCUMENT, parts=parts, common={}, repeats=1, order=Order.LISTED, retries=1)
    return start_run(version=a_version(document), targets=targets, by=None, seed=1)


def active(run: Run) -> int:
    return Attempt.objects.filter(run=run, kind="trial", ended_at=None).count()


def end(run: Run) -> None:
    """Its trial, and the restoring of settings."""
    for kind, items in (("trial", (ACCEPTED, STARTED, sample(), RESULT, DONE)), ("close_run", (ACCEPTED, DONE))):
        for attempt in Attempt.objects.filter(run=run, kind=kind, ended_at=None):
            say(attempt.host, attempt, (1, items))


def entry(run: Run, target: Target) -> Entry:
    return next(
        entry for queue in queues() if queue.host.pk == target.host_id for entry in queue.entries if entry.run == run
    )


def test_a_short_run_starts_ahead_and_the_queue_says_so(drives: list[Target]) -> None:
    busy, wide = started(drives[1], runtime="10m"), started(*drives[:2])
    short = started(drives[0])
    assert [active(run) for run in (busy, wide, short)] == [1, 0, 1]
    assert entry(short, drives[0]).working
    assert entry(short, drives[0]).ahead_of == (wide.number,)
    assert entry(busy, drives[1]).ahead_of == ()
    waiting = entry(wide, drives[0])
    assert waiting.starts_at
    assert timedelta(minutes=9) < waiting.starts_at - timezone.now() < timedelta(minutes=11)
    end(short)
    end(busy)
    assert active(wide) == 2


def test_a_long_run_waits_and_the_queue_says_until_when(drives: list[Target]) -> None:
    busy, wide = started(drives[1], runtime="10m"), started(*drives[:2])
    long = started(drives[0], runtime="8m")  # with its margin it would end after 13 minutes
    dispatch_host(drives[0].host_id)
    assert [active(run) for run in (busy, wide, long)] == [1, 0, 0]
    first, later = entry(wide, drives[0]), entry(long, drives[0])
    assert first.ends_at
    assert later.starts_at
    assert later.starts_at >= first.ends_at
    assert later.ahead_of == ()


def test_nothing_starts_ahead_without_an_estimate(drives: list[Target]) -> None:
    busy, wide = started(drives[1], runtime="10m"), started(*drives[:2])
    unknown = started(drives[0], amount="64m")
    assert unknown.expected_most_s is None
    assert [active(run) for run in (busy, wide, unknown)] == [1, 0, 0]
    assert entry(unknown, drives[0]).starts_at


def test_nothing_starts_ahead_while_the_end_of_the_busy_host_is_unknown(drives: list[Target]) -> None:
    busy, wide = started(drives[1], amount="64m"), started(*drives[:2])
    short = started(drives[0])
    assert [active(run) for run in (busy, wide, short)] == [1, 0, 0]
    assert entry(wide, drives[0]).starts_at is None
    assert entry(short, drives[0]).starts_at is None


def test_a_run_that_is_late_delays_the_waiting_one_and_lets_no_other_one_ahead(drives: list[Target]) -> None:
    busy, wide = started(drives[1], runtime="10m"), started(*drives[:2])
    late = started(drives[0])
    end(busy)
    other = started(drives[1])
    for drive in drives:
        dispatch_host(drive.host_id)
    assert [active(run) for run in (wide, late, other)] == [0, 1, 0]
    end(late)
    assert [active(run) for run in (wide, other)] == [2, 0]
    end(wide)
    assert active(other) == 1


def test_a_window_of_a_busy_host_moves_the_run_that_waits_for_it(drives: list[Target]) -> None:
    """Meanwhile the other host has time for a longer run."""
    now = timezone.now()
    opens, closes = now + timedelta(minutes=5), now + timedelta(hours=1)
    add_single_window(host=drives[0].host, starts_at=opens, ends_at=closes, note="", by=None)
    busy, wide = started(drives[0], runtime="10m"), started(*drives[:2])
    long, middle = started(drives[1], runtime="2h"), started(drives[1], runtime="20m")
    assert [active(run) for run in (busy, wide, long, middle)] == [1, 0, 0, 1]
    starts_at = next(entry.starts_at for queue in queues() for entry in queue.entries if entry.run == wide)
    assert starts_at
    assert timedelta(minutes=64) < starts_at - now < timedelta(minutes=68)


def test_a_run_is_expected_when_the_open_window_of_its_host_closes(drives: list[Target]) -> None:
    busy, waiting, now = started(drives[0], runtime="10m"), started(drives[0]), timezone.now()
    add_single_window(host=drives[0].host, starts_at=now, ends_at=now + timedelta(minutes=30), note="", by=None)
    end(busy)
    (queue,) = queues()
    (entry,) = (entry for entry in queue.entries if entry.run == waiting)
    assert queue.trouble
    assert entry.starts_at
    assert entry.starts_at >= now + timedelta(minutes=30)


@pytest.mark.parametrize("offline", [False, True])
def test_a_run_that_waits_for_the_end_of_a_window_reserves_its_other_hosts(
    drives: list[Target], *, offline: bool
) -> None:
    busy, wide = started(drives[0], runtime="10m"), started(*drives[:2])
    now = timezone.now()
    closes = now + timedelta(minutes=30)
    window = add_single_window(host=drives[0].host, starts_at=now, ends_at=closes, note="", by=None)
    end(busy)
    if offline:
        Host.objects.filter(pk=drives[0].host_id).update(last_seen_at=now - timedelta(hours=1))
    long, short = started(drives[1], runtime="1h"), started(drives[1])
    assert [active(run) for run in (wide, long, short)] == [0, 0, 1]
    assert entry(short, drives[1]).ahead_of == (wide.number, long.number)
    end(short)
    assert active(started(drives[1], amount="64m")) == 0  # without an estimate
    waiting, later = entry(wide, drives[1]), entry(long, drives[1])
    assert waiting.starts_at
    assert waiting.ends_at
    assert closes <= waiting.starts_at < closes + timedelta(minutes=1)
    assert later.starts_at
    assert later.starts_at >= waiting.ends_at
    assert waiting.waits_for == f"{drives[0].host} is {open_window(drives[0].host_id)}"
    assert dispatch_host(drives[1].host_id) is None
    Host.objects.filter(pk=drives[0].host_id).update(last_seen_at=now)
    delete_window(window=window, by=None)
    assert dispatch_host(drives[1].host_id)
    assert active(wide) == 2


def test_a_run_before_it_in_the_queue_goes_on_during_the_window(drives: list[Target]) -> None:
    """Also if it has no estimate and has begun."""
    first, wide = started(drives[1], amount="64m", block_size="4k, 8k"), started(*drives[:2])
    now = timezone.now()
    add_single_window(host=drives[0].host, starts_at=now, ends_at=now + timedelta(hours=1), note="", by=None)
    attempt = Attempt.objects.get(run=first, ended_at=None)
    say(attempt.host, attempt, (1, (ACCEPTED, STARTED, sample(), RESULT, DONE)))
    assert [active(run) for run in (first, wide)] == [1, 0]


@pytest.mark.parametrize("trouble", ["paused", "offline"])
def test_a_run_that_waits_for_more_than_a_window_reserves_nothing(drives: list[Target], trouble: str) -> None:
    busy, wide = started(drives[0], runtime="10m"), started(*drives)
    now = timezone.now()
    add_single_window(host=drives[0].host, starts_at=now, ends_at=now + timedelta(hours=1), note="", by=None)
    end(busy)
    if trouble == "paused":
        pause_run(run=wide, by=None)
    else:
        Host.objects.filter(pk=drives[2].host_id).update(last_seen_at=now - timedelta(hours=1))
    assert active(started(drives[1], runtime="3h")) == 1


def test_two_runs_on_several_hosts_keep_their_order(drives: list[Target]) -> None:
    """The later one does not take the host that the first one waits with."""
    busy, first = started(drives[0], runtime="10m"), started(*drives[:2])
    second = started(*drives[1:], runtime="10m")
    dispatch_host(drives[2].host_id)
    assert [active(run) for run in (busy, first, second)] == [1, 0, 0]
    end(busy)
    assert [active(run) for run in (first, second)] == [2, 0]


def test_a_short_run_on_several_hosts_starts_ahead(drives: list[Target]) -> None:
    busy, first = started(drives[0], runtime="10m"), started(*drives[:2])
    second = started(*drives[1:])
    assert [active(run) for run in (busy, first, second)] == [1, 0, 2]


def test_the_hosts_of_a_run_on_several_hosts_are_alone_while_it_runs(drives: list[Target]) -> None:
    """Its first trial uses one host only; the other one stays idle."""
    wide = started(*drives[:2], runtime="10m", hosts_at_once="1, 2")
    short = started(drives[1])
    dispatch_host(drives[1].host_id)
    assert [active(run) for run in (wide, short)] == [1, 0]


def test_a_host_still_has_one_order_at_most(drives: list[Target]) -> None:
    started(drives[1], runtime="10m")
    started(*drives[:2])
    started(drives[0])
    with pytest.raises(IntegrityError), transaction.atomic():
        create_attempt(AttemptKind.INVENTORY, drives[0].host_id)
