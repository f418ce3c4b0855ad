"""The moves that runs, trials and attempts may make, and the one function for each that makes them.

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

from webapp.core.models import User
from webapp.runs.models import (
    ACTIVE_ATTEMPT_STATES,
    ENDED_TRIAL_STATES,
    Attempt,
    AttemptState,
    Move,
    Run,
    RunState,
    TargetLock,
    Trial,
    TrialState,
)
from webapp.runs.reasons import Fields

R, T, A = RunState, TrialState, AttemptState

ENDED_RUN_STATES = (R.DONE, R.FAILED, R.CANCELLED)

RUN_MOVES: Mapping[RunState, frozenset[RunState]] = {
    R.QUEUED: frozenset({R.RUNNING, R.PAUSED, *ENDED_RUN_STATES}),
    R.RUNNING: frozenset({R.PAUSED, R.CLOSING, *ENDED_RUN_STATES}),
    # back to what it was before: queued if it never began
    R.PAUSED: frozenset({R.QUEUED, R.RUNNING, R.CLOSING, *ENDED_RUN_STATES}),
    R.CLOSING: frozenset(ENDED_RUN_STATES),
    R.DONE: frozenset(),
    R.FAILED: frozenset(),
    R.CANCELLED: frozenset(),
}
TRIAL_MOVES: Mapping[TrialState, frozenset[TrialState]] = {
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
ATTEMPT_MOVES: Mapping[AttemptState, frozenset[AttemptState]] = {
    A.DISPATCHED: frozenset({A.ACCEPTED, A.RUNNING, A.DONE, A.FAILED, A.CANCELLED, A.LOST}),
    A.ACCEPTED: frozenset({A.RUNNING, A.DONE, A.FAILED, A.CANCELLED, A.LOST}),
    A.RUNNING: frozenset({A.DONE, A.FAILED, A.CANCELLED, A.LOST}),
    A.LOST: frozenset({A.DISPATCHED, A.ACCEPTED, A.RUNNING}),
    A.DONE: frozenset(),
    A.FAILED: frozenset(),
    A.CANCELLED: frozenset(),
}


class IllegalMove(Exception):
    """A move that no table allows: our bug."""


class StaleMove(Exception):
    """Somebody else moved it first: the row is no longer in the state it was read in."""


@dataclass(frozen=True)
class Why:
    """The cause of a move: see runs.reasons. `by` is the person who asked for it."""

    code: str
    fields: Fields
    by: User | None


@dataclass
class Later:
    """Moves of attempts and trials that are written together, with their history and the locks of what has ended.

    For who has locked the attempts and makes several moves in one transaction. Each row is changed only if it is still
    in the state that it had before the first of its moves.
    """

    _rows: dict[Attempt | Trial, tuple[str, set[str]]] = field(default_factory=dict)  # state before, changed columns
    _history: list[Move] = field(default_factory=list)
    _released: list[Attempt] = field(default_factory=list)

    def change(self, row: Attempt | Trial, **changes: object) -> None:
        """New values of columns, its state among them or not; the row in memory has them at once."""
        _, names = self._rows.setdefault(row, (row.state, set()))
        names.update(changes)
        _set(row, changes)

    def note(self, move: Move) -> None:
        self._history.append(move)

    def release(self, attempt: Attempt) -> None:
        """It holds nothing any more."""
        self._released.append(attempt)

    def write(self) -> None:
        """Inside a transaction. Raises StaleMove where another was first, and then it must end."""
        for row, (before, names) in self._rows.items():
            same = type(row)._default_manager.filter(pk=row.pk, state=before)
            if same.update(**{name: getattr(row, name) for name in sorted(names)}) != 1:
                raise _stale([row], before)
        if self._history:
            Move.objects.bulk_create(self._history)
        if self._released:
            TargetLock.objects.filter(attempt__in=self._released).delete()
        self._rows, self._history, self._released = {}, [], []


def move_run(run: Run, to: RunState, *, code: str = "", fields: Fields | None = None, by: User | None = None) -> None:
    """Move a run and write its history. Raises IllegalMove, or StaleMove where another was first."""
    before = RunState(run.state)
    if to not in RUN_MOVES[before]:
        raise IllegalMove(f"{run} may not go from {before} to {to}.")
    now = timezone.now()
    changes: dict[str, object] = {"state": to}
    if to is R.RUNNING:
        changes["started_at"] = run.started_at or now
    if to is R.PAUSED:
        changes["paused_at"] = now
    if before is R.PAUSED:
        changes |= {"paused_at": None, "paused_by": None, "pause_code": "", "pause_fields": {}}
    if to in ENDED_RUN_STATES:
        changes |= {"ended_at": now, "reason_code": code, "reason_fields": fields or {}, "queue_place": None}
    changed = Run.objects.filter(pk=run.pk, state=before).update(**changes)
    _set(run, changes)
    if changed != 1:
        raise _stale([run], before)
    Move.objects.create(run=run, before=before, after=to, by=by, code=code, fields=fields or {})


def move_trial(
    trial: Trial,
    to: TrialState,
    *,
    attempt: Attempt | None = None,
    code: str = "",
    fields: Fields | None = None,
    by: User | None = None,
    attempts_left: int | None = None,
    later: Later | None = None,
) -> None:
    """Move a trial and write its history, or leave that for later.

    Raises IllegalMove, or StaleMove where another was first.
    """
    if to not in TRIAL_MOVES[TrialState(trial.state)]:
        raise IllegalMove(f"Trial {trial.pk} may not go from {trial.state} to {to}.")
    also = {} if attempts_left is None else {"attempts_left": attempts_left}
    _move_trial(trial, to, Why(code, fields or {}, by), attempt, also, later)


def revive_trial(trial: Trial, to: TrialState, *, attempt: Attempt) -> None:
    """A lost attempt was heard again: its trial goes on where it was."""
    before = TrialState(trial.state)
    if to not in TRIAL_REVIVALS.get(before, ()) or (before is T.FAILED and trial.reason_code != "lease_expired"):
        raise IllegalMove(f"Trial {trial.pk} may not be revived from {before} to {to}.")
    _move_trial(trial, to, Why("revived", {}, None), attempt)


def _move_trial(
    trial: Trial,
    to: TrialState,
    why: Why,
    attempt: Attempt | None,
    also: Mapping[str, int] | None = None,
    later: Later | None = None,
) -> None:
    before, writing = TrialState(trial.state), later or Later()
    changes: dict[str, object] = {"state": to, **(also or {})}
    changes["ended_at"] = timezone.now() if to in ENDED_TRIAL_STATES else None
    explains = to in (T.FAILED, T.LOST, T.CANCELLED)
    changes |= {"reason_code": why.code if explains else "", "reason_fields": why.fields if explains else {}}
    writing.change(trial, **changes)
    writing.note(
        Move(
            run_id=trial.run_id,
            trial_id=trial.pk,
            attempt_id=attempt.pk if attempt else None,
            before=before,
            after=to,
            by_id=why.by.pk if why.by else None,
            code=why.code,
            fields=why.fields,
        )
    )
    if later is None:
        writing.write()


def cancel_planned_trials(run: Run) -> int:
    """Cancel everything of a run that was not sent yet, in two statements however many they are."""
    planned = list(run.trials.select_for_update(no_key=True).filter(state=T.PLANNED).order_by("index"))
    cancel_these(run, planned, code="run_cancelled_before")
    return len(planned)


def cancel_these(
    run: Run, planned: Sequence[Trial], *, code: str, fields: Fields | None = None, by: User | None = None
) -> None:
    """Cancel planned trials that the caller has locked. `by` is the person who skipped them."""
    fields = fields or {}
    Trial.objects.filter(pk__in=[trial.pk for trial in planned], state=T.PLANNED).update(
        state=T.CANCELLED, ended_at=timezone.now(), reason_code=code, reason_fields=fields, skipped_by=by
    )
    Move.objects.bulk_create(
        Move(run=run, trial=trial, before=T.PLANNED, after=T.CANCELLED, by=by, code=code, fields=fields)
        for trial in planned
    )


def move_attempt(
    attempt: Attempt, to: AttemptState, *, code: str = "", fields: Fields | None = None, later: Later | None = None
) -> None:
    """Move an attempt and set the time that belongs to the move, now or later. Its trial's moves are its history."""
    if to not in ATTEMPT_MOVES[AttemptState(attempt.state)]:
        raise IllegalMove(f"Attempt {attempt.pk} may not go from {attempt.state} to {to}.")
    writing = later or Later()
    writing.change(
        attempt, state=to, outcome_code=code, outcome_fields=fields or {}, **_attempt_times(attempt, to, timezone.now())
    )
    if later is None:
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


def _stale(rows: Sequence[Run | Trial | Attempt], before: str) -> StaleMove:
    others = f" or one of {len(rows) - 1} others" if len(rows) > 1 else ""
    return StaleMove(f"{rows[0]}{others} was not {before} any more when it was to become {rows[0].state}.")


def _set(row: object, changes: Mapping[str, object]) -> None:
    for name, value in changes.items():
        setattr(row, name, value)
