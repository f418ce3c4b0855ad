"""Rows for tests of notices."""

import itertools
from collections.abc import Iterable
from typing import Any

from webapp.core.models import User
from webapp.notices.models import Channel, Event, Notice, Subscription
from webapp.notices.services import announce
from webapp.notices.webhook import sealed
from webapp.plans.models import Plan
from webapp.tests.factories.people import a_user

SECRET = "a secret for tests"
_numbers = itertools.count(1)


def a_plan() -> Plan:
    number = next(_numbers)
    return Plan.objects.create(slug=f"noticed{number}", title=f"Noticed {number}")


def a_subscription(
    url: str = "", user: User | None = None, plan: Plan | None = None, events: Iterable[Event] = Event, **changes: Any
) -> Subscription:
    """By e-mail where no URL is given."""
    user = user or a_user()
    if not url and not user.email:
        user.email = f"{user.username}@example.com"
        user.save()
    return Subscription.objects.create(
        user=user, channel=Channel.WEBHOOK if url else Channel.EMAIL, url=url, plan=plan, events=list(events),
        secret=sealed(SECRET) if url else b"", **changes,
    )  # fmt: skip


def an_event(key: str = "run:17:ended", plan: Plan | None = None, event: Event = Event.ENDED, **changes: Any) -> int:
    """Announce it; how many notices were queued."""
    said: dict[str, Any] = {
        "subject": "Run 17 of A plan is done", "text": "Run 17 of the plan A plan is done.",
        "path": "/runs/17/", "detail": {"run": 17},
    }  # fmt: skip
    return announce(event=event, plan=plan or a_plan(), key=key, **(said | changes))


def a_notice(url: str = "", **changes: Any) -> Notice:
    """One that waits, for a new subscription to a new plan."""
    plan = a_plan()
    subscription = a_subscription(url, plan=plan, **changes)
    an_event(f"key:{next(_numbers)}", plan=plan)
    return Notice.objects.get(subscription=subscription)
