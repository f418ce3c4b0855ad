"""Actions on a run: skip trials, start it again, move it in the queue, pause, resume, arm and disarm."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import timedelta
from uuid import UUID

from django.conf import settings
from django.db import transaction
from django.db.models import Q
from django.utils import timezone

from webapp.core.errors import NotFound, Refusal
from webapp.core.models import User
from webapp.core.services import audit
from webapp.hosts.models import Target
from webapp.plans.expand import PlannedTrial
from webapp.runs.arming import arm, armed_targets, is_armed, refuse_untyped
from webapp.runs.dispatch.dispatcher import dispatch_after_commit
from webapp.runs.dispatch.ending import STOPPED, UNACCEPTED_GRACE_SECONDS, end_finished_run
from webapp.runs.dispatch.loads import NO_MAXIMUM, maxima_of
from webapp.runs.dispatch.queue import lock_queue, queued_runs
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
from webapp.runs.services import StartOptions, start_run
from webapp.runs.states import ENDED_RUN_STATES, cancel_these, locked_run, transition_run

# Starts a run again: the same plan version on the same targets, all trials or the failed ones.
#
# Trials that the failure limit cancelled count as failed, and so do shares of the load without a maximum. The `max`
# trials of failed shares run again, too.

Key = tuple[str, str, str, int]
_FAILED = Q(state=TrialState.FAILED) | Q(reason_code__in=[STOPPED, NO_MAXIMUM])


def run_again(
    *,
    run: Run,
    by: User | None,
    same_seed: bool = False,
    only_failed: bool = False,
    armed: Sequence[str] = (),
    note: str = "",
    request_id: UUID | None = None,
) -> Run:
    """Start the run again. Raises Refusal nothing_failed, and StartRefused like any start.

    The same seed repeats the order of the trials; a new seed shuffles them again.
    """
    failed = _failed(run)
    if only_failed and not failed:
        raise Refusal("nothing_failed", f"No trial of run {run.number} failed.")
    maxima = _maxima(run) if only_failed else set()
    keep = (lambda trial: _key(trial) in failed or _key(trial)[:3] in maxima) if only_failed else None
    return start_run(
        version=run.version,
        targets=_as_chosen(run),
        by=by,
        armed=armed,
        seed=run.seed if same_seed else None,
        note=note,
        options=StartOptions(again_of=run, keep=keep, request_id=request_id, label=run.label),
    )


def _as_chosen(run: Run) -> list[Target]:
    """The run's targets, in the order that determines groups of targets at once."""
    places = {pk: place for place, pk in enumerate(run.target_order)}
    return sorted(run.targets.all(), key=lambda target: places.get(str(target.pk), len(places)))


def _failed(run: Run) -> set[Key]:
    rows = run.trials.filter(_FAILED).values_list("target", "part", "point_key", "repeat")
    return {(str(target), part, point_key, repeat) for target, part, point_key, repeat in rows}


def _maxima(run: Run) -> set[tuple[str, str, str]]:
    """The points whose maximum the failed shares of the load need."""
    failed = run.trials.filter(_FAILED).select_related("target").prefetch_related("further")
    return {(str(target), part, key) for trial in failed for target, part, key in maxima_of(trial).values()}


def _key(trial: PlannedTrial) -> Key:
    return trial.target_id, trial.part, trial.point_key, trial.repeat


# Move a run in the queue.


@transaction.atomic
def move_in_queue(*, run: Run, before: Run | None = None, after: Run | None = None, by: User | None) -> None:
    """Move a run directly before or after another one. Safe to repeat.

    Raises Refusal not_waiting if one of them is not in the queue.
    """
    other = before or after
    if other is None:
        raise Refusal("position_missing", "Choose the run before or after which to place it.")
    lock_queue()
    order = list(queued_runs().select_for_update(no_key=True, of=("self",)))
    for each in (run, other):
        if each not in order:
            raise Refusal("not_waiting", f"Run {each.number} is not in the queue.")
    if run == other:
        return
    moved = [each for each in order if each != run]
    moved.insert(moved.index(other) + (before is None), next(each for each in order if each == run))
    if moved == order:
        return
    for position, each in enumerate(moved, start=1):
        each.queue_position = position
    Run.objects.bulk_update(moved, ["queue_position"])
    audit(by=by, action="run.move", on=run, detail={"before" if before else "after": other.number})


