"""What is due, who sends it, and when it is given up."""

import threading
import time
from datetime import timedelta
from http.server import BaseHTTPRequestHandler

import pytest
from django.utils import timezone

from webapp.notices import delivery, tasks
from webapp.notices.models import Failure, Notice
from webapp.notices.tests.receivers import Receiver, receiver
from webapp.tests.factories.notices import a_notice, a_subscription, an_event
from webapp.tests.factories.people import a_user
from webapp.tests.threads import at_once

pytestmark = pytest.mark.django_db

URL = "https://hooks.example/"


def tries_until_failed(notice: Notice, failure: Failure) -> list[float]:
    """Seconds from the event to each try, until it is given up."""
    found: list[float] = []
    for _ in range(50):
        notice.refresh_from_db()
        if notice.state == "failed":
            return found
        (taken,) = delivery.claim(notice.next_try_at)
        delivery.record_failure(taken, failure, notice.next_try_at)
        found.append((notice.next_try_at - notice.created_at).total_seconds())
    raise AssertionError("never given up")


def test_it_tries_less_and_less_often_for_a_day() -> None:
    notice = a_notice(URL)
    tries = tries_until_failed(notice, Failure("The receiver answered 500."))
    assert tries[:7] == [0, 10, 40, 160, 760, 4360, 15160]
    assert 20 * 3600 < tries[-1] <= 24 * 3600
    assert (notice.state, notice.tries, notice.last_error) == ("failed", len(tries), "The receiver answered 500.")


def test_it_tries_a_few_times_where_it_is_refused() -> None:
    assert tries_until_failed(a_notice(URL), Failure("The receiver answered 404.", refused=True)) == [0, 10, 40]


def test_it_takes_back_what_a_task_that_died_had_claimed() -> None:
    notice, now = a_notice(URL), timezone.now()
    (first,) = delivery.claim(now)
    assert delivery.claim(now) == []
    later = now + delivery.CLAIM_FOR + timedelta(seconds=1)
    (second,) = delivery.claim(later)
    delivery.record_failure(first, Failure("late"), later)  # it was not dead, only slow
    notice.refresh_from_db()
    assert (notice.tries, notice.claim) == (0, second.claim)
    delivery.record_sent(second, later)
    notice.refresh_from_db()
    assert notice.state == "sent"


def test_it_leaves_what_a_task_that_read_the_clock_later_has_claimed_or_put_off() -> None:
    a_notice(URL)
    earlier = timezone.now()
    later = earlier + timedelta(seconds=1)
    (notice,) = delivery.claim(later)
    assert delivery.claim(earlier) == []
    notice.tries = len(delivery.BACKOFF_S)  # the next wait is the longest
    delivery.record_failure(notice, Failure("The receiver answered 500."), later)
    assert delivery.claim(earlier) == []


@pytest.mark.parametrize("field", ["next_try_at", "claimed_until"])
def test_it_sends_what_a_clock_that_was_ahead_has_put_off(field: str) -> None:
    notice, now = a_notice(URL), timezone.now()
    delivery.claim(now)
    Notice.objects.update(claimed_until=now - timedelta(seconds=1))
    Notice.objects.update(**{field: now + timedelta(days=366)})
    assert delivery.claim(now) == [notice]


def test_it_takes_first_tries_first_and_a_few_of_each_person() -> None:
    busy, quiet = a_user(), a_user()
    for number in range(delivery.MAX_PER_PERSON + 5):
        a_notice(f"{URL}{number}", user=busy)
    Notice.objects.update(tries=2)
    hers = a_notice(URL, user=quiet)
    taken = delivery.claim(timezone.now())
    assert taken[0] == hers
    assert len(taken) == delivery.MAX_PER_PERSON + 1


def test_it_sends_nothing_to_who_left_or_paused_after_the_event() -> None:
    left, paused = a_notice(URL), a_notice(f"{URL}2")
    left.subscription.user.is_active = False
    left.subscription.user.save()
    type(paused.subscription).objects.filter(pk=paused.subscription_id).update(paused_at=timezone.now())
    assert delivery.claim(timezone.now()) == []
    delivery.drop_unwanted(timezone.now())
    errors = {notice.state: notice.last_error for notice in Notice.objects.filter(pk=left.pk)}
    assert errors == {"failed": delivery.ACCOUNT_OFF}
    paused.refresh_from_db()
    assert (paused.state, paused.last_error) == ("failed", delivery.PAUSED)


