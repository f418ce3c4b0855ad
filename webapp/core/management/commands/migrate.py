"""`manage.py migrate`: Django's command, which refuses a database of another release and stores hashes."""

from typing import Any

from django.core.management import CommandError
from django.core.management.commands import migrate
from django.db.migrations import Migration

from webapp.core import migration_hashes


class Command(migrate.Command):
    def handle(self, *args: Any, **options: Any) -> None:
        if mismatch := migration_hashes.compare_database():
            raise CommandError(mismatch.sentences)
        super().handle(*args, **options)

    def migration_progress_callback(self, action: str, migration: Migration | None = None, fake: bool = False) -> None:
        super().migration_progress_callback(action, migration, fake)
        if action in ("apply_success", "unapply_success") and migration and migration.__module__.startswith("webapp."):
            migration_hashes.store()
