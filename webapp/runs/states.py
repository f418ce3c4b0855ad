"""The allowed transitions of runs, trials and attempts, and the functions that make them.

Run      queued ──► running ──► closing ──► done | failed | cancelled
            │          ├── done | failed | cancelled   (no order was sent, so there are no settings to restore)
            └──► paused ──► queued | running | closing | done | failed | cancelled

Trial    planned ──► dispatched ──► accepted ──► running ──► done
            │            ├──────────────┴───────────┴──────► failed | cancelled
            │            └──────────────┴───────────┴──────► lost ──► planned | failed | cancelled
            └─► cancelled                                      │
         planned | failed ◄── revival of a lost attempt ───────┘
            └──► dispatched | accepted | running

Attempt  dispatched ──► accepted ──► running ──► done | failed | cancelled
              └─────────────┴───────────┴──────► lost ──► dispatched | accepted | running   (revival)

A trial on several hosts has one attempt on each. It is as far as the first of them, and ends with the last one: as done
if all are, else as the first attempt that was not done (runs.dispatch.ending).

A worker may skip steps that it had no time to report: dispatched ──► running | done.
Only `revive_trial` may make a failed trial run again, and only if an expired lease was the reason.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db import transaction
from django.utils import timezone

from webapp.core import tally
from webapp.core.errors import NotFound
from webapp.core.models import Counter, User
from webapp.runs.models import (
    ACTIVE_ATTEMPT_STATES,
    ENDED_TRIAL_STATES,
    Attempt,
    AttemptState,
    Run,
    RunState,
    Transition,
    Trial,
    TrialState,
)
from webapp.runs.reasons import Fields

R, T, A = RunState, TrialState, AttemptState

ENDED_RUN_STATES = (R.DONE, R.FAILED, R.CANCELLED)

RUN_TRANSITIONS: Mapping[RunState, frozenset[RunState]] = {
    R.QUEUED: frozenset({R.RUNNING, R.PAUSED, *ENDED_RUN_STATES}),
    R.RUNNING: frozenset({R.PAUSED, R.CLOSING, *ENDED_RUN_STATES}),
    # back to the state before: queued if it never started
    R.PAUSED: frozenset({R.QUEUED, R.RUNNING, R.CLOSING, *ENDED_RUN_STATES}),
    R.CLOSING: frozenset(ENDED_RUN_STATES),
    R.DONE: frozenset(),
    R.FAILED: frozenset(),
    R.CANCELLED: frozenset(),
}
TRIAL_TRANSITIONS: Mapping[TrialState, frozenset[TrialState]] = {
    T.PLANNED: frozenset({T.DISPATCHED, T.CANCELLED}),
    T.DISPATCHED: frozenset({T.ACCEPTED, T.RUNNING, T.DONE, T.FAILED, T.CANCELLED, T.LOST}),
    T.ACCEPTED: frozenset({T.RUNNING, T.DONE, T.FAILED, T.CANCELLED, T.LOST}),
    T.RUNNING: frozenset({T.DONE, T.FAILED, T.CANCELLED, T.LOST}),
    T.LOST: frozenset({T.PLANNED, T.FAILED, T.CANCELLED}),
    T.DONE: frozenset(),
    T.FAILED: frozenset(),
    T.CANCELLED: frozenset(),
}
# Only by `revive_trial`.
TRIAL_REVIVALS: Mapping[TrialState, frozenset[TrialState]] = {
    T.PLANNED: frozenset({T.DISPATCHED, T.ACCEPTED, T.RUNNING}),
    T.FAILED: frozenset({T.DISPATCHED, T.ACCEPTED, T.RUNNING}),
}
ATTEMPT_TRANSITIONS: Mapping[AttemptState, frozenset[AttemptState]] = {
    A.DISPATCHED: frozenset({A.ACCEPTED, A.RUNNING, A.DONE, A.FAILED, A.CANCELLED, A.LOST}),
    A.ACCEPTED: frozenset({A.RUNNING, A.DONE, A.FAILED, A.CANCELLED, A.LOST}),
    A.RUNNING: frozenset({A.DONE, A.FAILED, A.CANCELLED, A.LOST}),
    A.LOST: frozenset({A.DISPATCHED, A.ACCEPTED, A.RUNNING}),
    A.DONE: frozenset(),
    A.FAILED: frozenset(),
    A.CANCELLED: frozenset(),
}


class IllegalTransition(Exception):
    """A transition that is not in the tables: our bug."""


class StaleTransition(Exception):
    """Another transaction was first: the row's state has changed since it was read."""


@dataclass(frozen=True)
class Why:
    """The cause of a transition: see runs.reasons. `by` is the person who asked for it."""

    code: str
    fields: Fields
    by: User | None


def locked_run(run: Run, *, no_key: bool = True) -> Run:
    """The current row of the run, locked until this transaction ends. Raises NotFound if it was deleted meanwhile.

    `no_key`: rows that refer to the run may be added meanwhile. Not while it is deleted.
    """
    locked = Run.objects.select_for_update(no_key=no_key).filter(pk=run.pk).first()
    if locked is None:
        raise NotFound("run_unknown", f"Run {run.number} was deleted.")
    return locked


