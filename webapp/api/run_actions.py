"""Actions on runs: pause, resume, skip, arm, run again, move in the queue, notes."""

from datetime import datetime
from uuid import UUID

from django.db.models import QuerySet
from django.http import HttpRequest
from ninja import Field, Router, Schema, Status

from webapp.api.common.authentication import OPERATORS, operator
from webapp.api.common.schemas import Input
from webapp.api.runs import RunDetail, RunOut, run_with
from webapp.core.errors import NotFound
from webapp.runs.actions.notes import MAX_NOTE_LENGTH, add_note, delete_note
from webapp.runs.actions.run_actions import (
    MAX_REASON_LENGTH,
    arm_run,
    disarm_run,
    move_in_queue,
    pause_run,
    resume_run,
    run_again,
    skip_trials,
)
from webapp.runs.models import Note, Run, Trial
from webapp.runs.selectors import runs_list

router = Router(tags=["runs"])


class SkipIn(Input):
    """`trials` are numbers of trials."""

    trials: list[int] = Field(min_length=1, max_length=10_000)
    reason: str = Field("", max_length=MAX_REASON_LENGTH)


class ArmIn(Input):
    serials: list[str] = Field(min_length=1, max_length=100)


class QueueMoveIn(Input):
    """The number of the run before or after which to move; exactly one of them."""

    before: int | None = None
    after: int | None = None


class AgainIn(Input):
    """If you do not know whether a run was started, send the same `request_id` again: it starts only once."""

    same_seed: bool = False
    only_failed: bool = False
    armed_serials: list[str] = Field([], max_length=100)
    note: str = Field("", max_length=2000)
    request_id: UUID | None = None


class NoteIn(Input):
    """`trial` is the number of a trial; null: about the run."""

    text: str = Field(max_length=MAX_NOTE_LENGTH)
    trial: int | None = None


class NoteOut(Schema):
    id: int
    trial: int | None
    text: str
    by: str | None
    at: datetime

    @staticmethod
    def resolve_trial(note: Note) -> int | None:
        return note.trial.number if note.trial else None

    @staticmethod
    def resolve_by(note: Note) -> str | None:
        return note.by.username if note.by else None


@router.post("/runs/{number}/pause", response=RunDetail, auth=OPERATORS)
def pause(request: HttpRequest, number: int) -> Run:
    """Pause a run: no new trial is sent, the current one continues to its end. Safe to repeat."""
    pause_run(run=run_with(number), by=operator(request))
    return run_with(number)


@router.post("/runs/{number}/resume", response=RunDetail, auth=OPERATORS)
def resume(request: HttpRequest, number: int) -> Run:
    """Resume a paused run. Safe to repeat."""
    resume_run(run=run_with(number), by=operator(request))
    return run_with(number)


@router.post("/runs/{number}/skip", response=RunDetail, auth=OPERATORS)
def skip(request: HttpRequest, number: int, payload: SkipIn) -> Run:
    """Skip trials: planned ones do not start, running ones are stopped. Safe to repeat."""
    skip_trials(run=run_with(number), numbers=payload.trials, reason=payload.reason, by=operator(request))
    return run_with(number)


@router.post("/runs/{number}/arm", response=RunDetail, auth=OPERATORS)
def arm(request: HttpRequest, number: int, payload: ArmIn) -> Run:
    """Arm a waiting run again."""
    arm_run(run=run_with(number), serials=payload.serials, by=operator(request))
    return run_with(number)


@router.post("/runs/{number}/disarm", response=RunDetail, auth=OPERATORS)
def disarm(request: HttpRequest, number: int) -> Run:
    """Disarm a run: it overwrites nothing until it is armed again; the current trial continues. Safe to repeat."""
    disarm_run(run=run_with(number), by=operator(request))
    return run_with(number)


@router.post("/runs/{number}/again", response={201: RunDetail}, auth=OPERATORS)
def again(request: HttpRequest, number: int, payload: AgainIn) -> Status[Run]:
    """Start the same plan version on the same targets again, all trials or only failed ones."""
    run = run_again(
        run=run_with(number), by=operator(request), same_seed=payload.same_seed, only_failed=payload.only_failed,
        armed=payload.armed_serials, note=payload.note, request_id=payload.request_id,
    )  # fmt: skip
    return Status(201, run_with(run.number))


@router.get("/queue", response=list[RunOut])
def queue(request: HttpRequest) -> QuerySet[Run]:
    """Open runs in queue order."""
    return runs_list().filter(queue_position__isnull=False).order_by("queue_position")


@router.post("/queue/{number}", response=RunOut, auth=OPERATORS)
def move(request: HttpRequest, number: int, payload: QueueMoveIn) -> Run:
    """Move a run directly before or after another one. Safe to repeat."""
    person = operator(request)
    before = None if payload.before is None else run_with(payload.before)
    after = None if payload.after is None else run_with(payload.after)
    move_in_queue(run=run_with(number), before=before, after=after, by=person)
    return run_with(number)


@router.get("/runs/{number}/notes", response=list[NoteOut])
def notes(request: HttpRequest, number: int) -> QuerySet[Note]:
    """Notes of the run and its trials, oldest first."""
    return run_with(number).notes.select_related("trial", "by")


@router.post("/runs/{number}/notes", response={201: NoteOut}, auth=OPERATORS)
def new_note(request: HttpRequest, number: int, payload: NoteIn) -> Status[Note]:
    """Add a note. If the same person repeats the last note, no second note is added."""
    person, run = operator(request), run_with(number)
    trial = None if payload.trial is None else _trial(run, payload.trial)
    return Status(201, add_note(run=run, trial=trial, text=payload.text, by=person))


@router.delete("/runs/{number}/notes/{note_id}", response={204: None}, auth=OPERATORS)
def no_note(request: HttpRequest, number: int, note_id: int) -> Status[None]:
    """Delete a note. Safe to repeat."""
    delete_note(run=run_with(number), note_id=note_id, by=operator(request))
    return Status(204, None)


def _trial(run: Run, number: int) -> Trial:
    found = run.trials.numbered(number).first()
    if found is None:
        raise NotFound("trial_unknown", f"Run {run.number} has no trial {number}.")
    return found
