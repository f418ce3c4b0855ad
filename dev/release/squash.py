"""`python -m dev.release.squash`: replace the migrations of each app by one initial migration.

It is run once, before the first release. The new migrations are those that `makemigrations` writes for an empty
database, with the SQL statements of the old ones. Functions of the old ones (RunPython) are left out: they change rows,
and a new database has none. Then an empty database is migrated with the old files and another one with the new files.
The command fails if their tables, columns, indexes or constraints differ.
"""

import os
import subprocess
import sys
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import psycopg
import sqlparse
from django.apps import apps
from django.db.migrations import CreateModel, Migration, RunPython, RunSQL
from django.db.migrations.autodetector import MigrationAutodetector
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.questioner import MigrationQuestioner
from django.db.migrations.state import ProjectState
from django.db.migrations.writer import MigrationWriter
from django.test import override_settings

from dev.console import ToolError, run_command, say, step
from dev.django_setup import set_up_without_database
from dev.release.migrations import HASHES, migration_files
from dev.stack import postgres
from dev.stack.state import REPOSITORY, State
from dev.stack.temporary import temporary

INITIAL = "0001_initial"
# Everything that the migrations create, without partitions, which are created while samples arrive.
SCHEMA = """
with tables as (select oid, relname, relkind from pg_class
                where relnamespace = 'public'::regnamespace and relkind in ('r', 'p') and not relispartition)
select format('%s.%s: %s%s default %s identity %s', relname, attname, format_type(atttypid, atttypmod),
              case when attnotnull then ' not null' end, pg_get_expr(adbin, adrelid), attidentity)
from tables join pg_attribute on attrelid = tables.oid and attnum > 0 and not attisdropped
left join pg_attrdef on adrelid = attrelid and adnum = attnum
union all select format('%s: partition by %s', relname, pg_get_partkeydef(oid)) from tables where relkind = 'p'
union all select pg_get_indexdef(indexrelid) from pg_index join tables on indrelid = tables.oid
union all select format('%s: %s %s', relname, conname, pg_get_constraintdef(c.oid))
from pg_constraint c join tables on conrelid = tables.oid
union all select format('sequence %s: %s', sequencename, data_type) from pg_sequences where schemaname = 'public'
"""


WRITTEN_BY_MAKEMIGRATIONS = {f"django.db.migrations.operations.{name}" for name in ("models", "fields")}


@dataclass
class OtherOperations:
    """The operations of an app that makemigrations does not write."""

    first: list[RunSQL] = field(default_factory=list)  # before the tables, which may use what they create
    last: list[RunSQL] = field(default_factory=list)
    functions: list[str] = field(default_factory=list)  # names of those of RunPython


def main(_: Sequence[str]) -> int:
    if HASHES.exists():
        raise ToolError(f"{HASHES} lists released migrations, which never change. Nothing was squashed.")
    set_up_without_database()
    with temporary("squash") as state:
        with step("creating the tables with the old migrations"):
            postgres.start(state, durable=False)
            old_schema = migrated_schema(state)
        functions = squash()
        with step("creating the tables with the new migrations"):
            new_schema = migrated_schema(state)
    for name in functions:
        say(f"Left out, because a new database has no rows: {name}")
    if old_schema != new_schema:
        lines = [f"- {line}" for line in sorted(old_schema - new_schema)]
        lines += [f"+ {line}" for line in sorted(new_schema - old_schema)]
        raise ToolError("\n".join(["The old (-) and the new (+) migrations create different tables:", *lines]))
    say(f"{len(migration_files())} migrations create the same tables as before ({len(new_schema)} details compared).")
    return 0


