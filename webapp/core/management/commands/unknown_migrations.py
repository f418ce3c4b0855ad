"""`manage.py unknown_migrations`: which migrations of a backup this release lacks."""

import sys
from collections.abc import Iterable
from typing import Any

from django.core.management.base import BaseCommand
from django.db.migrations.loader import MigrationLoader

START, END = "COPY public.django_migrations (id, app, name, applied) FROM stdin;", "\\."


class Command(BaseCommand):
    help = (
        "Read the rows of django_migrations, as pg_restore writes them, from stdin. Print the name of each migration "
        "that this release does not have. The database is not used. Fail if stdin has no such rows."
    )

    def handle(self, *_: Any, **__: Any) -> None:
        known = MigrationLoader(None).disk_migrations
        replaced = {name for migration in known.values() for name in migration.replaces}
        for app, name in _rows(sys.stdin):
            if (app, name) not in known and (app, name) not in replaced:
                self.stdout.write(f"{app}.{name}")


def _rows(lines: Iterable[str]) -> list[tuple[str, str]]:
    """(app, name) of each row. Raises ValueError without the table."""
    texts = [line.rstrip("\n") for line in lines]
    rows = texts[texts.index(START) + 1 : texts.index(END)]
    return [(app, name) for _, app, name, _ in (row.split("\t") for row in rows)]
