"""The log lines in a worker's reports. Only the newest lines of each host are stored."""

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
    """Store new lines. A line that cannot be stored does not cause the report to be refused."""
    try:
        with transaction.atomic():
            rows = [_row(host, shipped.session, line) for line in shipped.lines]
            WorkerLogLine.objects.bulk_create(rows, ignore_conflicts=True)
            _prune(host)
    except (DataError, IntegrityError):
        log.exception("host %s: log lines could not be stored", host)


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
    """A Unix time as a datetime; the current time if it is not a valid date."""
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