def test_it_forgets_deliveries_after_a_month_but_none_that_waits() -> None:
    sent, waiting, new = a_notice(URL), a_notice(f"{URL}2"), a_notice(f"{URL}3")
    old = timezone.now() - delivery.KEPT_FOR - timedelta(seconds=1)
    Notice.objects.filter(pk__in=[sent.pk, waiting.pk]).update(created_at=old)
    Notice.objects.filter(pk__in=[sent.pk, new.pk]).update(state="sent")
    delivery.forget_old(timezone.now())
    assert set(Notice.objects.all()) == {waiting, new}


@pytest.mark.django_db(transaction=True)
def test_two_that_send_at_once_send_each_notice_once(hook: Receiver) -> None:
    for number in range(6):
        a_notice(f"{hook.url}&n={number}")
    total, now = Notice.objects.count(), timezone.now()
    tried = at_once(*(lambda: delivery.send_due(now) for _ in range(3)))
    assert sum(tried) == total  # type: ignore[arg-type]
    assert len({request.headers["Sweetspot-Delivery"] for request in hook.requests}) == len(hook.requests) == total
    assert set(Notice.objects.values_list("state", flat=True)) == {"sent"}


@pytest.mark.django_db(transaction=True)
def test_two_ticks_at_once_send_each_notice_once(hook: Receiver) -> None:
    for number in range(3):
        a_notice(f"{hook.url}&n={number}")
    assert at_once(tasks.tick.run, tasks.tick.run) == [None, None]
    assert len({request.headers["Sweetspot-Delivery"] for request in hook.requests}) == len(hook.requests)
    tasks.tick()
    assert set(Notice.objects.values_list("state", flat=True)) == {"sent"}


@pytest.mark.django_db(transaction=True)
def test_a_slow_receiver_holds_up_its_owner_only(hook: Receiver, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also with more slow receivers than a batch has notices of one person."""
    monkeypatch.setattr(delivery, "WAIT_S", 0.5)
    go_on = threading.Event()

    def slow(handler: BaseHTTPRequestHandler) -> None:
        go_on.wait(20)
        handler.send_response(204)
        handler.end_headers()

    owner, other = a_user(), a_user()
    with receiver() as quick:
        hook.answers = [slow] * 40
        for number in range(20):
            a_notice(f"{hook.url}&n={number}", user=owner)
        try:
            assert delivery.send_due(timezone.now()) == 0
            fine = a_notice(quick.url, user=other)
            assert delivery.send_due(timezone.now()) == 1
            fine.refresh_from_db()
            assert fine.state == "sent"
            assert Notice.objects.filter(claim__isnull=False).count() == delivery.MAX_PER_PERSON
        finally:
            go_on.set()
        deadline = time.monotonic() + 30
        while Notice.objects.filter(state="pending").exists() and time.monotonic() < deadline:
            tasks.deliver()  # results come when the receiver answers
    assert not Notice.objects.filter(state="pending").exists()


def test_one_person_has_few_threads_and_shares_no_receiver_with_others() -> None:
    busy, other = a_user(), a_user()
    notices = [a_notice(f"https://h{number}.example/", user=busy) for number in range(7)]
    same = a_notice("https://h0.example/other", user=other)
    lanes = delivery._lanes([*notices, same])
    people = [{notice.subscription.user_id for group in lane for notice in group} for lane in lanes]
    assert people == [{busy.pk}, {busy.pk}, {other.pk}]


def test_a_receiver_that_is_down_is_tried_once_in_a_tick_and_delays_nobody(hook: Receiver) -> None:
    with receiver() as gone:
        pass
    user = a_user()
    for number in range(3):
        a_notice(f"{gone.url}&n={number}", user=user)
    fine = a_notice(hook.url, user=user)
    assert delivery.send_due(timezone.now()) == 2
    fine.refresh_from_db()
    assert fine.state == "sent"
    waiting = Notice.objects.filter(state="pending", claim=None).values_list("tries", flat=True)
    assert sorted(waiting) == [0, 0, 1]


def test_it_stops_beginning_when_its_time_is_up(hook: Receiver, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delivery, "START_LIMIT_S", 0.0)
    notice = a_notice(hook.url)
    assert delivery.send_due(timezone.now()) == 0
    notice.refresh_from_db()
    assert (notice.state, notice.tries, notice.claim) == ("pending", 0, None)


def test_an_error_of_ours_is_a_try_that_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_: Notice) -> None:
        raise KeyError("a bug")

    monkeypatch.setattr("webapp.notices.webhook.send", broken)
    notice = a_notice(URL)
    assert delivery.send_due(timezone.now()) == 1
    notice.refresh_from_db()
    assert (notice.state, notice.tries) == ("pending", 1)
    assert notice.last_error.startswith("Internal server error.")


def test_a_deleted_subscription_takes_its_notices_along() -> None:
    subscription = a_subscription(URL)
    an_event()
    subscription.delete()
    assert not Notice.objects.exists()
