"""The log that a worker ships with its reports: kept for people to read, the newest lines of each host only."""

import logging
from datetime import UTC, datetime
from uuid import UUID

from django.db import DataError, IntegrityError, transaction
from django.utils import timezone

from webapp.hosts.models import Host, WorkerLogLine
from worker.contract.reports import LogLine, WorkerLog

log = logging.getLogger(__name__)

LINES_KEPT = 2000  # of each host


def keep_log(*, host: Host, shipped: WorkerLog) -> None:
    """Write down what is new. A line that cannot be kept is no reason to refuse the report it came with."""
    try:
        with transaction.atomic():
            rows = [_row(host, shipped.session, line) for line in shipped.lines]
            WorkerLogLine.objects.bulk_create(rows, ignore_conflicts=True)
            _prune(host)
    except (DataError, IntegrityError):
        log.exception("host %s: lines of its log could not be kept", host)


def _row(host: Host, session: str, line: LogLine) -> WorkerLogLine:
    return WorkerLogLine(
        host=host,
        session=session,
        number=line.number,
        at=_moment(line.at),
        level=line.level.value,
        attempt=_uuid(line.attempt),
        text=line.text.replace("\0", "�"),  # PostgreSQL keeps no NUL in a text
    )


def _moment(seconds: float) -> datetime:
    """A Unix time; now where the host's clock says what is no date."""
    try:
        return datetime.fromtimestamp(seconds, tz=UTC)
    except (OverflowError, OSError, ValueError):
        return timezone.now()


def _uuid(text: str) -> UUID | None:
    try:
        return UUID(text)
    except ValueError:
        return None


def _prune(host: Host) -> None:
    newest = WorkerLogLine.objects.filter(host=host).order_by("-id")
    last_kept = newest.values_list("id", flat=True)[LINES_KEPT - 1 : LINES_KEPT].first()
    if last_kept is not None:
        WorkerLogLine.objects.filter(host=host, id__lt=last_kept).delete()
