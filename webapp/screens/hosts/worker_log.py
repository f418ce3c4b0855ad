"""The worker's log on the page of its host."""

from collections.abc import Sequence
from typing import Literal
from uuid import UUID

import msgspec
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.views.decorators.cache import never_cache

from webapp.hosts.models import Host, WorkerLogLine
from webapp.hosts.selectors import log_lines
from webapp.runs.models import Attempt
from webapp.screens.access import page
from webapp.screens.hosts.presence import host_or_404
from webapp.screens.payloads import Payload

# Data that the pages of hosts send to their scripts.


class Enrolment(Payload, frozen=True, kw_only=True):
    """The state of an enrolment command; enrolled: host created, heard: worker registered."""

    state: Literal["waiting", "expired", "enrolled", "heard"]
    host: str  # its name, "" while waiting
    url: str  # address of the host's page
    seconds_left: float


class LogTailLine(Payload, frozen=True, kw_only=True):
    """A line of a worker's log; `about` and `url` name its trial or run, "" if it has none."""

    at: str  # ISO 8601, UTC
    level: str
    text: str
    about: str
    url: str


class LogTail(Payload, frozen=True, kw_only=True):
    """Lines in order; send `last` to get the following lines."""

    lines: tuple[LogTailLine, ...]
    last: int


SHOWN = 200


@never_cache
@page
def worker_log(request: HttpRequest, slug: str) -> HttpResponse:
    """Lines after `after`, oldest first."""
    after = request.GET.get("after", "")
    tail = log_tail(host_or_404(slug), request, after=int(after) if after.isdecimal() and len(after) < 19 else 0)
    return HttpResponse(msgspec.json.encode(tail), content_type="application/json")


def log_tail(host: Host, request: HttpRequest, *, after: int = 0) -> LogTail:
    """The newest lines, filtered by `level` and `attempt` in the address."""
    lines = log_lines(host, level=request.GET.get("level", ""), attempt=_uuid(request.GET.get("attempt", "")))
    found = list(lines.filter(id__gt=after)[:SHOWN])[::-1]
    trials = _trials(found)
    return LogTail(lines=tuple(_line(line, trials) for line in found), last=found[-1].pk if found else after)


def _uuid(text: str) -> UUID | None:
    try:
        return UUID(text)
    except ValueError:
        return None


def _trials(lines: Sequence[WorkerLogLine]) -> dict[UUID, tuple[str, str]]:
    """Attempt -> (text, address) of its run or trial. One query."""
    wanted = {line.attempt for line in lines if line.attempt}
    found = Attempt.objects.filter(pk__in=wanted, run__isnull=False).select_related("run", "trial")
    return {attempt.pk: _about(attempt) for attempt in found}


def _about(attempt: Attempt) -> tuple[str, str]:
    number = attempt.run.number if attempt.run else 0
    if attempt.trial is None:
        return f"run {number}", reverse("run", args=[number])
    trial = attempt.trial.number
    return f"run {number}, trial {trial}", reverse("trial", args=[number, trial])


def _line(line: WorkerLogLine, trials: dict[UUID, tuple[str, str]]) -> LogTailLine:
    words, url = trials.get(line.attempt, ("", "")) if line.attempt else ("", "")
    return LogTailLine(
        at=line.at.isoformat(timespec="milliseconds"), level=line.level, text=line.text, about=words, url=url
    )
