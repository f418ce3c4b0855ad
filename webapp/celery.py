"""This server's Celery app: it publishes orders and runs the periodic tasks."""

import os
from logging.config import dictConfig

from celery import Celery
from celery.signals import setup_logging

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "webapp.settings.base")

app = Celery("sweetspot")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()


@setup_logging.connect  # type: ignore[untyped-decorator]
def _log_as_the_web_tier_does(**_: object) -> None:
    """Whoever connects here sets up logging; Celery's own form would know neither JSON nor what a line is about."""
    from django.conf import settings

    dictConfig(settings.LOGGING)
