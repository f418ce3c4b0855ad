"""What a person does to a run that is open: pause it, let it go on, skip trials, arm it again.

Each locks run, attempts and trials in this order, does nothing where it is done already, and refuses in words
where the state does not allow it.

While a run is paused nothing new is sent; the trial under way ends by itself. The run's settings stay for
PAUSE_RESTORE_SECONDS, unless another run wants the host, and are then put back; they are made anew when it goes on.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import timedelta

from django.conf import settings
from django.db import transaction
from django.utils import timezone

from webapp.core.errors import Refusal
from webapp.core.models import User
from webapp.core.services import audit
from webapp.runs.arming import arm, armed_targets, refuse_untyped
from webapp.runs.dispatch import dispatch_host
from webapp.runs.ending import settle_run
from webapp.runs.models import (
    ACTIVE_ATTEMPT_STATES,
    ACTIVE_TRIAL_STATES,
    Attempt,
    AttemptState,
    Run,
    RunState,
    Trial,
    TrialState,
)
from webapp.runs.reasons import Fields, sentence
from webapp.runs.services import UNACCEPTED_GRACE_SECONDS
from webapp.runs.states import ENDED_RUN_STATES, cancel_these, move_run

LONGEST_REASON = 500


@transaction.atomic
def pause_run(*, run: Run, by: User | None, code: str = "", fields: Fields | None = None) -> None:
    """Send nothing more of a run until it is resumed. Raises Refusal run_not_open.

    `code` and `fields` say why where no person pauses: see runs.reasons. A person who pauses such a run makes the pause
    theirs.
    """
    locked = _locked_open(run)
    if locked.state != RunState.PAUSED:
        move_run(locked, RunState.PAUSED, code=code or "paused", fields=fields, by=by)
    elif by is None or locked.paused_by_id is not None:
        return
    Run.objects.filter(pk=locked.pk).update(paused_by=by, pause_code=code, pause_fields=fields or {})
    audit(by=by, action="run.pause", on=locked, detail={"reason": sentence(code, fields or {})})
    run.refresh_from_db()


@transaction.atomic
def resume_run(*, run: Run, by: User | None) -> None:
    """Let a paused run go on. Raises Refusal run_not_open.

    What destroys must be armed again where the arming ended in a pause of more than ARMING_SECONDS. (The arming of a
    run that a person started never outlasts such a pause; that of a scheduled run may.)
    """
    locked = _locked_open(run)
    if locked.state == RunState.PAUSED:
        now = timezone.now()
        if locked.paused_at and now - locked.paused_at > timedelta(seconds=settings.ARMING_SECONDS):
            Run.objects.filter(pk=locked.pk, armed_until__lt=now).update(armed_until=None)
        before = RunState.RUNNING if locked.started_at else RunState.QUEUED
        move_run(locked, before, code="resumed", by=by)
        audit(by=by, action="run.resume", on=locked)
        _dispatch_after_commit(locked)
    run.refresh_from_db()


@dataclass(frozen=True)
class Skipped:
    """How many trials were not started, and how many are being stopped."""

    unstarted: int
    stopping: int


@transaction.atomic
def skip_trials(*, run: Run, numbers: Collection[int], reason: str, by: User | None) -> Skipped:
    """Do not start these trials of a run, and stop those that are under way.

    Raises Refusal run_not_open, trial_unknown, or trial_ended where none of them is left to be skipped.
    """
    locked, why = _locked_open(run), _checked(reason)
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
        settle_run(locked.pk)
        _dispatch_after_commit(locked)
    run.refresh_from_db()
    return Skipped(len(planned), len(under_way))


def _checked(reason: str) -> str:
    reason = reason.strip()
    if len(reason) > LONGEST_REASON:
        raise Refusal("reason_too_long", f"The reason may have {LONGEST_REASON} characters.")
    return reason


def _refuse_unskippable(trials: Sequence[Trial], numbers: Collection[int]) -> None:
    if len(trials) < len(set(numbers)) or not trials:
        raise Refusal("trial_unknown", "The run has no such trial.")
    if all(trial.ended_at and trial.reason_code != "skipped" for trial in trials):
        first = trials[0]
        raise Refusal("trial_ended", f"Trial {first.number} has ended: it is {first.get_state_display().lower()}.")


def _ask_to_stop(trials: Sequence[Trial], active: Sequence[Attempt], why: str, by: User | None) -> None:
    """The worker hears of it with its next report. An order that nobody accepted is not waited for a whole lease."""
    now = timezone.now()
    wanted = {trial.pk for trial in trials}
    Trial.objects.filter(pk__in=wanted).update(skip_requested_at=now, skip_reason=why, skipped_by=by)
    unaccepted = [one.pk for one in active if one.trial_id in wanted and one.state == AttemptState.DISPATCHED]
    until = now + timedelta(seconds=UNACCEPTED_GRACE_SECONDS)
    Attempt.objects.filter(pk__in=unaccepted, lease_until__gt=until).update(lease_until=until)


@transaction.atomic
def arm_run(*, run: Run, serials: Sequence[str], by: User | None) -> None:
    """Arm again what a run destroys, by the serials that a person typed.

    Raises Refusal run_not_open, nothing_to_arm or not_armed.
    """
    locked = _locked_open(run)
    targets = armed_targets(locked)
    if not targets:
        raise Refusal("nothing_to_arm", f"Nothing that run {locked.number} has left to do destroys anything.")
    refuse_untyped(targets, serials)
    arm(run=locked, serials=[target.arming_serial for target in targets], targets=targets, by=by)
    _dispatch_after_commit(locked)
    run.refresh_from_db()


def _locked_open(run: Run) -> Run:
    """The run, locked, if it may still be changed."""
    locked = Run.objects.select_for_update(no_key=True).get(pk=run.pk)
    if locked.state in ENDED_RUN_STATES:
        words = f"Run {locked.number} has ended: it is {locked.get_state_display().lower()}."
    elif locked.cancel_requested_at:
        words = f"Run {locked.number} is being cancelled."
    elif locked.state == RunState.CLOSING:
        words = f"All trials of run {locked.number} have ended; its settings are being put back."
    else:
        return locked
    raise Refusal("run_not_open", words)


def _dispatch_after_commit(run: Run) -> None:
    for host_id in run.trials.order_by().values_list("host_id", flat=True).distinct():
        transaction.on_commit(lambda host_id=host_id: dispatch_host(host_id))  # type: ignore[misc]