def transition_run(
    run: Run, to: RunState, *, code: str = "", fields: Fields | None = None, by: User | None = None
) -> None:
    """Change the state of a run and write its history. Raises IllegalTransition or StaleTransition."""
    before = RunState(run.state)
    if to not in RUN_TRANSITIONS[before]:
        raise IllegalTransition(f"{run} may not go from {before} to {to}.")
    now = timezone.now()
    changes: dict[str, object] = {"state": to}
    if to is R.RUNNING:
        changes["started_at"] = run.started_at or now
    if to is R.PAUSED:
        changes["paused_at"] = now
    if before is R.PAUSED:
        changes |= {"paused_at": None, "paused_by": None, "pause_code": "", "pause_fields": {}}
    if to in ENDED_RUN_STATES:
        changes |= {"ended_at": now, "reason_code": code, "reason_fields": fields or {}, "queue_position": None}
    _update(run, changes)
    Transition.objects.create(run=run, before=before, after=to, by=by, code=code, fields=fields or {})


def transition_trial(
    trial: Trial,
    to: TrialState,
    *,
    attempt: Attempt | None = None,
    code: str = "",
    fields: Fields | None = None,
    by: User | None = None,
    attempts_left: int | None = None,
) -> None:
    """Change the state of a trial and write its history. Raises IllegalTransition or StaleTransition."""
    if to not in TRIAL_TRANSITIONS[TrialState(trial.state)]:
        raise IllegalTransition(f"Trial {trial.pk} may not go from {trial.state} to {to}.")
    also = {} if attempts_left is None else {"attempts_left": attempts_left}
    _move_trial(trial, to, Why(code, fields or {}, by), attempt, also)


def revive_trial(trial: Trial, to: TrialState, *, attempt: Attempt) -> None:
    """Revive a trial in its earlier state, because its lost attempt reported again."""
    before = TrialState(trial.state)
    if to not in TRIAL_REVIVALS.get(before, ()) or (before is T.FAILED and trial.reason_code != "lease_expired"):
        raise IllegalTransition(f"Trial {trial.pk} may not be revived from {before} to {to}.")
    _move_trial(trial, to, Why("revived", {}, None), attempt)


def _move_trial(
    trial: Trial,
    to: TrialState,
    why: Why,
    attempt: Attempt | None,
    also: Mapping[str, int] | None = None,
) -> None:
    before = TrialState(trial.state)
    changes: dict[str, object] = {"state": to, **(also or {})}
    changes["ended_at"] = timezone.now() if to in ENDED_TRIAL_STATES else None
    explains = to in (T.FAILED, T.LOST, T.CANCELLED)
    changes |= {"reason_code": why.code if explains else "", "reason_fields": why.fields if explains else {}}
    _update(trial, changes)
    Transition.objects.create(
        run_id=trial.run_id,
        trial_id=trial.pk,
        attempt_id=attempt.pk if attempt else None,
        before=before,
        after=to,
        by=why.by,
        code=why.code,
        fields=why.fields,
    )
    if to in (T.FAILED, T.LOST):
        transaction.on_commit(lambda: tally.add(Counter.FAILED, why.code))


def cancel_planned_trials(run: Run) -> int:
    """Cancel all trials of a run that were not sent yet. Two statements."""
    planned = list(run.trials.select_for_update(no_key=True).filter(state=T.PLANNED).order_by("index"))
    cancel_these(run, planned, code="run_cancelled_before")
    return len(planned)


def cancel_these(
    run: Run, planned: Sequence[Trial], *, code: str, fields: Fields | None = None, by: User | None = None
) -> None:
    """Cancel these planned trials, which the caller has locked. `by` is the person who skipped them."""
    fields = fields or {}
    Trial.objects.filter(pk__in=[trial.pk for trial in planned], state=T.PLANNED).update(
        state=T.CANCELLED, ended_at=timezone.now(), reason_code=code, reason_fields=fields, skipped_by=by
    )
    Transition.objects.bulk_create(
        Transition(run=run, trial=trial, before=T.PLANNED, after=T.CANCELLED, by=by, code=code, fields=fields)
        for trial in planned
    )


def transition_attempt(attempt: Attempt, to: AttemptState, *, code: str = "", fields: Fields | None = None) -> None:
    """Change the state of an attempt and set the time of the change. Its history is its trial's."""
    if to not in ATTEMPT_TRANSITIONS[AttemptState(attempt.state)]:
        raise IllegalTransition(f"Attempt {attempt.pk} may not go from {attempt.state} to {to}.")
    times = _attempt_times(attempt, to, timezone.now())
    _update(attempt, {"state": to, "outcome_code": code, "outcome_fields": fields or {}, **times})


def _attempt_times(attempt: Attempt, to: AttemptState, now: datetime) -> dict[str, datetime | None]:
    if to not in ACTIVE_ATTEMPT_STATES:
        return {"ended_at": now}
    times: dict[str, datetime | None] = {"ended_at": None}
    if to in (A.ACCEPTED, A.RUNNING):
        times["accepted_at"] = attempt.accepted_at or now
    if to is A.RUNNING:
        times["started_at"] = attempt.started_at or now
    return times


def _update(row: Run | Trial | Attempt, changes: Mapping[str, object]) -> None:
    """Write the changes if the row still has its old state, and update the object. Raises StaleTransition."""
    before = row.state
    changed = type(row)._default_manager.filter(pk=row.pk, state=before).update(**changes)
    for name, value in changes.items():
        setattr(row, name, value)
    if changed != 1:
        raise StaleTransition(f"{row} was no longer {before} when it was to become {row.state}.")
