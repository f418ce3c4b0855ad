"""Occurrences of a schedule: its past due times."""

from datetime import datetime
from typing import Literal
from uuid import UUID

from django.db.models import QuerySet
from django.http import HttpRequest
from ninja import Router, Schema
from ninja.pagination import paginate
from pydantic import AwareDatetime

from webapp.api.common.authentication import OPERATORS, operator
from webapp.api.common.schemas import Paged
from webapp.api.schedules import schedule_with
from webapp.core.errors import NotFound
from webapp.schedules import services
from webapp.schedules.models import (
    Occurrence,
)

router = Router(tags=["schedules"])
StateName = Literal["waiting", "started", "ended", "missed"]


class OccurrenceOut(Schema):
    """One due time, for one host if the schedule has a group. `reason`: why it was missed, or why it waits."""

    id: UUID
    schedule: int
    due_at: datetime
    host: str | None
    state: str
    reason_code: str
    reason: str
    run: int | None
    late_at: datetime | None
    finished_at: datetime | None

    @staticmethod
    def resolve_schedule(occurrence: Occurrence) -> int:
        return occurrence.schedule_id

    @staticmethod
    def resolve_host(occurrence: Occurrence) -> str | None:
        return occurrence.host.slug if occurrence.host else None

    @staticmethod
    def resolve_run(occurrence: Occurrence) -> int | None:
        return occurrence.run.number if occurrence.run else None


@router.get("/schedules/{key}/occurrences", response=list[OccurrenceOut])
@paginate(Paged)
def occurrences(
    request: HttpRequest, key: int, state: StateName | None = None,
    since: AwareDatetime | None = None, before: AwareDatetime | None = None,
) -> QuerySet[Occurrence]:  # fmt: skip
    """Past due times, latest first."""
    found = schedule_with(key).occurrences.select_related("host", "run")
    found = found.filter(state=state) if state else found
    found = found.filter(due_at__gte=since) if since else found
    return found.filter(due_at__lt=before) if before else found


@router.post("/schedules/{key}/occurrences/{occurrence}/skip", response=OccurrenceOut, auth=OPERATORS)
def skip(request: HttpRequest, key: int, occurrence: UUID) -> Occurrence:
    """Skip a waiting occurrence."""
    person = operator(request)
    found = schedule_with(key).occurrences.filter(pk=occurrence).first()
    if found is None:
        raise NotFound("occurrence_unknown", f"Schedule {key} has no such occurrence.")
    services.skip_occurrence(occurrence=found, by=person)
    return schedule_with(key).occurrences.select_related("host", "run").get(pk=occurrence)
