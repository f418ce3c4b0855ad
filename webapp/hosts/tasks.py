"""Periodic tasks for hosts. They are safe to run twice, also at the same time."""

import logging

import redis

from webapp.celery import app
from webapp.hosts.broker import reconcile
from webapp.hosts.inventory.retention import thin_inventories
from webapp.hosts.keys import retire_superseded

log = logging.getLogger(__name__)

KEEP_BROKER_SECONDS = 10


@app.task(name="webapp.hosts.tasks.keep_broker")
def keep_broker() -> None:
    """Correct the hosts' users in Redis; retire signing keys that are no longer needed."""
    retire_superseded()
    try:
        reconcile()
    except (redis.RedisError, OSError) as error:
        log.warning("The broker's users could not be checked: %s", error)


@app.task(name="webapp.hosts.tasks.tidy")
def tidy() -> None:
    """Thin old inventories, once a day."""
    thin_inventories()
