"""`manage.py delete_audit_entries --days 730 --export FILE`: export old entries of the audit log, then delete them."""

import json
import os
from argparse import ArgumentParser
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone

from webapp.core.models import AuditEntry
from webapp.core.services import audit

LEAST_DAYS = 365


class Command(BaseCommand):
    help = f"Delete entries of the audit log that are older than DAYS, at least {LEAST_DAYS}."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--days", type=int, required=True, help=f"age of the entries in days, from {LEAST_DAYS}")
        parser.add_argument("--export", type=Path, metavar="FILE", help="a new file: one JSON object per line")

    @transaction.atomic
    def handle(self, *_: Any, days: int, export: Path | None, **__: Any) -> None:
        if days < LEAST_DAYS:
            raise CommandError(f"--days must be at least {LEAST_DAYS}. Nothing was deleted.")
        before = timezone.now() - timedelta(days=days)
        old = AuditEntry.objects.filter(at__lt=before).order_by("at", "pk")
        newest = old.last()
        if newest is None:
            self.stdout.write("0 entries deleted.")
            return
        if export:
            try:
                _write(export, _lines(old))
            except OSError as error:
                raise CommandError(f"{export} cannot be written: {error}. Nothing was deleted.") from error
        count = old.delete()[0]
        label = f"entries before {before:%Y-%m-%d}"
        audit(by=None, action="audit.delete", on=newest, label=label, detail={"entries": count})
        self.stdout.write(f"{count} entries deleted.")


def _lines(entries: QuerySet[AuditEntry]) -> Iterator[str]:
    for entry in entries.select_related("actor").iterator():
        yield json.dumps(
            {
                "at": entry.at.isoformat(), "actor": entry.actor_name, "action": entry.action,
                "object_type": entry.object_type, "object_id": entry.object_id, "label": entry.label,
                "detail": entry.detail,
            }
        )  # fmt: skip


def _write(path: Path, lines: Iterator[str]) -> None:
    """On disk when it returns. An existing file is not replaced: it may be an earlier export."""
    with path.open("x", encoding="utf-8") as file:
        file.writelines(f"{line}\n" for line in lines)
        file.flush()
        os.fsync(file.fileno())
