"""Writes of subscriptions."""

from collections.abc import Collection
from urllib.parse import urlsplit

from django.db import IntegrityError, transaction
from django.utils import timezone

from webapp.core.errors import Refusal
from webapp.core.models import User
from webapp.core.services import audit
from webapp.notices import mail
from webapp.notices.addresses import read_url, resolve
from webapp.notices.models import Channel, Event, Subscription
from webapp.notices.signing import new_secret, sealed
from webapp.plans.models import Plan

MAX_SUBSCRIPTIONS = 50  # of one person
_URL_OF_EMAIL = "An e-mail goes to the address on your page Account. Leave url empty."


def create_subscription(
    *, user: User, channel: Channel, plan: Plan | None, events: Collection[Event], url: str = ""
) -> tuple[Subscription, str]:
    """A subscription and, of a webhook, its secret. Raises Refusal in words."""
    if channel is Channel.WEBHOOK:
        resolve(read_url(url))  # outside the transaction: it asks the name server
    elif url:
        raise Refusal("subscription_refused", _URL_OF_EMAIL)
    elif not mail.is_set_up():
        raise Refusal("mail_not_set_up", mail.NOT_SET_UP)
    elif not user.email:
        raise Refusal("email_missing", mail.NO_ADDRESS)
    return _create(user, channel, url, plan, _ordered(events))


@transaction.atomic
def _create(user: User, channel: Channel, url: str, plan: Plan | None, events: list[str]) -> tuple[Subscription, str]:
    User.objects.select_for_update(no_key=True).get(pk=user.pk)  # counts stay true while several are made at once
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
    """Raises Refusal in words. The channel and the secret stay."""
    if subscription.channel == Channel.EMAIL and url:
        raise Refusal("subscription_refused", _URL_OF_EMAIL)
    if url != subscription.url:
        resolve(read_url(url))
    with transaction.atomic():
        subscription.plan, subscription.events, subscription.url = plan, _ordered(events), url
        _save(subscription, "plan", "events", "url")
        _audit(subscription, "notice.change")


@transaction.atomic
def pause_subscription(*, subscription: Subscription) -> bool:
    """Nothing is sent until it is resumed; whether this call did it."""
    if not Subscription.objects.filter(pk=subscription.pk, paused_at=None).update(paused_at=timezone.now()):
        return False
    _audit(subscription, "notice.pause")
    return True


@transaction.atomic
def resume_subscription(*, subscription: Subscription) -> bool:
    """What happened in the pause is not sent afterwards; whether this call did it."""
    if not Subscription.objects.filter(pk=subscription.pk, paused_at__isnull=False).update(paused_at=None):
        return False
    _audit(subscription, "notice.resume")
    return True


@transaction.atomic
def delete_subscription(*, subscription: Subscription) -> None:
    """With its deliveries."""
    _audit(subscription, "notice.delete")
    subscription.delete()


@transaction.atomic
def renew_secret(*, subscription: Subscription) -> str:
    """A new secret; the old one signs nothing more. Raises Refusal for an e-mail subscription."""
    if subscription.channel != Channel.WEBHOOK:
        raise Refusal("subscription_refused", "Only webhooks have a secret.")
    secret = new_secret()
    Subscription.objects.filter(pk=subscription.pk).update(secret=sealed(secret))
    _audit(subscription, "notice.renew_secret")
    return secret


def _ordered(events: Collection[Event]) -> list[str]:
    """In the order of Event. Raises Refusal where there is none."""
    if not events:
        raise Refusal("events_missing", "Choose at least one event.")
    return [event.value for event in Event if event in events]


def _save(subscription: Subscription, *columns: str) -> None:
    """Raises Refusal where the person has the same subscription already."""
    try:
        with transaction.atomic():
            subscription.save(update_fields=columns or None)
    except IntegrityError as error:
        if "subscription_once" not in str(error):
            raise
        words = "You have a subscription to the same plan and address already. Change its events instead."
        raise Refusal("subscription_exists", words) from error


def _audit(subscription: Subscription, action: str) -> None:
    audit(by=subscription.user, action=action, on=subscription, detail=_detail(subscription))


def _detail(subscription: Subscription) -> dict[str, object]:
    """Without the address, which may hold a secret: its path often does."""
    detail: dict[str, object] = {"events": list(subscription.events)}
    if subscription.url:
        detail["receiver"] = urlsplit(subscription.url).netloc
    return detail
