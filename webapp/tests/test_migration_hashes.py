"""A database or backup of another release is refused: by `migrate`, by `check_migrations` and by /healthz."""

import io
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from django.db.migrations.recorder import MigrationRecorder
from django.test import Client

from dev.stack.postgres import programs
from webapp.core import migration_hashes
from webapp.core.migration_hashes import Mismatch, compare, compare_database
from webapp.core.models import MigrationHash

APPLIED = "COPY public.django_migrations (id, app, name, applied) FROM stdin;\n"
HASHES = "COPY public.core_migrationhash (migration, sha256) FROM stdin;\n"
FIRST = "runs.0001_initial"
NO_MISMATCH = Mismatch(missing=(), changed=())


@pytest.fixture
def stored(db: None) -> None:
    """The hashes, which a test that empties all tables has deleted."""
    migration_hashes.store()


@pytest.fixture
def edited(stored: None) -> None:
    MigrationHash.objects.filter(pk=FIRST).update(sha256="of an edited file")


@pytest.fixture
def newer(stored: None) -> Iterator[None]:
    recorder = MigrationRecorder(connection)
    recorder.record_applied("runs", "0999_later")
    yield
    recorder.record_unapplied("runs", "0999_later")


@pytest.mark.usefixtures("stored")
def test_each_migration_of_this_project_has_a_hash_and_matches() -> None:
    names = {path.stem for path in Path(__file__).parents[1].glob("*/migrations/0*.py")}
    assert {name.partition(".")[2] for name in MigrationHash.objects.values_list("pk", flat=True)} == names
    assert compare_database() == NO_MISMATCH


@pytest.mark.usefixtures("stored")
def test_a_stored_hash_is_never_replaced() -> None:
    MigrationHash.objects.filter(pk=FIRST).update(sha256="older")
    migration_hashes.store()
    assert MigrationHash.objects.get(pk=FIRST).sha256 == "older"


@pytest.mark.usefixtures("stored")
def test_migrate_stores_the_hash_of_a_migration_that_it_applies() -> None:
    call_command("migrate", "schedules", "zero", fake=True, verbosity=0)
    assert not MigrationHash.objects.filter(pk="schedules.0001_initial").exists()
    call_command("migrate", "schedules", fake=True, verbosity=0)
    assert MigrationHash.objects.filter(pk="schedules.0001_initial").exists()


@pytest.mark.usefixtures("edited")
def test_an_edited_migration_is_refused_everywhere() -> None:
    assert compare_database() == Mismatch(missing=(), changed=(FIRST,))
    for command in ("migrate", "check_migrations"):
        with pytest.raises(CommandError, match=FIRST):
            call_command(command, verbosity=0)
    answer = Client().get("/healthz?without=tasks")
    assert (answer.status_code, answer.json()["parts"]["migrations"]) == (503, False)
    assert len(answer.json()["warnings"]) == 1


@pytest.mark.usefixtures("newer")
def test_a_database_of_a_newer_release_is_refused_everywhere() -> None:
    assert compare_database() == Mismatch(missing=("runs.0999_later",), changed=())
    for command in ("migrate", "check_migrations"):
        with pytest.raises(CommandError, match=r"runs\.0999_later"):
            call_command(command, verbosity=0)
    assert Client().get("/healthz?without=tasks").json()["parts"]["migrations"] is False


def test_a_migration_without_a_stored_hash_is_compared_by_its_name() -> None:
    assert compare([FIRST, "runs.0999_later"], {}) == Mismatch(missing=("runs.0999_later",), changed=())


def check_dump(rows: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(rows))
    call_command("check_migrations", dump=True)


@pytest.mark.parametrize(
    ("name", "digest", "refused"),
    [("0001_initial", "of another file", FIRST), ("0999_later", "any", r"runs\.0999_later")],
)
def test_a_backup_of_another_release_is_refused(
    name: str, digest: str, refused: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = f"SET x = 1;\n{HASHES}runs.{name}\t{digest}\n\\.\n\n{APPLIED}1\truns\t{name}\tnow\n\\.\n\nSELECT 1;\n"
    with pytest.raises(CommandError, match=refused):
        check_dump(rows, monkeypatch)


def test_a_backup_without_hashes_is_accepted(monkeypatch: pytest.MonkeyPatch) -> None:
    check_dump(f"{APPLIED}1\truns\t0001_initial\tnow\n\\.\n", monkeypatch)


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("edit", [False, True])
def test_a_real_backup_has_the_hashes(edit: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    migration_hashes.store()
    if edit:
        MigrationHash.objects.filter(pk=FIRST).update(sha256="of an edited file")
    facts, dump = connection.settings_dict, tmp_path / "dump"
    where = ("--host", facts["HOST"], "--username", facts["USER"], "--dbname", facts["NAME"])
    subprocess.run((programs() / "pg_dump", *where, "--format", "custom", "--file", dump), check=True)
    tables = ("--table", "django_migrations", "--table", "core_migrationhash")
    restore = (programs() / "pg_restore", "--data-only", *tables, "--file", "-", dump)
    rows = subprocess.run(restore, capture_output=True, text=True, check=True).stdout
    if edit:
        with pytest.raises(CommandError, match=FIRST):
            check_dump(rows, monkeypatch)
    else:
        check_dump(rows, monkeypatch)


def test_a_dump_without_the_table_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(CommandError, match="django_migrations"):
        check_dump("SELECT 1;\n", monkeypatch)
