"""Periodic task for rows that unauthenticated clients cause, and for the numbers of changes. It may run twice."""

from django.contrib.sessions.models import Session
from django.utils import timezone

from webapp.celery import app
from webapp.core import changes
from webapp.core.throttle import forget_old_tries

TIDY_SECONDS = 600


@app.task(name="webapp.core.tasks.tidy")
def tidy() -> None:
    """Delete ended sessions and old log-in tries, and merge the numbers of changes."""
    Session.objects.filter(expire_date__lt=timezone.now()).delete()
    forget_old_tries()
    changes.merge()
