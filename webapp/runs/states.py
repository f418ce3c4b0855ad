"""The transitions between states of runs, trials and attempts, and the one function for each that makes them.

Run      queued ──► running ──► closing ──► done | failed | cancelled
            │          ├── done | failed | cancelled   (no order was ever sent, so nothing is to be put back)
            └──► paused ──► queued | running | closing | done | failed | cancelled

Trial    planned ──► dispatched ──► accepted ──► running ──► done
            │            ├──────────────┴───────────┴──────► failed | cancelled
            │            └──────────────┴───────────┴──────► lost ──► planned | failed | cancelled
            └─► cancelled                                      │
         planned | failed ◄── revival of a lost attempt ───────┘
            └──► dispatched | accepted | running

Attempt  dispatched ──► accepted ──► running ──► done | failed | cancelled
              └─────────────┴───────────┴──────► lost ──► dispatched | accepted | running   (revival)

A worker may skip steps that it had no time to report: dispatched ──► running | done.
A revival makes a failed trial run again; `revive_trial` alone may do that, and only where the lease was the failure.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from django.utils import timezone

from webapp.runs.models import (
    ACTIVE_ATTEMPT_STATES,
    ENDED_TRIAL_STATES,
    Attempt,
    AttemptState,
    Run,
    RunState,
    TargetLock,
    Transition,
    Trial,
    TrialState,
)

R, T, A = RunState, TrialState, AttemptState

ENDED_RUN_STATES = (R.DONE, R.FAILED, R.CANCELLED)

RUN_TRANSITIONS: Mapping[RunState, frozenset[RunState]] = {
    R.QUEUED: frozenset({R.RUNNING, R.PAUSED, *ENDED_RUN_STATES}),
    R.RUNNING: frozenset({R.PAUSED, R.CLOSING, *ENDED_RUN_STATES}),
    # back to what it was before: queued if it never began
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
    """A transition that no table allows: our bug."""


class StaleTransition(Exception):
    """Another transaction was first: the row is no longer in the state it was read in."""


@dataclass
class UnitOfWork:
    """Transitions of attempts and trials that are written together, with their history and the locks of ended attempts.

    The caller has locked the attempts. A row is changed only if it is still in the state before its first transition.
    """

    _rows: dict[Attempt | Trial, tuple[str, set[str]]] = field(default_factory=dict)  # state before, changed columns
    _history: list[Transition] = field(default_factory=list)
    _released: list[Attempt] = field(default_factory=list)

    def change(self, row: Attempt | Trial, **changes: object) -> None:
        """Set columns, with or without the state; the row in memory has the values at once."""
        _, names = self._rows.setdefault(row, (row.state, set()))
        names.update(changes)
        _set(row, changes)

    def record(self, transition: Transition) -> None:
        self._history.append(transition)

    def release(self, attempt: Attempt) -> None:
        """Delete the locks of the attempt."""
        self._released.append(attempt)

    def write(self) -> None:
        """Write everything, inside a transaction. Raises StaleTransition; then the transaction must end."""
        for row, (before, names) in self._rows.items():
            same = type(row)._default_manager.filter(pk=row.pk, state=before)
            if same.update(**{name: getattr(row, name) for name in sorted(names)}) != 1:
                raise _stale([row], before)
        if self._history:
            Transition.objects.bulk_create(self._history)
        if self._released:
            TargetLock.objects.filter(attempt__in=self._released).delete()
        self._rows, self._history, self._released = {}, [], []


def move_run(run: Run, to: RunState, *, code: str = "", reason: str = "") -> None:
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
        changes |= {"paused_at": None, "paused_by": None, "pause_reason": ""}
    if to in ENDED_RUN_STATES:
        changes |= {"ended_at": now, "reason_code": code, "reason": reason, "queue_position": None}
    changed = Run.objects.filter(pk=run.pk, state=before).update(**changes)
    _set(run, changes)
    if changed != 1:
        raise _stale([run], before)
    Transition.objects.create(run=run, before=before, after=to, code=code, reason=reason)


def move_trial(
    trial: Trial,
    to: TrialState,
    *,
    attempt: Attempt | None = None,
    code: str = "",
    reason: str = "",
    attempts_left: int | None = None,
    unit: UnitOfWork | None = None,
) -> None:
    """Change the state of a trial and write its history. Raises IllegalTransition or StaleTransition."""
    if to not in TRIAL_TRANSITIONS[TrialState(trial.state)]:
        raise IllegalTransition(f"Trial {trial.pk} may not go from {trial.state} to {to}.")
    also = {} if attempts_left is None else {"attempts_left": attempts_left}
    _move_trial(trial, to, attempt, code, reason, also, unit)


def revive_trial(trial: Trial, to: TrialState, *, attempt: Attempt) -> None:
    """Take a trial up again where it was, because its lost attempt reported again."""
    before = TrialState(trial.state)
    if to not in TRIAL_REVIVALS.get(before, ()) or (before is T.FAILED and trial.reason_code != "lease_expired"):
        raise IllegalTransition(f"Trial {trial.pk} may not be revived from {before} to {to}.")
    _move_trial(trial, to, attempt, "revived", "The lost attempt reported again.")


def _move_trial(
    trial: Trial,
    to: TrialState,
    attempt: Attempt | None,
    code: str,
    reason: str,
    also: Mapping[str, int] | None = None,
    unit: UnitOfWork | None = None,
) -> None:
    before, writing = TrialState(trial.state), unit or UnitOfWork()
    changes: dict[str, object] = {"state": to, **(also or {})}
    changes["ended_at"] = timezone.now() if to in ENDED_TRIAL_STATES else None
    explains = to in (T.FAILED, T.LOST, T.CANCELLED)
    changes |= {"reason_code": code if explains else "", "reason": reason if explains else ""}
    writing.change(trial, **changes)
    writing.record(
        Transition(
            run_id=trial.run_id,
            trial_id=trial.pk,
            attempt_id=attempt.pk if attempt else None,
            before=before,
            after=to,
            code=code,
            reason=reason,
        )
    )
    if unit is None:
        writing.write()


def cancel_planned_trials(run: Run) -> int:
    """Cancel all trials of a run that were not sent yet. Two statements."""
    planned = list(run.trials.select_for_update(no_key=True).filter(state=T.PLANNED).order_by("index"))
    cancel_these(run, planned, code="cancelled", reason="The run was cancelled before this trial began.")
    return len(planned)


def cancel_these(run: Run, planned: Sequence[Trial], *, code: str, reason: str) -> None:
    """Cancel these planned trials, which the caller has locked."""
    Trial.objects.filter(pk__in=[trial.pk for trial in planned], state=T.PLANNED).update(
        state=T.CANCELLED, ended_at=timezone.now(), reason_code=code, reason=reason
    )
    Transition.objects.bulk_create(
        Transition(run=run, trial=trial, before=T.PLANNED, after=T.CANCELLED, code=code, reason=reason)
        for trial in planned
    )


def move_attempt(
    attempt: Attempt, to: AttemptState, *, code: str = "", outcome: str = "", unit: UnitOfWork | None = None
) -> None:
    """Change the state of an attempt and set the time of that. Its history is that of its trial."""
    if to not in ATTEMPT_TRANSITIONS[AttemptState(attempt.state)]:
        raise IllegalTransition(f"Attempt {attempt.pk} may not go from {attempt.state} to {to}.")
    writing = unit or UnitOfWork()
    writing.change(attempt, state=to, outcome_code=code, outcome=outcome, **_attempt_times(attempt, to, timezone.now()))
    if unit is None:
        writing.write()


def _attempt_times(attempt: Attempt, to: AttemptState, now: datetime) -> dict[str, datetime | None]:
    if to not in ACTIVE_ATTEMPT_STATES:
        return {"ended_at": now}
    times: dict[str, datetime | None] = {"ended_at": None}
    if to in (A.ACCEPTED, A.RUNNING):
        times["accepted_at"] = attempt.accepted_at or now
    if to is A.RUNNING:
        times["started_at"] = attempt.started_at or now
    return times


def _stale(rows: Sequence[Run | Trial | Attempt], before: str) -> StaleTransition:
    others = f" or one of {len(rows) - 1} others" if len(rows) > 1 else ""
    return StaleTransition(f"{rows[0]}{others} was not {before} any more when it was to become {rows[0].state}.")


def _set(row: object, changes: Mapping[str, object]) -> None:
    for name, value in changes.items():
        setattr(row, name, value)
