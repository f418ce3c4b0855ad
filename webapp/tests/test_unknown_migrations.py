"""`manage.py unknown_migrations` with rows as pg_restore writes them."""

import io
import subprocess
from pathlib import Path

import pytest
from django.core.management import call_command
from django.db import connection

from dev.stack.postgres import programs

HEAD = "COPY public.django_migrations (id, app, name, applied) FROM stdin;\n"


def unknown(rows: str, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    monkeypatch.setattr("sys.stdin", io.StringIO(rows))
    said = io.StringIO()
    call_command("unknown_migrations", stdout=said)
    return said.getvalue().split()


def test_it_prints_the_migrations_that_this_release_lacks(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = f"SET x = 1;\n{HEAD}1\truns\t0001_initial\tnow\n2\truns\t0999_later\tnow\n\\.\n\nSELECT 1;\n"
    assert unknown(rows, monkeypatch) == ["runs.0999_later"]


@pytest.mark.django_db
def test_it_knows_all_migrations_of_its_own_backup(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    facts, dump = connection.settings_dict, tmp_path / "dump"
    where = ("--host", facts["HOST"], "--username", facts["USER"], "--dbname", facts["NAME"])
    subprocess.run((programs() / "pg_dump", *where, "--format", "custom", "--file", dump), check=True)
    table = ("--data-only", "--table", "django_migrations", "--file", "-")
    rows = subprocess.run((programs() / "pg_restore", *table, dump), capture_output=True, text=True, check=True).stdout
    assert "runs\t0001_initial" in rows
    assert unknown(rows, monkeypatch) == []


def test_rows_without_the_table_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ValueError, match="django_migrations"):
        unknown("SELECT 1;\n", monkeypatch)
