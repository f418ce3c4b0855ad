"""How trials, attempts and runs end, whoever finds out: a report, a lapsed lease, or a person."""

from collections.abc import Sequence
from uuid import UUID

from django.db import transaction

from webapp.core.services import audit
from webapp.hosts.models import HostState
from webapp.runs.dispatch.locks import drop_all, drop_locks
from webapp.runs.dispatch.stop_rule import STOPPED
from webapp.runs.models import (
    ENDED_TRIAL_STATES,
    Attempt,
    AttemptKind,
    AttemptState,
    Run,
    RunState,
    Trial,
    TrialState,
)
from webapp.runs.states import ENDED_RUN_STATES, cancel_planned_trials, move_attempt, move_run, move_trial

# The worker itself broke off or never began: nothing is known of the trial, and it is tried again like a lost one.
INTERRUPTIONS = frozenset({"worker_died", "worker_stopped", "order_expired", "order_unreadable"})


def end_attempt(attempt: Attempt, to: AttemptState, *, code: str = "", message: str = "") -> None:
    """End an active attempt and what hangs on it: its locks, its trial, and its run after a close-run order.

    Call inside a transaction that has locked the attempt.
    """
    if attempt.kind == AttemptKind.CLOSE_RUN and code in INTERRUPTIONS:
        to = AttemptState.LOST  # settings may still be changed: the order is sent again until there is an answer
    move_attempt(attempt, to, code=code, outcome=message)
    drop_locks(attempt)
    if attempt.trial is not None:
        _end_trial(attempt.trial, attempt, to, code, message)
    elif attempt.run_id is not None and to is not AttemptState.LOST:
        end_finished_run(attempt.run_id)


def _end_trial(trial: Trial, attempt: Attempt, to: AttemptState, code: str, message: str) -> None:
    if to is AttemptState.LOST or (to is AttemptState.FAILED and code in INTERRUPTIONS):
        lose_trial(trial, attempt, code=code, reason=message)
    elif to is AttemptState.CANCELLED and trial.skip_requested_at:
        _end_skipped(trial, attempt)
    else:
        move_trial(trial, TrialState(to.value), attempt=attempt, code=code, reason=message)


def _end_skipped(trial: Trial, attempt: Attempt) -> None:
    move_trial(trial, TrialState.CANCELLED, attempt=attempt, code="skipped", reason=trial.skip_reason)


def lose_trial(trial: Trial, attempt: Attempt, *, code: str, reason: str) -> None:
    """Lost: planned again if tries are left, but never by itself where the trial destroys what is on its target."""
    move_trial(trial, TrialState.LOST, attempt=attempt, code=code, reason=reason)
    trial.refresh_from_db(fields=["attempts_left", "skip_requested_at", "skip_reason"])
    if trial.skip_requested_at:
        _end_skipped(trial, attempt)
    elif Run.objects.filter(pk=trial.run_id, cancel_requested_at__isnull=False).exists():
        move_trial(trial, TrialState.CANCELLED, attempt=attempt, code="cancelled", reason="The run was cancelled.")
    elif trial.destructive:
        reason = f"{reason} It overwrites its target, so it is not tried again by itself: start a new run."
        move_trial(trial, TrialState.FAILED, attempt=attempt, code=code, reason=reason)
    elif trial.attempts_left > 0:
        move_trial(trial, TrialState.PLANNED, attempt=attempt, code=code, reason=reason)
    else:
        move_trial(trial, TrialState.FAILED, attempt=attempt, code=code, reason=reason)


@transaction.atomic
def end_finished_run(run_id: UUID) -> bool:
    """End the run if all its trials have ended and every host that got an order has put its settings back.

    False if not. Cancelled if a person cancelled it; failed if settings could not be put back, the stop rule left out
    trials or no trial is done; else done.
    """
    run = Run.objects.select_for_update(no_key=True).get(pk=run_id)
    if run.state in ENDED_RUN_STATES or run.trials.exclude(state__in=ENDED_TRIAL_STATES).exists():
        return False
    closings = _last_closings(run)
    if any(state is None for _, state, _ in closings):
        return False
    troubles = [f"{slug}: {outcome}" for slug, state, outcome in closings if state != AttemptState.DONE]
    state, code, reason = _verdict(run, troubles)
    if troubles:
        audit(by=None, action="run.settings_not_restored", subject=str(run), detail={"hosts": troubles})
    move_run(run, state, code=code, reason=reason)
    drop_all(run)
    return True


def _last_closings(run: Run) -> Sequence[tuple[str, str | None, str]]:
    """(host, state of its last close-run attempt, its words) of every host that was sent a trial.

    None where nothing was put back since the last trial: a run that was paused may have been closed before.
    """
    attempts = list(run.attempts.select_related("host").order_by("created_at"))
    closings: dict[UUID, tuple[str, str | None, str]] = {}
    for attempt in attempts:
        if attempt.host.state == HostState.REVOKED:
            closings[attempt.host_id] = (attempt.host.slug, AttemptState.LOST, "the host was revoked before it did so")
        elif attempt.kind == AttemptKind.CLOSE_RUN and attempt.ended_at and attempt.state != AttemptState.LOST:
            closings[attempt.host_id] = (attempt.host.slug, attempt.state, attempt.outcome)
        elif attempt.kind == AttemptKind.TRIAL:
            closings[attempt.host_id] = (attempt.host.slug, None, "")
    return list(closings.values())


def _verdict(run: Run, troubles: Sequence[str]) -> tuple[RunState, str, str]:
    if troubles:
        return RunState.FAILED, "settings_not_restored", "Settings were not put back. " + "; ".join(troubles)
    if run.cancel_requested_at:
        return RunState.CANCELLED, "cancelled", run.cancel_reason or "A person cancelled the run."
    if not run.trials.exclude(reason_code="skipped").exists():
        return RunState.CANCELLED, "skipped", "Every trial of it was skipped."
    if stopped := run.trials.filter(reason_code=STOPPED).count():
        words = f"Too many trials in a row failed: {stopped} of {run.trial_count} were not started."
        return RunState.FAILED, "stopped_by_failures", words
    if not run.trials.filter(state=TrialState.DONE).exists():
        return RunState.FAILED, "no_trial_done", "None of its trials was done; each says why."
    return RunState.DONE, "", ""


@transaction.atomic
def give_up_revoked(run: Run) -> None:
    """Trials on revoked hosts can neither begin nor go on."""
    for attempt in run.attempts.select_for_update(no_key=True, of=("self",)).filter(
        host__state=HostState.REVOKED, ended_at=None
    ):
        end_attempt(attempt, AttemptState.FAILED, code="host_revoked", message="The host was revoked.")
    for trial in run.trials.filter(host__state=HostState.REVOKED, state=TrialState.PLANNED):
        move_trial(trial, TrialState.CANCELLED, code="host_revoked", reason="The host was revoked.")


@transaction.atomic
def sweep_cancelled(run_id: UUID) -> None:
    """Cancel what became planned again while the run was being cancelled."""
    cancel_planned_trials(Run.objects.select_for_update(no_key=True).get(pk=run_id))
