"""Queues notices: `announce` for events, test notices, and a notice that a person sends again."""

import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.conf import settings
from django.db import transaction
from django.db.models import Q
from django.utils import timezone

from webapp.core.errors import Refusal
from webapp.core.services import audit
from webapp.notices.models import TEST, Event, Notice, NoticeState, Subscription
from webapp.notices.selectors import subscribers
from webapp.plans.models import Plan

GIVE_UP_AFTER = timedelta(hours=24)
MAX_SUBJECT = 200
TEST_SUBJECT = "Test notice from Sweetspot"


def announce(
    *, event: Event, plan: Plan, key: str, subject: str, text: str, path: str, detail: Mapping[str, object]
) -> int:
    """Queue a notice for every subscriber of the event; return their number.

    Call it inside a transaction. Each `key` is queued once per subscription, so a repeated call is safe. `path` is a
    page of this server, e.g. /runs/17/. `detail` is plain JSON for webhooks; its `run` is the number of the run that
    the event is about.
    """
    message = _Message(event.value, key, subject, text, path, plan.slug, detail)
    return _queue(subscribers(event, plan), message)


@transaction.atomic
def send_test(*, subscription: Subscription) -> None:
    """Queue a test notice. Raises Refusal if the subscription is paused or a test notice is pending."""
    if subscription.paused_at:
        raise Refusal("subscription_paused", "The subscription is paused. Resume it first.")
    if subscription.notices.filter(event=TEST, state=NoticeState.PENDING).exists():
        raise Refusal("test_pending", "A test notice is pending. Wait until it is sent, or delete the subscription.")
    plan = subscription.plan.slug if subscription.plan else None
    text = "This is a test notice. Notices about runs will arrive the same way."
    _queue([subscription], _Message(TEST, f"test:{uuid.uuid4()}", TEST_SUBJECT, text, "/notices/", plan, {}))
    audit(by=subscription.user, action="notice.test", on=subscription)


@transaction.atomic
def send_again(*, notice: Notice) -> bool:
    """Try the notice again with the next tick, for up to a day. False if it was sent before."""
    now = timezone.now()
    idle = Q(state=NoticeState.FAILED) | Q(state=NoticeState.PENDING, claim=None)
    changes = {"state": NoticeState.PENDING, "tries": 0, "next_try_at": now, "give_up_at": now + GIVE_UP_AFTER}
    if not Notice.objects.filter(idle, pk=notice.pk).update(**changes):
        return False
    subscription = notice.subscription
    audit(by=subscription.user, action="notice.send_again", on=subscription, detail={"notice": notice.subject})
    return True


@dataclass(frozen=True)
class _Message:
    """The content for all subscribers."""

    event: str
    key: str
    subject: str
    text: str
    path: str
    plan: str | None  # its slug
    detail: Mapping[str, object]


def _queue(subscriptions: Iterable[Subscription], message: _Message) -> int:
    now = timezone.now()
    notices = [_notice(subscription, message, now) for subscription in subscriptions]
    Notice.objects.bulk_create(notices, ignore_conflicts=True)
    return Notice.objects.filter(pk__in=[notice.pk for notice in notices]).count()


def _notice(subscription: Subscription, message: _Message, now: datetime) -> Notice:
    made, subject = uuid.uuid4(), _one_line(message.subject)
    return Notice(
        id=made,
        subscription=subscription,
        event=message.event,
        dedupe=message.key,
        subject=subject,
        text=message.text,
        payload={
            "id": str(made),
            "event": message.event,
            "at": now.isoformat(),
            "plan": message.plan,
            "run": message.detail.get("run"),
            "subject": subject,
            "text": message.text,
            "url": f"{settings.PUBLIC_URL}{message.path}",
            "detail": dict(message.detail),
        },
        next_try_at=now,
        give_up_at=now + GIVE_UP_AFTER,
        created_at=now,
    )


def _one_line(text: str) -> str:
    """The text without characters that a header must not contain."""
    return " ".join("".join(sign if sign.isprintable() else " " for sign in text).split())[:MAX_SUBJECT]
