"""Refuse a database whose migrations are not those of this release.

Django compares only the names of migrations. A migration that was edited after it was applied leaves tables that this
release cannot use, so `manage.py migrate` stores the SHA-256 of the file of each applied migration of this project.
"""

import inspect
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from pathlib import Path

from django.db import connection
from django.db.migrations.executor import MigrationExecutor
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder

from webapp.core.models import MigrationHash


@dataclass(frozen=True)
class Mismatch:
    """Names of applied migrations, such as runs.0001_initial."""

    missing: tuple[str, ...]  # this release does not have them: a newer one applied them
    changed: tuple[str, ...]  # the file differs from the applied one

    def __bool__(self) -> bool:
        return bool(self.missing or self.changed)

    @property
    def sentences(self) -> str:
        """What differs, and what to do."""
        parts = (("This release lacks", self.missing), ("This release has another version of", self.changed))
        differences = " ".join(f"{words} {', '.join(names)}." for words, names in parts if names)
        return (
            f"The migrations of the data do not match this release. {differences} Use the release that wrote the data, "
            "or restore a backup that was made by this release."
        )


@cache
def _known() -> dict[str, str]:
    """Each migration of this release, also a replaced one -> SHA-256 of its file; "" for those of other projects."""
    on_disk = MigrationLoader(None).disk_migrations
    hashes = {f"{app}.{name}": "" for migration in on_disk.values() for app, name in migration.replaces}
    for (app, name), migration in on_disk.items():
        is_of_this_project = migration.__module__.startswith("webapp.")
        content = Path(inspect.getfile(type(migration))).read_bytes() if is_of_this_project else None
        hashes[f"{app}.{name}"] = "" if content is None else sha256(content).hexdigest()
    return hashes


def compare(applied: Iterable[str], hashes: Mapping[str, str]) -> Mismatch:
    """Compare applied migrations and their stored hashes with the files of this release.

    A migration without a stored hash is compared by its name only: it was applied before hashes were stored.
    """
    known = _known()
    applied = sorted(applied)
    return Mismatch(
        missing=tuple(name for name in applied if name not in known),
        changed=tuple(name for name in applied if name in hashes and known.get(name) not in (None, "", hashes[name])),
    )


def compare_database() -> Mismatch:
    """Compare the database with this release; an empty database matches. Raises DatabaseError."""
    return compare(_applied(), _stored())


def pending() -> bool:
    """Whether the database lacks a migration of this release. Raises DatabaseError."""
    executor = MigrationExecutor(connection)
    return bool(executor.migration_plan(executor.loader.graph.leaf_nodes()))


def store() -> None:
    """Store the hash of each applied migration that has none, and delete those of migrations that were undone."""
    if not _has_table():
        return
    applied = _applied()
    MigrationHash.objects.exclude(migration__in=applied).delete()
    rows = [MigrationHash(migration=name, sha256=_known()[name]) for name in applied if _known().get(name)]
    MigrationHash.objects.bulk_create(rows, ignore_conflicts=True)


def _applied() -> list[str]:
    return [f"{app}.{name}" for app, name in MigrationRecorder(connection).applied_migrations()]


def _stored() -> dict[str, str]:
    return dict(MigrationHash.objects.values_list("migration", "sha256")) if _has_table() else {}


def _has_table() -> bool:
    """False before the migration that creates it."""
    return MigrationHash._meta.db_table in connection.introspection.table_names()
