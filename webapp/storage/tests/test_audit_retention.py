"""Old entries of the audit log are exported and deleted, recent ones never."""

import json
from datetime import timedelta
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone

from webapp.core.models import AuditEntry
from webapp.core.services import audit
from webapp.tests.factories.people import a_user

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _entries() -> None:
    """One of 400 days ago, one of 300 days ago."""
    ann = a_user("ann")
    AuditEntry.objects.all().delete()
    for days in (400, 300):
        entry = audit(by=ann, action="user.password", on=ann)
        AuditEntry.objects.filter(pk=entry.pk).update(at=timezone.now() - timedelta(days=days))


def delete(**options: Any) -> None:
    call_command("delete_audit_entries", stdout=StringIO(), **options)


def test_it_exports_and_deletes_old_entries_and_records_that(tmp_path: Path) -> None:
    file = tmp_path / "audit.jsonl"
    delete(days=365, export=file)
    (line,) = file.read_text().splitlines()
    assert json.loads(line)["actor"] == "ann"
    assert json.loads(line)["action"] == "user.password"
    assert sorted(AuditEntry.objects.values_list("action", flat=True)) == ["audit.delete", "user.password"]
    assert AuditEntry.objects.get(action="audit.delete").detail == {"entries": 1}


def test_it_records_nothing_without_old_entries() -> None:
    delete(days=500)
    assert AuditEntry.objects.count() == 2


def test_it_refuses_an_age_below_a_year() -> None:
    with pytest.raises(CommandError):
        delete(days=364)
    assert AuditEntry.objects.count() == 2


@pytest.mark.parametrize("name", ["exists", "missing/audit"])
def test_it_deletes_nothing_if_the_file_cannot_be_written(name: str, tmp_path: Path) -> None:
    (tmp_path / "exists").write_text("earlier export")
    with pytest.raises(CommandError):
        delete(days=365, export=tmp_path / name)
    assert (tmp_path / "exists").read_text() == "earlier export"
    assert AuditEntry.objects.count() == 2
