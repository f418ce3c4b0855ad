"""Mark trials and runs as invalid, and remove the mark."""

from uuid import UUID

from django.http import HttpRequest
from ninja import Field, Router

from webapp.api.common.authentication import OPERATORS, operator
from webapp.api.common.schemas import Input
from webapp.api.runs import RunOut, TrialOut, run_with
from webapp.results.selectors import (
    trial_with,
)
from webapp.results.validity import MAX_REASON_LENGTH, mark_run, mark_trial, trust_run, trust_trial
from webapp.runs.models import Run, Trial

router = Router(tags=["results"])


class ReasonIn(Input):
    reason: str = Field(max_length=MAX_REASON_LENGTH)


@router.post("/trials/{trial_id}/invalid", response=TrialOut, auth=OPERATORS)
def invalid_trial(request: HttpRequest, trial_id: UUID, payload: ReasonIn) -> Trial:
    """Mark a trial's results as invalid, with a reason. Safe to repeat; another reason replaces the first."""
    found = trial_with(str(trial_id))
    mark_trial(trial=found, reason=payload.reason, by=operator(request))
    return found


@router.delete("/trials/{trial_id}/invalid", response=TrialOut, auth=OPERATORS)
def valid_trial(request: HttpRequest, trial_id: UUID) -> Trial:
    """Remove the mark. Safe to repeat."""
    found = trial_with(str(trial_id))
    trust_trial(trial=found, by=operator(request))
    return found


@router.post("/runs/{number}/invalid", response=RunOut, auth=OPERATORS)
def invalid_run(request: HttpRequest, number: int, payload: ReasonIn) -> Run:
    """Mark all results of an ended run as invalid, with a reason."""
    found = run_with(number)
    mark_run(run=found, reason=payload.reason, by=operator(request))
    return found


@router.delete("/runs/{number}/invalid", response=RunOut, auth=OPERATORS)
def valid_run(request: HttpRequest, number: int) -> Run:
    """Remove the run's mark; trials that were marked separately stay invalid."""
    found = run_with(number)
    trust_run(run=found, by=operator(request))
    return found
