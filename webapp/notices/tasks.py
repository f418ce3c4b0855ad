"""The periodic task. It is safe to run twice, also at the same time."""

import logging

from django.utils import timezone

from webapp.celery import app
from webapp.core import health
from webapp.notices import delivery
from webapp.notices.absent_hosts import announce_absent_hosts
from webapp.notices.delivery import send_due
from webapp.notices.run_ends import announce_ended_runs

log = logging.getLogger(__name__)


@app.task(name="webapp.notices.tasks.tick")
def tick() -> None:
    """Every few seconds: announce ended runs and absent hosts, and send due notices."""
    for step in (announce_ended_runs, watch_hosts, note_heartbeat, deliver):
        try:
            step()
        except Exception:
            log.exception("%s failed; the next tick tries again.", step.__name__)


def watch_hosts() -> None:
    announce_absent_hosts(timezone.now())


def note_heartbeat() -> None:
    """After `watch_hosts`, which reads when the last tick was."""
    health.note(health.NOTICES)


def deliver() -> None:
    now = timezone.now()
    delivery.drop_unwanted(now)
    delivery.forget_old(now)
    send_due(now)
