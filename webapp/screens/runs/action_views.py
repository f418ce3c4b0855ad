"""Actions of operators on a run. Each shows a message with the outcome or the reason for a refusal."""

from collections.abc import Callable, Sequence
from uuid import UUID

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.urls import reverse

from webapp.core.errors import Refusal
from webapp.runs.actions.annotations import add_note, delete_note, restore_note
from webapp.runs.actions.run_actions import Skipped, arm_run, disarm_run, pause_run, resume_run, run_again, skip_trials
from webapp.runs.models import Run, TrialState
from webapp.runs.services import cancel_run
from webapp.runs.states import ENDED_RUN_STATES
from webapp.screens.access import operator_action, person
from webapp.screens.undo import with_undo


def _run(number: int) -> Run:
    return get_object_or_404(Run.objects.select_related("version__plan"), number=number)


def _act(request: HttpRequest, action: Callable[[], str]) -> None:
    try:
        messages.info(request, action())
    except Refusal as refusal:
        messages.error(request, str(refusal))


def _back(request: HttpRequest, number: int) -> HttpResponse:
    """Redirect to the page of the form: the queue, a trial, or the run."""
    back = request.POST.get("back", "")
    if back == "queue":
        return redirect("queue")
    if back.isdecimal() and len(back) < 8:
        return redirect("trial", number=number, trial=int(back))
    return redirect("run", number=number)


@operator_action
def cancel(request: HttpRequest, number: int) -> HttpResponse:
    run = _run(number)
    if run.state in ENDED_RUN_STATES or run.cancel_requested_at:
        messages.warning(request, f"Run {run.number} has already ended or is being cancelled.")
    else:
        cancel_run(run=run, by=person(request))
        messages.info(request, f"Run {run.number} is being cancelled. Changed settings will be restored.")
    return _back(request, number)


@operator_action
def pause(request: HttpRequest, number: int) -> HttpResponse:
    def action() -> str:
        pause_run(run=_run(number), by=person(request))
        return f"Run {number} is paused. The current trial finishes; no new trial starts."

    _act(request, action)
    return _back(request, number)


@operator_action
def resume(request: HttpRequest, number: int) -> HttpResponse:
    def action() -> str:
        resume_run(run=_run(number), by=person(request))
        return f"Run {number} resumed."

    _act(request, action)
    return _back(request, number)


@operator_action
def skip(request: HttpRequest, number: int) -> HttpResponse:
    """`trial` can be repeated; `point` is a trial whose point and target select all planned repeats."""
    run = _run(number)

    def action() -> str:
        numbers = _of_point(run, request.POST.get("point", "")) or _numbers(request.POST.getlist("trial"))
        reason = request.POST.get("reason", "")
        return _skipped_text(skip_trials(run=run, numbers=numbers, reason=reason, by=person(request)))

    _act(request, action)
    return _back(request, number)


def _numbers(texts: Sequence[str]) -> list[int]:
    return [int(text) for text in texts if text.isdecimal() and len(text) < 8]


def _of_point(run: Run, number: str) -> list[int]:
    """All planned trials of the same point and target."""
    if not _numbers([number]):
        return []
    trial = get_object_or_404(run.trials.numbered(int(number)))
    same = run.trials.filter(point_key=trial.point_key, target=trial.target_id, state=TrialState.PLANNED)
    return [each.number for each in same.only("index")]


def _skipped_text(skipped: Skipped) -> str:
    parts = []
    if skipped.stopping:
        parts.append("The running trial is being stopped.")
    if skipped.unstarted:
        parts.append(f"{skipped.unstarted} {'trial' if skipped.unstarted == 1 else 'trials'} will not start.")
    return " ".join(parts) or "The trial is already being skipped."


@operator_action
def arm(request: HttpRequest, number: int) -> HttpResponse:
    def action() -> str:
        arm_run(run=_run(number), serials=_serials(request), by=person(request))
        return f"Run {number} is armed and continues."

    _act(request, action)
    return _back(request, number)


@operator_action
def disarm(request: HttpRequest, number: int) -> HttpResponse:
    def action() -> str:
        if not disarm_run(run=_run(number), by=person(request)):
            return f"Run {number} was not armed."
        return f"Run {number} is disarmed. It overwrites nothing until somebody arms it again."

    _act(request, action)
    return _back(request, number)


def _serials(request: HttpRequest) -> list[str]:
    return [text.strip() for text in request.POST.getlist("serial") if text.strip()]


@operator_action
def again(request: HttpRequest, number: int) -> HttpResponse:
    """Redirect to the new run, or back to the old one with the reason for a refusal."""
    try:
        made = run_again(
            run=_run(number),
            by=person(request),
            same_seed=request.POST.get("seed") == "same",
            only_failed=request.POST.get("what") == "failed",
            armed=_serials(request),
            note=request.POST.get("note", "")[:2000],
            request_id=_uuid(request.POST.get("request_id", "")),
        )
    except Refusal as refusal:
        messages.error(request, f"Not started: {refusal}")
        return redirect("run", number=number)
    return redirect("run", number=made.number)


def _uuid(text: str) -> UUID | None:
    try:
        return UUID(text)
    except ValueError:
        return None


@operator_action
def note(request: HttpRequest, number: int) -> HttpResponse:
    run, back = _run(number), request.POST.get("back", "")

    def action() -> str:
        trial = get_object_or_404(run.trials.numbered(int(back))) if _numbers([back]) else None
        add_note(run=run, trial=trial, text=request.POST.get("text", ""), by=person(request))
        return "Note added."

    _act(request, action)
    return _back(request, number)


@operator_action
def remove_note(request: HttpRequest, number: int, note_id: int) -> HttpResponse:
    delete_note(run=_run(number), note_id=note_id, by=person(request))
    words, undo = "Note deleted. The audit log keeps its text.", reverse("restore_note", args=[number, note_id])
    messages.info(request, with_undo(request, words, undo, back=request.POST.get("back", "")))
    return _back(request, number)


@operator_action
def restore_removed_note(request: HttpRequest, number: int, note_id: int) -> HttpResponse:
    restore_note(run=_run(number), note_id=note_id, by=person(request))
    messages.info(request, "Note restored.")
    return _back(request, number)