def migrated_schema(state: State) -> set[str]:
    """The rows of SCHEMA in an empty database after all migrations on disk. Raises ToolError."""
    address = f"host={postgres.folder(state)} user={postgres.ROLE} dbname={postgres.DATABASE}"
    with psycopg.connect(address) as connection:
        connection.execute("drop schema public cascade; create schema public")
    command = (sys.executable, "manage.py", "migrate", "--no-input", "--verbosity=0")
    environment = {**os.environ, "SWEETSPOT_DATABASE_URL": postgres.url(state)}
    done = subprocess.run(command, cwd=REPOSITORY, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise ToolError(f"manage.py migrate failed:\n{done.stderr[-3000:]}")
    with psycopg.connect(address) as connection:
        return {line for (line,) in connection.execute(SCHEMA)}


def squash() -> list[str]:
    """Replace all migrations of this project. Return the functions that were left out. Raises ToolError."""
    folders = {
        app.label: Path(app.path) / "migrations" for app in apps.get_app_configs() if app.name.startswith("webapp.")
    }
    others = {label: other_operations(label) for label in folders}
    texts = {
        folders[label] / f"{INITIAL}.py": MigrationWriter(initial_migration(label, parts, others)).as_string()
        for label, parts in detected_migrations(folders).items()
    }
    for old in migration_files():
        (REPOSITORY / old).unlink()
    for path, text in texts.items():
        path.write_text(text)
    for command in (("check", "--fix", "--quiet"), ("format", "--quiet")):
        subprocess.run((sys.executable, "-m", "ruff", *command, *texts), cwd=REPOSITORY, check=True)
    return [name for each in others.values() for name in each.functions]


def other_operations(label: str) -> OtherOperations:
    """Raises ToolError for an operation that is neither written by makemigrations nor SQL nor a function."""
    others, has_tables = OtherOperations(), False
    migrations = MigrationLoader(None).disk_migrations
    for key in sorted(key for key in migrations if key[0] == label):
        for operation in migrations[key].operations:
            has_tables = has_tables or isinstance(operation, CreateModel)
            if isinstance(operation, RunSQL):
                (others.last if has_tables else others.first).append(_with_one_line_a_statement(operation))
            elif isinstance(operation, RunPython):
                others.functions.append(f"{'.'.join(key)}, {getattr(operation.code, '__name__', operation.code)}")
            elif type(operation).__module__ not in WRITTEN_BY_MAKEMIGRATIONS:
                raise ToolError(f"{'.'.join(key)}: {type(operation).__name__} cannot be squashed.")
    return others


def _with_one_line_a_statement(operation: RunSQL) -> RunSQL:
    if not isinstance(operation.sql, str):
        return operation
    statements = tuple(sqlparse.split(operation.sql))
    return RunSQL(statements if len(statements) > 1 else operation.sql, operation.reverse_sql)


def detected_migrations(labels: Collection[str]) -> dict[str, list[Migration]]:
    """What makemigrations would write for these apps if they had none: by app, usually one, more between cycles."""
    with override_settings(MIGRATION_MODULES=dict.fromkeys(labels)):
        graph = MigrationLoader(None).graph
    models = ProjectState.from_apps(apps)
    of_other_projects = ProjectState({key: model for key, model in models.models.items() if key[0] not in labels})
    autodetector = MigrationAutodetector(of_other_projects, models, MigrationQuestioner(specified_apps=set(labels)))
    detected: dict[str, list[Migration]] = autodetector.changes(graph)
    return detected


def initial_migration(label: str, parts: Sequence[Migration], others: Mapping[str, OtherOperations]) -> Migration:
    """One migration of all parts. If that makes two apps depend on each other, Django refuses to apply it."""
    dependencies = {
        (needed[0], INITIAL) if needed[0] in others else needed
        for part in parts
        for needed in part.dependencies
        if needed[0] != label
    }
    tables = [operation for part in parts for operation in part.operations]
    content = {
        "initial": True,
        "dependencies": sorted(dependencies),
        "operations": [*others[label].first, *tables, *others[label].last],
    }
    migration: Migration = type("Migration", (Migration,), content)(INITIAL, label)
    return migration


if __name__ == "__main__":
    run_command(main)
