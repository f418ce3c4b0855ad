"""Who is told of what, once."""

import json

import pytest
from django.db import transaction
from django.utils import timezone

from webapp.core.models import AuditEntry, Role
from webapp.core.people import anonymise_user, deactivate_user, remove_user
from webapp.notices.models import Event, Notice, Subscription
from webapp.notices.services import send_again, send_test
from webapp.tests.factories.notices import a_notice, a_plan, a_subscription, an_event
from webapp.tests.factories.people import a_user
from webapp.tests.refusals import refuses

pytestmark = pytest.mark.django_db

URL = "https://hooks.example/"


def test_it_tells_those_of_this_plan_and_of_every_plan() -> None:
    plan, other = a_plan(), a_plan()
    of_all, of_it = a_subscription(), a_subscription(plan=plan)
    a_subscription(plan=other)
    assert an_event(plan=plan) == 2
    assert set(Notice.objects.values_list("subscription", flat=True)) == {of_all.pk, of_it.pk}


def test_it_tells_those_who_want_this_event() -> None:
    late = a_subscription(events=[Event.LATE, Event.MISSED])
    a_subscription(events=[Event.ENDED, Event.FAILED])
    assert an_event(event=Event.LATE) == 1
    assert Notice.objects.get().subscription == late


def test_it_tells_nobody_who_is_paused_switched_off_or_gone() -> None:
    admin = a_user(role=Role.ADMIN)
    a_subscription(paused_at=timezone.now())
    off, left = a_subscription(), a_subscription()
    deactivate_user(user=off.user, by=admin)
    remove_user(user=left.user, by=admin)
    assert an_event() == 0


def test_it_deletes_the_subscriptions_of_who_wants_to_be_forgotten() -> None:
    admin = a_user(role=Role.ADMIN)
    left, other = a_subscription(URL), a_subscription(URL)
    remove_user(user=left.user, by=admin)
    anonymise_user(user=left.user, by=admin)
    assert list(Subscription.objects.all()) == [other]


def test_it_queues_the_same_occurrence_once() -> None:
    plan = a_plan()
    a_subscription()
    assert an_event("run:17:ended", plan=plan) == 1
    assert an_event("run:17:ended", plan=plan) == 0
    a_subscription()
    assert an_event("run:17:ended", plan=plan) == 1
    assert an_event("run:18:ended", plan=plan) == 2


def test_it_queues_nothing_where_the_event_is_rolled_back() -> None:
    a_subscription()
    with transaction.atomic():
        an_event()
        transaction.set_rollback(True)
    assert not Notice.objects.exists()


def test_it_freezes_what_is_said() -> None:
    subscription = a_subscription(URL)
    an_event(subject="x" * 300)
    notice = Notice.objects.get()
    assert len(notice.subject) == 200
    payload = json.loads(json.dumps(notice.payload))
    assert payload["id"] == str(notice.pk)
    assert payload["detail"] == {"run": 17}
    assert notice.subscription == subscription


def test_a_test_notice_waits_for_the_one_before() -> None:
    subscription = a_subscription(URL)
    send_test(subscription=subscription)
    notice = Notice.objects.get()
    assert (notice.event, notice.payload["plan"], notice.payload["run"]) == ("test", None, None)
    with refuses("test_pending"):
        send_test(subscription=subscription)
    Notice.objects.update(state="sent")
    send_test(subscription=subscription)
    subscription.paused_at = timezone.now()
    with refuses("subscription_paused"):
        send_test(subscription=subscription)


def test_it_sends_again_what_failed_and_nothing_that_was_sent() -> None:
    notice = a_notice(URL)
    Notice.objects.filter(pk=notice.pk).update(state="failed", tries=9, give_up_at=timezone.now())
    assert send_again(notice=notice)
    notice.refresh_from_db()
    assert (notice.state, notice.tries) == ("pending", 0)
    assert notice.give_up_at > timezone.now()
    assert AuditEntry.objects.filter(action="notice.send_again", actor=notice.subscription.user).count() == 1
    Notice.objects.filter(pk=notice.pk).update(state="sent")
    assert not send_again(notice=notice)
