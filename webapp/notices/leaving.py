"""What becomes of the subscriptions of a person who wants their name forgotten."""

from typing import Any

from django.dispatch import receiver

from webapp.core.people import renamed
from webapp.notices.models import Subscription


@receiver(renamed)
def delete_subscriptions(*, after: str, **_: Any) -> None:
    """A webhook's address can name its owner, and nothing is sent to a person who left."""
    Subscription.objects.filter(user__username=after).delete()
