"""The log of a host's worker."""

from datetime import datetime
from uuid import UUID

from django.db.models import QuerySet
from django.http import HttpRequest
from ninja import Router, Schema
from ninja.pagination import paginate

from webapp.api.common.schemas import Paged
from webapp.hosts.models import WorkerLogLine
from webapp.hosts.selectors import known_host, log_lines
from worker.contract.reports import LogLevel

router = Router(tags=["hosts"])


class LogLineOut(Schema):
    """`attempt` is the attempt of the line."""

    id: int
    at: datetime
    level: str
    attempt: UUID | None
    text: str


@router.get("/hosts/{slug}/log", response=list[LogLineOut])
@paginate(Paged)
def worker_log(
    request: HttpRequest, slug: str, level: LogLevel | None = None, attempt: UUID | None = None
) -> QuerySet[WorkerLogLine]:
    """Lines of the worker's log, newest first; `level` is the minimum level."""
    return log_lines(known_host(slug), level=level or "", attempt=attempt)
