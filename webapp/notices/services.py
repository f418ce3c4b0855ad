"""Lists notices and subscriptions; queues notices: `announce` for events, test notices, and a notice that a person
sends again."""

from __future__ import annotations

import uuid
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, TypedDict
from urllib.parse import urlsplit

from django.conf import settings
from django.db import IntegrityError, transaction
from django.db.models import CharField, DateTimeField, OuterRef, Q, QuerySet, Subquery
from django.dispatch import receiver
from django.utils import timezone

from webapp.core.errors import Refusal
from webapp.core.models import User
from webapp.core.people import anonymised
from webapp.core.services import audit
from webapp.notices import mail
from webapp.notices.models import TEST, Channel, Event, Notice, NoticeState, Subscription
from webapp.notices.webhook import new_secret, read_url, resolve, sealed
from webapp.plans.models import Plan

if TYPE_CHECKING:
    from django_stubs_ext import WithAnnotations

# Selectors of subscriptions and notices.


class LastDelivery(TypedDict):
    last_state: str | None
    last_at: object


def subscriptions_of(user: User) -> QuerySet[WithAnnotations[Subscription, LastDelivery]]:
    """A person's subscriptions, oldest first, with `last_state` and `last_at` of the newest notice."""
    newest = Notice.objects.filter(subscription=OuterRef("pk")).order_by("-created_at")
    return (
        Subscription.objects.filter(user=user)
        .select_related("plan", "user")
        .annotate(
            last_state=Subquery(newest.values("state")[:1], output_field=CharField(null=True)),
            last_at=Subquery(newest.values("created_at")[:1], output_field=DateTimeField(null=True)),
        )
        .order_by("pk")
    )


def deliveries_of(user: User) -> QuerySet[Notice]:
    """Notices to one person, newest first."""
    notices = Notice.objects.filter(subscription__user=user)
    return notices.select_related("subscription__plan", "subscription__user").order_by("-created_at", "id")


def subscribers(event: Event, plan: Plan | None) -> QuerySet[Subscription]:
    """Subscriptions to an event of a plan that are not paused and whose owner's account is enabled.

    An event without a plan belongs to the subscriptions to every plan.
    """
    about_it = Q(plan=None) | Q(plan=plan) if plan else Q(plan=None)
    subscriptions = Subscription.objects.filter(
        about_it, events__contains=[event.value], paused_at=None, user__is_active=True
    )
    return subscriptions.order_by("pk")


# Services for subscriptions.

MAX_SUBSCRIPTIONS = 50  # of one person
_URL_OF_EMAIL = "An e-mail goes to the address on your page Account. Leave url empty."


def create_subscription(
    *, user: User, channel: Channel, plan: Plan | None, events: Collection[Event], url: str = ""
) -> tuple[Subscription, str]:
    """Create a subscription; return it with the secret of a webhook. Raises Refusal."""
    if channel is Channel.WEBHOOK:
        resolve(read_url(url), owner=user.pk)  # outside the transaction: it asks the name server
    elif url:
        raise Refusal("subscription_refused", _URL_OF_EMAIL)
    elif not mail.is_set_up():
        raise Refusal("mail_not_set_up", mail.NOT_SET_UP)
    elif not user.email:
        raise Refusal("email_missing", mail.NO_ADDRESS)
    return _create(user, channel, url, plan, _ordered(events))


@transaction.atomic
def _create(user: User, channel: Channel, url: str, plan: Plan | None, events: list[str]) -> tuple[Subscription, str]:
    User.objects.select_for_update(no_key=True).get(pk=user.pk)  # keeps the limit while several are created at once
    if Subscription.objects.filter(user=user).count() >= MAX_SUBSCRIPTIONS:
        words = f"You have {MAX_SUBSCRIPTIONS} subscriptions, the most allowed. Delete one first."
        raise Refusal("too_many_subscriptions", words)
    secret = new_secret() if channel is Channel.WEBHOOK else ""
    made = Subscription(user=user, channel=channel, url=url, plan=plan, events=events)
    made.secret = sealed(secret) if secret else b""
    _save(made)
    audit(by=user, action="notice.subscribe", on=made, detail=_detail(made))
    return made, secret


