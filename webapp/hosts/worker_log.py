"""The log lines in a worker's reports. Only the newest lines of each host are stored.

Lines that come faster than RATE are left out: PostgreSQL keeps deleted rows on disk until a vacuum, so a limit of rows
alone lets the table grow.
"""

import logging
from collections.abc import Sequence
from datetime import UTC, datetime
from uuid import UUID

from django.db import DataError, IntegrityError, transaction
from django.utils import timezone

from webapp.core import tally
from webapp.core.models import Counter
from webapp.core.throttle import Rate
from webapp.hosts.models import Host, WorkerLogLine
from worker.contract.reports import LogLevel, LogLine, WorkerLog

log = logging.getLogger(__name__)

LINES_KEPT = 2000  # of each host
# In bytes of each host. The burst is more than LINES_KEPT usual lines, which a worker sends after an outage.
RATE = Rate(burst=2 * 1024**2, per_s=10 * 1024)
_ROW_BYTES = 200  # of a line besides its text, with its indexes
LEFT_OUT = "log_too_fast"  # label of the counter of refused reports


def keep_log(*, host: Host, shipped: WorkerLog) -> None:
    """Store new lines. A line that cannot be stored does not cause the report to be refused."""
    lines = _within_rate(host, shipped.lines)
    if not lines:
        return
    try:
        with transaction.atomic():
            rows = [_row(host, shipped.session, line) for line in lines]
            WorkerLogLine.objects.bulk_create(rows, ignore_conflicts=True)
            _prune(host)
    except (DataError, IntegrityError):
        log.exception("host %s: log lines could not be stored", host)


def _within_rate(host: Host, lines: Sequence[LogLine]) -> list[LogLine]:
    """The lines up to the limit. If others are left out, a line says how many, in the place of the first of them."""
    stored: list[LogLine] = []
    for line in lines:
        if not RATE.take(host.pk, _ROW_BYTES + len(line.text.encode("utf-8", "surrogatepass"))):
            break
        stored.append(line)
    if left_out := len(lines) - len(stored):
        tally.add(Counter.REFUSED, LEFT_OUT)
        if stored:
            words = f"The server left out {left_out} lines or more, because this host sends its log too fast."
            first = lines[len(stored)]
            stored.append(LogLine(number=first.number, at=first.at, level=LogLevel.WARNING, text=words))
    return stored


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
