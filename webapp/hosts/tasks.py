"""Periodic tasks about hosts. Everything in them may be done twice, or at the same time by two."""

import logging

import redis

from webapp.celery import app
from webapp.hosts.broker import reconcile
from webapp.hosts.keys import retire_superseded

log = logging.getLogger(__name__)

KEEP_BROKER_SECONDS = 10


@app.task(name="webapp.hosts.tasks.keep_broker")
def keep_broker() -> None:
    """Put back hosts' users that Redis has lost, remove those it should not have; retire keys nobody needs."""
    retire_superseded()
    try:
        reconcile()
    except (redis.RedisError, OSError) as error:
        log.warning("The broker's users could not be looked at: %s", error)
