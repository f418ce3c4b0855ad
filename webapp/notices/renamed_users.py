"""Deletes the subscriptions of a person whose name is removed."""

from typing import Any

from django.dispatch import receiver

from webapp.core.people import renamed
from webapp.notices.models import Subscription


@receiver(renamed)
def delete_subscriptions(*, after: str, **_: Any) -> None:
    """A webhook's address can name its owner, and nothing is sent to a person who left."""
    Subscription.objects.filter(user__username=after).delete()
