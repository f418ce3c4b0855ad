"""Results that a person does not trust: marked with a reason, left out by default, never deleted.

A trial is marked on its own, or with its whole run; taking back the mark of a run leaves those of its trials.
Only what has ended can be marked: its results are all there, and none is added afterwards.
"""

from django.db import transaction
from django.db.models import Exists, OuterRef, Q

from webapp.core.errors import Refusal
from webapp.core.models import Counter, User
from webapp.core.services import audit, count, counted
from webapp.results.models import Result
from webapp.runs.models import Run, Trial, TrialState
from webapp.runs.states import ENDED_RUN_STATES, locked_run

MAX_REASON_LENGTH = 500


@transaction.atomic
def mark_trial(*, trial: Trial, reason: str, by: User | None) -> None:
    """Mark a trial's results as not to be trusted. Raises Refusal reason_missing or trial_not_done."""
    reason = _checked(reason)
    locked = _locked_trial(trial)
    if locked.state != TrialState.DONE:
        raise Refusal("trial_not_done", "Only a completed trial has results. Choose a trial in the state done.")
    if locked.invalid_reason != reason:
        _change_trial(locked, reason)
        audit(by=by, action="trial.invalid", on=locked, detail={"reason": reason})
    trial.invalid_reason = reason


@transaction.atomic
def trust_trial(*, trial: Trial, by: User | None) -> None:
    """Take back the mark of a trial. Raises Refusal run_invalid where its whole run is marked."""
    locked = _locked_trial(trial)
    if locked.invalid_reason:
        audit(by=by, action="trial.valid", on=locked, detail={"reason": locked.invalid_reason})
        _change_trial(locked, "")
    elif locked.run.invalid_reason:
        words = f"Run {locked.run.number} is marked as invalid as a whole. Remove that mark on the run's page."
        raise Refusal("run_invalid", words)
    trial.invalid_reason = ""


@transaction.atomic
def mark_run(*, run: Run, reason: str, by: User | None) -> None:
    """Mark all results of a run. Raises Refusal reason_missing or run_not_ended."""
    reason = _checked(reason)
    locked = locked_run(run)
    if locked.state not in ENDED_RUN_STATES:
        raise Refusal("run_not_ended", "A run that is still open cannot be marked as a whole; cancel it first.")
    if locked.invalid_reason != reason:
        _change_run(locked, reason)
        audit(by=by, action="run.invalid", on=locked, detail={"reason": reason})
    run.invalid_reason = reason


@transaction.atomic
def trust_run(*, run: Run, by: User | None) -> None:
    """Take back the mark of a run; trials that were marked on their own stay marked."""
    locked = locked_run(run)
    if locked.invalid_reason:
        audit(by=by, action="run.valid", on=locked, detail={"reason": locked.invalid_reason})
        _change_run(locked, "")
    run.invalid_reason = ""


def _checked(reason: str) -> str:
    words = reason.strip()
    if not words:
        raise Refusal("reason_missing", "Enter a reason. It is shown next to the numbers that are struck through.")
    if len(words) > MAX_REASON_LENGTH:
        raise Refusal("reason_too_long", f"The reason may have at most {MAX_REASON_LENGTH} characters.")
    return words


def _locked_trial(trial: Trial) -> Trial:
    """The run first, as everybody locks; then nobody can mark the run in between."""
    locked_run(trial.run)
    return Trial.objects.select_for_update(no_key=True, of=("self",)).select_related("run").get(pk=trial.pk)


def _change_trial(trial: Trial, reason: str) -> None:
    trial.invalid_reason = reason
    trial.save(update_fields=["invalid_reason"])
    Result.objects.filter(trial=trial).update(invalid=bool(trial.why_invalid))
    _tell(trial.run)


def _change_run(run: Run, reason: str) -> None:
    run.invalid_reason = reason
    run.save(update_fields=["invalid_reason"])
    marked = Exists(Trial.objects.filter(pk=OuterRef("trial_id")).exclude(invalid_reason=""))
    Result.objects.filter(run=run).update(invalid=Q(marked) if not reason else True)
    _tell(run)


def _tell(run: Run) -> None:
    """Pages that are open find by these numbers that a mark was set or taken back."""
    count(Counter.MARKS, str(run.number))
    count(Counter.MARKS, "")


def marks_changed(run: str = "") -> int:
    """How often marks of a run (its number), or of any, were set or taken back: what is asked for by open pages."""
    return counted(Counter.MARKS, run)
