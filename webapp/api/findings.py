"""Findings of runs and imports, and what people think of them."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Annotated, Literal

import msgspec
from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from ninja import Field, Router
from pydantic import AwareDatetime

from webapp.analysis.evidence import RunFinding
from webapp.analysis.import_findings import ImportFinding
from webapp.analysis.reviews import (
    MAX_REASON_LENGTH,
    findings_of_import,
    review_finding,
    reviewed,
    undo_review,
)
from webapp.analysis.run_answer import run_answer
from webapp.analysis.run_findings import newest
from webapp.api.common.authentication import OPERATORS, operator
from webapp.api.common.schemas import Input, schema_of
from webapp.api.imports import import_with
from webapp.api.runs import run_with
from webapp.runs.models import Run

router = Router(tags=["findings"])
RunFindingOut = schema_of(RunFinding)
ImportFindingOut = schema_of(ImportFinding)
LAST = timedelta(days=1)


class ReviewIn(Input):
    verdict: Literal["confirmed", "dismissed"]
    reason: str = Field("", max_length=MAX_REASON_LENGTH)


@router.get("/findings", response=list[RunFindingOut])  # type: ignore[valid-type]
def newest_findings(
    request: HttpRequest, since: AwareDatetime | None = None, limit: Annotated[int, Field(ge=1, le=300)] = 30
) -> HttpResponse:
    """The findings of runs that have ended since, those of the last run first, at most three of each run. Without
    dismissed ones, ones that are not certain, and those of invalid runs. `since`: by default a day ago."""
    from_: datetime = since or timezone.now() - LAST
    return _json(newest(from_, limit))


@router.get("/runs/{number}/findings", response=list[RunFindingOut])  # type: ignore[valid-type]
def findings(request: HttpRequest, number: int) -> HttpResponse:
    """All findings of a run, the most important first, also dismissed ones. Of an open run, of the trials so far."""
    return _of(run_with(number))


@router.put("/runs/{number}/findings/{key}/review", response=list[RunFindingOut], auth=OPERATORS)  # type: ignore[valid-type]
def review(request: HttpRequest, number: int, key: str, payload: ReviewIn) -> HttpResponse:
    """Confirm or dismiss a finding, also in other runs of the plan. The answer is all findings. Safe to repeat."""
    run = run_with(number)
    review_finding(of=run, key=key, verdict=payload.verdict, reason=payload.reason, by=operator(request))
    return _of(run)


@router.delete("/runs/{number}/findings/{key}/review", response=list[RunFindingOut], auth=OPERATORS)  # type: ignore[valid-type]
def no_review(request: HttpRequest, number: int, key: str) -> HttpResponse:
    """Take back the review of a finding. The answer is all findings. Safe to repeat."""
    run = run_with(number)
    undo_review(of=run, key=key, by=operator(request))
    return _of(run)


@router.get("/imports/{int:number}/findings", response=list[ImportFindingOut])  # type: ignore[valid-type]
def import_findings(request: HttpRequest, number: int) -> HttpResponse:
    """All findings of an import, the most important first, also dismissed ones. Empty until they are made, within
    seconds after its end."""
    return _json(findings_of_import(import_with(number)))


@router.put(
    "/imports/{int:number}/findings/{key}/review",
    response=list[ImportFindingOut],  # type: ignore[valid-type]
    auth=OPERATORS,
)
def import_review(request: HttpRequest, number: int, key: str, payload: ReviewIn) -> HttpResponse:
    """Confirm or dismiss a finding of an import. The answer is all findings. Safe to repeat."""
    imported, by = import_with(number), operator(request)
    review_finding(of=imported, key=key, verdict=payload.verdict, reason=payload.reason, by=by)
    return _json(findings_of_import(imported))


@router.delete(
    "/imports/{int:number}/findings/{key}/review",
    response=list[ImportFindingOut],  # type: ignore[valid-type]
    auth=OPERATORS,
)
def no_import_review(request: HttpRequest, number: int, key: str) -> HttpResponse:
    """Take back the review of a finding of an import. The answer is all findings. Safe to repeat."""
    imported = import_with(number)
    undo_review(of=imported, key=key, by=operator(request))
    return _json(findings_of_import(imported))


def _of(run: Run) -> HttpResponse:
    return _json(reviewed(run, run_answer(run).findings))


def _json(findings: Sequence[RunFinding | ImportFinding]) -> HttpResponse:
    return HttpResponse(msgspec.json.encode(findings), content_type="application/json")
