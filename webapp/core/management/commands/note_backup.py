"""`manage.py note_backup`: for /metrics, after a backup."""

from typing import Any

from django.core.management.base import BaseCommand

from webapp.core import health


class Command(BaseCommand):
    help = "Record that a backup of the database was made now. The metric sweetspot_backup_age_seconds shows its age."

    def handle(self, *_: Any, **__: Any) -> None:
        health.note(health.BACKUP)
