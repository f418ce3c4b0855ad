"""Deletes the subscriptions of a person whose name is removed."""

from typing import Any

from django.dispatch import receiver

from webapp.core.models import User
from webapp.core.people import anonymised
from webapp.notices.models import Subscription


@receiver(anonymised)
def delete_subscriptions(*, user: User, **_: Any) -> None:
    """A webhook's address can name its owner, and nothing is sent to a person who left."""
    Subscription.objects.filter(user=user).delete()
