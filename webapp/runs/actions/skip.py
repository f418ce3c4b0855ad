"""Skip trials of a run."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import timedelta

from django.db import transaction
from django.utils import timezone

from webapp.core.errors import NotFound, Refusal
from webapp.core.models import User
from webapp.core.services import audit
from webapp.runs.actions.open_run import locked_open_run
from webapp.runs.dispatch.dispatcher import dispatch_after_commit
from webapp.runs.dispatch.ending import UNACCEPTED_GRACE_SECONDS, end_finished_run
from webapp.runs.models import (
    ACTIVE_ATTEMPT_STATES,
    ACTIVE_TRIAL_STATES,
    Attempt,
    AttemptState,
    Run,
    Trial,
    TrialState,
)
from webapp.runs.states import cancel_these

MAX_REASON_LENGTH = 500


@dataclass(frozen=True)
class Skipped:
    """The numbers of trials that will not start and of trials that are being stopped."""

    unstarted: int
    stopping: int


@transaction.atomic
def skip_trials(*, run: Run, numbers: Collection[int], reason: str, by: User | None) -> Skipped:
    """Cancel planned trials of a run, and stop running ones.

    Raises Refusal run_not_open, trial_unknown, or trial_ended if all of them have ended.
    """
    locked, why = locked_open_run(run), _checked(reason)
    wanted = locked.trials.numbered(*numbers)
    attempts = Attempt.objects.select_for_update(no_key=True).filter(run=locked, trial__in=wanted.order_by())
    active = list(attempts.filter(state__in=ACTIVE_ATTEMPT_STATES))
    trials = list(wanted.select_for_update(no_key=True).order_by("index"))
    _refuse_unskippable(trials, numbers)
    planned = [trial for trial in trials if trial.state == TrialState.PLANNED]
    under_way = [trial for trial in trials if trial.state in ACTIVE_TRIAL_STATES and not trial.skip_requested_at]
    cancel_these(locked, planned, code="skipped", fields={"why": why} if why else {}, by=by)
    _ask_to_stop(under_way, active, why, by)
    if planned or under_way:
        detail = {"trials": [trial.number for trial in (*planned, *under_way)], "reason": why}
        audit(by=by, action="run.skip", on=locked, detail=detail)
        end_finished_run(locked.pk)
        dispatch_after_commit(locked)
    run.refresh_from_db()
    return Skipped(len(planned), len(under_way))


def _checked(reason: str) -> str:
    reason = reason.strip()
    if len(reason) > MAX_REASON_LENGTH:
        raise Refusal("reason_too_long", f"The reason may have at most {MAX_REASON_LENGTH} characters.")
    return reason


def _refuse_unskippable(trials: Sequence[Trial], numbers: Collection[int]) -> None:
    if len(trials) < len(set(numbers)) or not trials:
        raise NotFound("trial_unknown", "The run has no such trial.")
    if all(trial.ended_at and trial.reason_code != "skipped" for trial in trials):
        first = trials[0]
        raise Refusal("trial_ended", f"Trial {first.number} has ended: it is {first.get_state_display().lower()}.")


def _ask_to_stop(trials: Sequence[Trial], active: Sequence[Attempt], why: str, by: User | None) -> None:
    """Request the stop: the worker receives it with its next report. The lease of an unaccepted order is shortened."""
    now = timezone.now()
    wanted = {trial.pk for trial in trials}
    Trial.objects.filter(pk__in=wanted).update(skip_requested_at=now, skip_reason=why, skipped_by=by)
    unaccepted = [one.pk for one in active if one.trial_id in wanted and one.state == AttemptState.DISPATCHED]
    until = now + timedelta(seconds=UNACCEPTED_GRACE_SECONDS)
    Attempt.objects.filter(pk__in=unaccepted, lease_until__gt=until).update(lease_until=until)