# Pause a run and resume it.
#
# While a run is paused, no new trial is sent; the current trial continues to its end. The run's settings are restored
# after PAUSE_RESTORE_SECONDS, or earlier if another run needs the host; they are applied again on resume.

# Arm a run again, and disarm it.

# The run that an action changes.


def locked_open_run(run: Run) -> Run:
    """The run, locked, if it may still be changed."""
    locked = locked_run(run)
    if locked.state in ENDED_RUN_STATES:
        words = f"Run {locked.number} has ended: it is {locked.get_state_display().lower()}."
    elif locked.cancel_requested_at:
        words = f"Run {locked.number} is being cancelled."
    elif locked.state == RunState.CLOSING:
        words = f"All trials of run {locked.number} have ended; its settings are being restored."
    else:
        return locked
    raise Refusal("run_not_open", words)


@transaction.atomic
def arm_run(*, run: Run, serials: Sequence[str], by: User | None) -> None:
    """Arm a run again with the serial numbers that a person typed.

    Raises Refusal run_not_open, nothing_to_arm, not_armed or token_may_not_arm.
    """
    locked = locked_open_run(run)
    targets = armed_targets(locked)
    if not targets:
        raise Refusal(
            "nothing_to_arm", f"The remaining trials of run {locked.number} overwrite nothing. Arming is not needed."
        )
    refuse_untyped(targets, serials, by=by)
    arm(run=locked, serials=[target.arming_serial for target in targets], targets=targets, by=by)
    dispatch_after_commit(locked)
    run.refresh_from_db()


@transaction.atomic
def disarm_run(*, run: Run, by: User | None) -> bool:
    """Disarm a run: it overwrites nothing until somebody arms it again. False if it was not armed.

    The current trial continues to its end: to stop it, skip it or cancel the run.
    """
    locked = locked_run(run)
    if not is_armed(locked) or locked.ended_at:
        return False
    locked.armed_until = None
    locked.save(update_fields=["armed_until"])
    audit(by=by, action="run.disarm", on=locked, detail={"serials": locked.armed_serials})
    run.refresh_from_db()
    return True


@transaction.atomic
def pause_run(*, run: Run, by: User | None, code: str = "", fields: Fields | None = None) -> None:
    """Pause a run: send no more trials until it is resumed. Raises Refusal run_not_open.

    `code` and `fields` are the reason of an automatic pause: see runs.reasons. If a person pauses such a run, it counts
    as paused by that person.
    """
    locked = locked_open_run(run)
    if locked.state != RunState.PAUSED:
        transition_run(locked, RunState.PAUSED, code=code or "paused", fields=fields, by=by)
    elif by is None or locked.paused_by_id is not None:
        return
    Run.objects.filter(pk=locked.pk).update(paused_by=by, pause_code=code, pause_fields=fields or {})
    audit(by=by, action="run.pause", on=locked, detail={"reason": sentence(code, fields or {})})
    run.refresh_from_db()


@transaction.atomic
def resume_run(*, run: Run, by: User | None) -> None:
    """Resume a paused run. Raises Refusal run_not_open.

    After a pause of more than ARMING_SECONDS, a destructive run must be armed again if its arming has ended. (For a run
    started by a person it always has; the arming of a scheduled run may last longer.)
    """
    locked = locked_open_run(run)
    if locked.state == RunState.PAUSED:
        now = timezone.now()
        if locked.paused_at and now - locked.paused_at > timedelta(seconds=settings.ARMING_SECONDS):
            Run.objects.filter(pk=locked.pk, armed_until__lt=now).update(armed_until=None)
        before = RunState.RUNNING if locked.started_at else RunState.QUEUED
        transition_run(locked, before, code="resumed", by=by)
        audit(by=by, action="run.resume", on=locked)
        dispatch_after_commit(locked)
    run.refresh_from_db()


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
    unaccepted = [
        attempt.pk for attempt in active if attempt.trial_id in wanted and attempt.state == AttemptState.DISPATCHED
    ]
    until = now + timedelta(seconds=UNACCEPTED_GRACE_SECONDS)
    Attempt.objects.filter(pk__in=unaccepted, lease_until__gt=until).update(lease_until=until)
