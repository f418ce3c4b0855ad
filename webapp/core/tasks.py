"""Periodic task for rows that unauthenticated clients cause, and for the numbers of changes. It may run twice."""

from datetime import timedelta

from django.conf import settings
from django.contrib.sessions.models import Session
from django.db.models import Q
from django.utils import timezone

from webapp.celery import app
from webapp.core import changes
from webapp.core.throttle import forget_old_tries

TIDY_SECONDS = 600
CLOCK_TOLERANCE = timedelta(minutes=10)  # between servers, and for clocks that are set by small steps


@app.task(name="webapp.core.tasks.tidy")
def tidy() -> None:
    """Delete ended sessions and old log-in tries, and merge the numbers of changes.

    A session that ends later than any new one began while the clock was ahead, and would last too long.
    """
    now = timezone.now()
    longest = timedelta(seconds=max(settings.SESSION_COOKIE_AGE, settings.EXTERNAL_SESSION_SECONDS))
    Session.objects.filter(Q(expire_date__lt=now) | Q(expire_date__gt=now + longest + CLOCK_TOLERANCE)).delete()
    forget_old_tries()
    changes.merge()
