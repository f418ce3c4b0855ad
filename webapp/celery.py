"""This server's Celery app: it publishes orders and runs the periodic tasks."""

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from logging.config import dictConfig

import redis
from celery import Celery
from celery.signals import celeryd_init, setup_logging, worker_init
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "webapp.settings.base")

app = Celery("sweetspot")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()


@setup_logging.connect  # type: ignore[untyped-decorator]
def _log_as_the_web_tier_does(**_: object) -> None:
    """Whoever connects here sets up logging; Celery's own form would know neither JSON nor what a line is about."""
    dictConfig(settings.LOGGING)
    logging.captureWarnings(True)


@celeryd_init.connect  # type: ignore[untyped-decorator]
def _refuse_unsafe_settings(**_: object) -> None:
    from webapp.core.checks import require_safe_settings

    try:
        require_safe_settings()
    except ImproperlyConfigured as error:
        raise SystemExit(str(error)) from error  # Celery only logs other exceptions of a signal's receiver


@worker_init.connect  # type: ignore[untyped-decorator]
def _examine_types(**_: object) -> None:
    """All tasks are loaded, and no thread of the pool has started."""
    from worker.contract.base import examine_types

    examine_types()


# A direct connection to the broker for tasks outside Celery: users, queue lengths, health.

LIMIT_S = 3.0


@contextmanager
def redis_client() -> Iterator[redis.Redis]:
    """A client as the server's own user; every call ends within LIMIT_S. Raises redis.RedisError on use."""
    client = redis.Redis.from_url(
        settings.REDIS_URL, socket_connect_timeout=LIMIT_S, socket_timeout=LIMIT_S, **settings.BROKER_TLS
    )
    try:
        yield client
    finally:
        client.close()
