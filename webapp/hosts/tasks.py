"""Periodic tasks for hosts. They are safe to run twice, also at the same time."""

import logging
from datetime import timedelta

import redis
from django.utils import timezone

from webapp.celery import app
from webapp.core import health
from webapp.hosts.credentials import reconcile
from webapp.hosts.inventory.store import thin_inventories
from webapp.hosts.keys import retire_superseded
from webapp.hosts.maintenance_windows import delete_ended_windows
from webapp.hosts.models import EnrolmentToken
from webapp.hosts.sessions import correct_times_ahead

log = logging.getLogger(__name__)

KEEP_BROKER_SECONDS = 10
TOKENS_KEPT_FOR = timedelta(days=30)  # after their end; until then a host is told why its token is refused


@app.task(name="webapp.hosts.tasks.keep_broker")
def keep_broker() -> None:
    """Correct the hosts' users in Redis and times of a clock that was ahead; retire unneeded signing keys."""
    correct_times_ahead()
    retire_superseded()
    try:
        reconcile()
    except (redis.RedisError, OSError) as error:
        log.warning("The broker's users could not be checked: %s", error)


@app.task(name="webapp.hosts.tasks.tidy")
def tidy() -> None:
    """Thin old inventories; delete enrolment tokens and maintenance windows that ended long ago. Once a day."""
    if health.note_daily(health.TIDY_HOSTS):
        thin_inventories()
        EnrolmentToken.objects.filter(expires_at__lt=timezone.now() - TOKENS_KEPT_FOR).delete()
        delete_ended_windows(timezone.now())
