"""This server's Celery app: it publishes orders and runs the periodic tasks."""

import os

from celery import Celery

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "webapp.settings.base")

app = Celery("sweetspot")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()