def change_subscription(
    *, subscription: Subscription, plan: Plan | None, events: Collection[Event], url: str = ""
) -> None:
    """Change the plan, events and address; the channel and the secret stay. Raises Refusal."""
    if subscription.channel == Channel.EMAIL and url:
        raise Refusal("subscription_refused", _URL_OF_EMAIL)
    if url != subscription.url:
        resolve(read_url(url), owner=subscription.user_id)
    with transaction.atomic():
        subscription.plan, subscription.events, subscription.url = plan, _ordered(events), url
        _save(subscription, "plan", "events", "url")
        _audit(subscription, "notice.change")


@transaction.atomic
def pause_subscription(*, subscription: Subscription) -> bool:
    """Stop sending until the subscription is resumed. False if it was paused before."""
    if not Subscription.objects.filter(pk=subscription.pk, paused_at=None).update(paused_at=timezone.now()):
        return False
    _audit(subscription, "notice.pause")
    return True


@transaction.atomic
def resume_subscription(*, subscription: Subscription) -> bool:
    """Resume sending. Events during the pause are not sent. False if it was not paused."""
    if not Subscription.objects.filter(pk=subscription.pk, paused_at__isnull=False).update(paused_at=None):
        return False
    _audit(subscription, "notice.resume")
    return True


@transaction.atomic
def delete_subscription(*, subscription: Subscription) -> None:
    """Delete the subscription with its notices."""
    _audit(subscription, "notice.delete")
    subscription.delete()


@transaction.atomic
def renew_secret(*, subscription: Subscription) -> str:
    """Create a new secret, which replaces the old one at once. Raises Refusal for an e-mail subscription."""
    if subscription.channel != Channel.WEBHOOK:
        raise Refusal("subscription_refused", "Only webhooks have a secret.")
    secret = new_secret()
    Subscription.objects.filter(pk=subscription.pk).update(secret=sealed(secret))
    _audit(subscription, "notice.renew_secret")
    return secret


def _ordered(events: Collection[Event]) -> list[str]:
    """The events in the order of Event. Raises Refusal if there is none."""
    if not events:
        raise Refusal("events_missing", "Choose at least one event.")
    return [event.value for event in Event if event in events]


def _save(subscription: Subscription, *columns: str) -> None:
    """Raises Refusal if the person already has the same subscription."""
    try:
        with transaction.atomic():
            subscription.save(update_fields=columns or None)
    except IntegrityError as error:
        if "subscription_once" not in str(error):
            raise
        words = "You already have a subscription to the same plan and address. Change its events instead."
        raise Refusal("subscription_exists", words) from error


def _audit(subscription: Subscription, action: str) -> None:
    audit(by=subscription.user, action=action, on=subscription, detail=_detail(subscription))


def _detail(subscription: Subscription) -> dict[str, object]:
    """The subscription for the audit log, without the address: its path often contains a secret."""
    detail: dict[str, object] = {"events": list(subscription.events)}
    if subscription.url:
        detail["receiver"] = urlsplit(subscription.url).netloc
    return detail


GIVE_UP_AFTER = timedelta(hours=24)
MAX_SUBJECT = 200
TEST_SUBJECT = "Test notice from Sweetspot"


def announce(
    *, event: Event, plan: Plan | None, key: str, subject: str, text: str, path: str, detail: Mapping[str, object]
) -> int:
    """Queue a notice for every subscriber of the event; return their number. `plan` is None for an event of a host.

    Call it inside a transaction. Each `key` is queued once per subscription, so a repeated call is safe. `path` is a
    page of this server, e.g. /runs/17/. `detail` is plain JSON for webhooks; its `run` is the number of the run that
    the event is about.
    """
    message = _Message(event.value, key, subject, text, path, plan.slug if plan else None, detail)
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


@receiver(anonymised)
def delete_subscriptions(*, user: User, **_: Any) -> None:
    """A webhook's address can name its owner, and nothing is sent to a person who left."""
    Subscription.objects.filter(user=user).delete()
