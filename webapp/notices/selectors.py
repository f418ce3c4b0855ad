"""Selectors of subscriptions and notices."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypedDict

from django.db.models import CharField, DateTimeField, OuterRef, Q, QuerySet, Subquery

from webapp.core.models import User
from webapp.notices.models import Event, Notice, Subscription
from webapp.plans.models import Plan

if TYPE_CHECKING:
    from django_stubs_ext import WithAnnotations


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
