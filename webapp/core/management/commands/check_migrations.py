"""`manage.py check_migrations`: whether this release can use the database, or a backup."""

import sys
from argparse import ArgumentParser
from collections.abc import Iterable
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from webapp.core import migration_hashes
from webapp.core.models import MigrationHash

APPLIED, HASHES = "django_migrations", MigrationHash._meta.db_table


class Command(BaseCommand):
    help = (
        "Fail if the database has a migration that this release lacks, or one whose file was changed after it was "
        "applied."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--dump",
            action="store_true",
            help=f"read the rows of {APPLIED} and {HASHES} from stdin, as pg_restore writes them; use no database",
        )

    def handle(self, *_: Any, dump: bool, **__: Any) -> None:
        mismatch = _of_dump(sys.stdin) if dump else migration_hashes.compare_database()
        if mismatch:
            raise CommandError(mismatch.sentences)
        if not dump and migration_hashes.pending():
            self.stdout.write("Some migrations of this release are not applied. Run `manage.py migrate`.")


def _of_dump(lines: Iterable[str]) -> migration_hashes.Mismatch:
    """Raises CommandError without the table of applied migrations."""
    tables = _tables(lines)
    if APPLIED not in tables:
        raise CommandError(f"The table {APPLIED} is not in this dump.")
    hashes = {row["migration"]: row["sha256"] for row in tables.get(HASHES, ())}  # absent from backups of old releases
    return migration_hashes.compare([f"{row['app']}.{row['name']}" for row in tables[APPLIED]], hashes)


def _tables(lines: Iterable[str]) -> dict[str, list[dict[str, str]]]:
    """The rows of each table, by its name: values by the names of their columns."""
    tables: dict[str, list[dict[str, str]]] = {}
    table, columns = "", []
    for line in (text.rstrip("\n") for text in lines):
        if line.startswith("COPY public.") and line.endswith(") FROM stdin;"):
            table, _, names = line.removeprefix("COPY public.").removesuffix(") FROM stdin;").partition(" (")
            columns = names.split(", ")
            tables[table] = []
        elif line == "\\.":
            table = ""
        elif table:
            tables[table].append(dict(zip(columns, line.split("\t"), strict=True)))
    return tables
