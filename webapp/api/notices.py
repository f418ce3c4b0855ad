"""Notices: the person's own subscriptions and their deliveries. Other people's are not found."""

from datetime import datetime
from uuid import UUID

from django.db.models import QuerySet
from django.http import HttpRequest
from ninja import Field, Router, Schema, Status
from ninja.pagination import paginate

from webapp.api.common.schemas import Input, Paged
from webapp.core.errors import NotFound
from webapp.core.models import User
from webapp.notices import services
from webapp.notices.models import Channel, Event, Notice, NoticeState, Subscription
from webapp.notices.services import deliveries_of, send_again, send_test, subscriptions_of
from webapp.notices.webhook import MAX_URL
from webapp.plans.models import Plan

router = Router(tags=["notices"])


class SubscriptionOut(Schema):
    """`plan` null: every plan. `paused_at` null: not paused."""

    id: int
    channel: Channel
    url: str
    plan: str | None
    events: list[Event]
    created_at: datetime
    paused_at: datetime | None

    @staticmethod
    def resolve_plan(subscription: Subscription) -> str | None:
        return subscription.plan.slug if subscription.plan else None


class SecretOut(Schema):
    secret: str  # shown once


class Created(SubscriptionOut):
    secret: str | None  # of a webhook; shown once


class SubscriptionIn(Input):
    """`url` only for webhooks. Without `plan`: every plan."""

    channel: Channel
    url: str = Field("", max_length=MAX_URL)
    plan: str | None = Field(None, max_length=80)
    events: list[Event] = Field(min_length=1, max_length=len(Event))


class SubscriptionChange(Input):
    """Fields that are left out do not change. `plan` null: every plan."""

    url: str = Field("", max_length=MAX_URL)
    plan: str | None = Field(None, max_length=80)
    events: list[Event] = Field(default_factory=list, min_length=1, max_length=len(Event))
    paused: bool = False


class DeliveryOut(Schema):
    """`next_try_at` is null unless the delivery is pending."""

    id: UUID
    subscription: int
    event: str
    subject: str
    state: NoticeState
    tries: int
    next_try_at: datetime | None
    created_at: datetime
    sent_at: datetime | None
    last_error: str

    @staticmethod
    def resolve_subscription(notice: Notice) -> int:
        return notice.subscription_id

    @staticmethod
    def resolve_next_try_at(notice: Notice) -> datetime | None:
        return notice.next_try_at if notice.state == NoticeState.PENDING else None


def _me(request: HttpRequest) -> User:
    assert isinstance(request.user, User)  # nobody else passes AUTH
    return request.user


def _own(request: HttpRequest, pk: int) -> Subscription:
    subscription = subscriptions_of(_me(request)).filter(pk=pk).first()
    if subscription is None:
        raise NotFound("subscription_unknown", f"You have no subscription {pk}.")
    return subscription


def _plan(slug: str | None) -> Plan | None:
    if not slug:
        return None
    plan = Plan.objects.filter(slug=slug).first()
    if plan is None:
        raise NotFound("plan_unknown", f"There is no plan {slug}.")
    return plan


@router.get("/notices/subscriptions", response=list[SubscriptionOut])
@paginate(Paged)
def subscriptions(request: HttpRequest) -> QuerySet[Subscription]:
    """Your own subscriptions."""
    return subscriptions_of(_me(request))


@router.post("/notices/subscriptions", response={201: Created})
def subscribe(request: HttpRequest, body: SubscriptionIn) -> Status[Subscription]:
    """Add a subscription. The response contains a webhook's secret, once."""
    made, secret = services.create_subscription(
        user=_me(request), channel=body.channel, url=body.url, plan=_plan(body.plan), events=body.events
    )
    made.secret = secret or None  # the response shows it
    return Status(201, made)


@router.get("/notices/subscriptions/{pk}", response=SubscriptionOut)
def subscription(request: HttpRequest, pk: int) -> Subscription:
    """One of your own subscriptions."""
    return _own(request, pk)


@router.patch("/notices/subscriptions/{pk}", response=SubscriptionOut)
def change(request: HttpRequest, pk: int, body: SubscriptionChange) -> Subscription:
    """Change, pause or resume a subscription. For another channel, add another subscription."""
    subscription, given = _own(request, pk), body.dict(exclude_unset=True)
    if given.keys() & {"url", "plan", "events"}:
        services.change_subscription(
            subscription=subscription,
            url=given.get("url", subscription.url),
            plan=_plan(body.plan) if "plan" in given else subscription.plan,
            events=body.events or [Event(event) for event in subscription.events],
        )
    if "paused" in given:
        act = services.pause_subscription if body.paused else services.resume_subscription
        act(subscription=subscription)
    return _own(request, pk)


@router.delete("/notices/subscriptions/{pk}", response={204: None})
def delete(request: HttpRequest, pk: int) -> Status[None]:
    """Delete a subscription with its deliveries."""
    services.delete_subscription(subscription=_own(request, pk))
    return Status(204, None)


@router.post("/notices/subscriptions/{pk}/test", response={202: None})
def test(request: HttpRequest, pk: int) -> Status[None]:
    """Queue a test notice; the list of deliveries shows its state."""
    send_test(subscription=_own(request, pk))
    return Status(202, None)


@router.post("/notices/subscriptions/{pk}/secret", response=SecretOut)
def renew_secret(request: HttpRequest, pk: int) -> SecretOut:
    """Create a new secret for a webhook, which replaces the old one."""
    return SecretOut(secret=services.renew_secret(subscription=_own(request, pk)))


@router.get("/notices/deliveries", response=list[DeliveryOut])
@paginate(Paged)
def deliveries(request: HttpRequest, subscription: int | None = None) -> QuerySet[Notice]:
    """Deliveries of the last 30 days, newest first."""
    notices = deliveries_of(_me(request))
    return notices if subscription is None else notices.filter(subscription_id=subscription)


@router.post("/notices/deliveries/{delivery}/again", response=DeliveryOut)
def again(request: HttpRequest, delivery: UUID) -> Notice:
    """Send a failed or pending notice again, at once. No effect if it was sent."""
    notice = deliveries_of(_me(request)).filter(pk=delivery).first()
    if notice is None:
        raise NotFound("delivery_unknown", "You have no such delivery.")
    send_again(notice=notice)
    return deliveries_of(_me(request)).get(pk=delivery)
