"""Actions of operators on runs, selected runs, results and the queue. Each shows its outcome or a refusal."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.http import url_has_allowed_host_and_scheme

from webapp.analysis.reviews import review_finding, undo_review
from webapp.analysis.run_answer import run_answer
from webapp.core.errors import Refusal, uuid_or_none
from webapp.core.models import User
from webapp.plans.document import read
from webapp.results.retention import delete_run
from webapp.results.validity import mark_run, mark_trial, trust_run, trust_trial
from webapp.runs.actions.annotations import add_note, delete_note, restore_note, tag_run, untag_run
from webapp.runs.actions.run_actions import (
    Skipped,
    arm_run,
    disarm_run,
    move_in_queue,
    pause_run,
    resume_run,
    run_again,
    skip_trials,
)
from webapp.runs.dispatch.host_queues import Entry, HostQueue, queues
from webapp.runs.models import Run, Trial, TrialState
from webapp.runs.services import cancel_run
from webapp.runs.states import ENDED_RUN_STATES
from webapp.schedules.selectors import occurrences_waiting
from webapp.screens.access import operator_action, page, person
from webapp.screens.plans.draft import data_of, draft_of, keep
from webapp.screens.trend.claims import number, sentence
from webapp.screens.undo import with_undo

# The queue: running and waiting runs by host, and changes of their order.

WAITING_SHOWN = 10


@page
def queue_page(request: HttpRequest) -> HttpResponse:
    host_queues = queues()
    waiting = occurrences_waiting()
    scheduled = waiting.count()
    context = {
        "heading": queue_heading(host_queues, scheduled),
        "next_start": min(filter(None, (entry.starts_at for entry in _waiting(host_queues))), default=None),
        "queues": host_queues,
        "runs": _waiting_runs(host_queues),
        "occurrences_waiting": waiting[:WAITING_SHOWN],
        "waiting_count": scheduled,
    }
    return render(request, "screens/queue.html", context)


def queue_heading(host_queues: Sequence[HostQueue], scheduled: int) -> str:
    """`Run 3 is at work, two wait`. `scheduled`: due times whose run has not started."""
    working = {entry.run.number for queue in host_queues for entry in queue.entries if entry.working}
    waiting = {entry.run.number for entry in _waiting(host_queues)} - working
    at_work = f"run {min(working)} is" if len(working) == 1 else f"{number(len(working))} runs are"
    phrases = [f"{at_work} at work"] if working else []
    if waiting:
        phrases.append(f"{number(len(waiting))} {'run waits' if len(waiting) == 1 else 'runs wait'}")
    if scheduled:
        phrases.append(f"{number(scheduled)} scheduled {'run is' if scheduled == 1 else 'runs are'} due")
    return sentence(phrases) or "The queue is empty"


def _waiting(host_queues: Sequence[HostQueue]) -> Iterator[Entry]:
    return (entry for queue in host_queues for entry in queue.entries if not entry.working)


def _waiting_runs(host_queues: list[HostQueue]) -> list[Run]:
    """Each once: a run may wait on several hosts."""
    runs = {entry.run.pk: entry.run for queue in host_queues for entry in queue.entries}
    return list(runs.values())


@operator_action
def move_run(request: HttpRequest, number: int) -> HttpResponse:
    """Move a run directly before or after another one; `button` gets the focus afterwards."""
    run = get_object_or_404(Run, number=number)
    try:
        move_in_queue(
            run=run, before=_named(request, "before"), after=_named(request, "after"), by=person(request)
        )  # fmt: skip
    except Refusal as refusal:
        messages.error(request, str(refusal))
    button = request.POST.get("button", "")
    return redirect(reverse("queue") + (f"#{button}" if button.replace("-", "").isalnum() else ""))


def _named(request: HttpRequest, key: str) -> Run | None:
    number = request.POST.get(key, "")
    return get_object_or_404(Run, number=int(number)) if number.isdecimal() and len(number) < 10 else None


# Actions on the runs that are selected in a list. The form sends their numbers as `run`, once for each.
#
# `text` holds tags or a reason. Undo sends `text.<number>` for each run instead: the tags that the run got or lost.

MAX_RUNS = 200
MAX_BACK = 2_000  # characters of an address
REFUSALS_SHOWN = 5


@dataclass(frozen=True)
class BulkAction:
    """`act` gets the run, the text of the form and the person, and returns the tags that it changed. `undo` is the name
    of the opposite action."""

    act: Callable[[Run, str, User], list[str] | None]
    outcome: str  # after the number of runs
    undo: str = ""


def _cancel(run: Run, _: str, by: User) -> None:
    if run.state in ENDED_RUN_STATES or run.cancel_requested_at:
        raise Refusal("run_ended", "It has already ended or is being cancelled.")
    cancel_run(run=run, by=by)


def _delete(run: Run, _: str, by: User) -> None:
    """Only for admins, because it cannot be undone."""
    if not by.is_administrator:
        raise Refusal("role_needed", "Only admins delete runs. Mark the run as invalid instead.")
    delete_run(run=run, by=by)


ACTIONS: Mapping[str, BulkAction] = {
    "cancel": BulkAction(_cancel, "being cancelled"),
    "invalid": BulkAction(lambda run, text, by: mark_run(run=run, reason=text, by=by), "marked as invalid", "valid"),
    "valid": BulkAction(lambda run, _, by: trust_run(run=run, by=by), "valid again"),
    "tag": BulkAction(lambda run, text, by: tag_run(run=run, text=text, by=by), "tagged", "untag"),
    "untag": BulkAction(lambda run, text, by: untag_run(run=run, text=text, by=by), "without the tags", "tag"),
    "delete": BulkAction(_delete, "deleted"),
}


@operator_action
def bulk(request: HttpRequest, action: str) -> HttpResponse:
    """Runs that refuse the action are left out, with the reason in the message."""
    if action not in ACTIONS:
        raise Http404
    numbers = [int(text) for text in request.POST.getlist("run") if text.isdecimal() and len(text) < 10]
    done, refused = _on_each(ACTIONS[action], Run.objects.filter(number__in=numbers[:MAX_RUNS]), request)
    if done:
        messages.success(request, _outcome(request, ACTIONS[action], done))
    if refused:
        messages.error(request, _refusals(refused))
    if not done and not refused:
        messages.warning(request, "No run is selected. Select runs in the first column.")
    return HttpResponseRedirect(_back_to_list(request))


def _on_each(
    action: BulkAction, runs: Iterable[Run], request: HttpRequest
) -> tuple[dict[int, list[str] | None], dict[int, str]]:
    """The changed runs with their changed tags, and the reasons of the others, by number."""
    done, refused = dict[int, list[str] | None](), dict[int, str]()
    text, by = request.POST.get("text", ""), person(request)
    for run in runs:
        try:
            done[run.number] = action.act(run, request.POST.get(f"text.{run.number}", text), by)
        except Refusal as refusal:
            refused[run.number] = str(refusal)
    return done, refused


def _outcome(request: HttpRequest, action: BulkAction, done: Mapping[int, list[str] | None]) -> str:
    """With a form that undoes the action on the runs that it changed, if there is one."""
    named = f"Run {next(iter(done))} is" if len(done) == 1 else f"{len(done)} runs are"
    words = f"{named} {action.outcome}."
    changed = {number: tags for number, tags in done.items() if tags != []}
    if not (action.undo and changed):
        return words
    given = [("run", str(number)) for number in changed]
    given += [(f"text.{number}", " ".join(tags)) for number, tags in changed.items() if tags]
    return with_undo(request, words, reverse("bulk_runs", args=[action.undo]), back=_back_to_list(request), given=given)


def _refusals(refused: Mapping[int, str]) -> str:
    shown = [f"Run {number}: {why}" for number, why in list(refused.items())[:REFUSALS_SHOWN]]
    more = len(refused) - len(shown)
    return " ".join(["Not changed.", *shown, *([f"And {more} more."] if more else [])])


def _back_to_list(request: HttpRequest) -> str:
    """The page of the form; the list of runs without a valid address."""
    back = request.POST.get("back", "")
    is_here = back.startswith("/") and url_has_allowed_host_and_scheme(back, allowed_hosts=None)
    return back if is_here and len(back) <= MAX_BACK else reverse("runs")


# Mark results as invalid or valid.


def _trial(run: int, number: int) -> Trial:
    return get_object_or_404(Trial.objects.select_related("run").numbered(number), run__number=run)


@operator_action
def trial_invalid(request: HttpRequest, number: int, trial: int) -> HttpResponse:
    try:
        mark_trial(trial=_trial(number, trial), reason=request.POST.get("reason", ""), by=person(request))
        words = f"The results of trial {trial} are marked as invalid and left out of comparisons."
        messages.info(request, with_undo(request, words, reverse("trial_valid", args=[number, trial])))
    except Refusal as refusal:
        messages.error(request, str(refusal))
    return redirect("trial", number=number, trial=trial)


@operator_action
def trial_valid(request: HttpRequest, number: int, trial: int) -> HttpResponse:
    try:
        trust_trial(trial=_trial(number, trial), by=person(request))
        messages.info(request, f"The results of trial {trial} are valid again.")
    except Refusal as refusal:
        messages.error(request, str(refusal))
    return redirect("trial", number=number, trial=trial)


@operator_action
def run_invalid(request: HttpRequest, number: int) -> HttpResponse:
    run = get_object_or_404(Run, number=number)
    try:
        mark_run(run=run, reason=request.POST.get("reason", ""), by=person(request))
        words = f"All results of run {number} are marked as invalid and left out of comparisons."
        messages.info(request, with_undo(request, words, reverse("run_valid", args=[number])))
    except Refusal as refusal:
        messages.error(request, str(refusal))
    return redirect("run", number=number)


@operator_action
def run_valid(request: HttpRequest, number: int) -> HttpResponse:
    trust_run(run=get_object_or_404(Run, number=number), by=person(request))
    messages.info(request, f"Run {number} is valid again, except for trials that were marked on their own.")
    return redirect("run", number=number)


@operator_action
def plan_check(request: HttpRequest, number: int, key: str) -> HttpResponse:
    """Open the plan that would confirm or refute a finding in the plan editor, unsaved."""
    run = _run(number)
    experiment = next((finding.next for finding in run_answer(run).findings if finding.key == key), None)
    if experiment is None:
        messages.error(request, f"Run {number} has no such finding with a plan. Reload the page.")
        return redirect("run", number=number)
    data = data_of(draft_of(read(experiment.plan)))
    ids = {str(target): str(target.pk) for target in run.targets.select_related("host")}
    data.setlist("target", [ids[name] for name in experiment.targets if name in ids])
    message = f"A plan to check a finding of run {number}. It is not saved yet. {experiment.sentence}"
    keep(request, reverse("new_plan"), data, message)
    return redirect("new_plan")


@operator_action
def review(request: HttpRequest, number: int, key: str) -> HttpResponse:
    """Confirm or dismiss a finding; without a verdict, take the review back."""
    run, verdict = _run(number), request.POST.get("verdict", "")
    try:
        if verdict:
            reason = request.POST.get("reason", "")
            review_finding(of=run, key=key, verdict=verdict, reason=reason, by=person(request))
        else:
            undo_review(of=run, key=key, by=person(request))
    except Refusal as refusal:
        messages.error(request, str(refusal))
    return redirect(reverse("run", args=[number]) + "#findings")


def _run(number: int) -> Run:
    return get_object_or_404(Run.objects.select_related("version__plan"), number=number)


def _act(request: HttpRequest, number: int, action: Callable[[], str]) -> HttpResponse:
    """Show what the action returns, or its refusal, on the page of the form."""
    try:
        messages.info(request, action())
    except Refusal as refusal:
        messages.error(request, str(refusal))
    return _back(request, number)


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

    return _act(request, number, action)


@operator_action
def resume(request: HttpRequest, number: int) -> HttpResponse:
    def action() -> str:
        resume_run(run=_run(number), by=person(request))
        return f"Run {number} resumed."

    return _act(request, number, action)


@operator_action
def skip(request: HttpRequest, number: int) -> HttpResponse:
    """`trial` can be repeated; `point` is a trial whose point and target select all planned repeats."""
    run = _run(number)

    def action() -> str:
        numbers = _of_point(run, request.POST.get("point", "")) or _numbers(request.POST.getlist("trial"))
        reason = request.POST.get("reason", "")
        return _skipped_text(skip_trials(run=run, numbers=numbers, reason=reason, by=person(request)))

    return _act(request, number, action)


def _numbers(texts: Sequence[str]) -> list[int]:
    return [int(text) for text in texts if text.isdecimal() and len(text) < 8]


def _of_point(run: Run, number: str) -> list[int]:
    """All planned trials of the same point and target."""
    if not _numbers([number]):
        return []
    trial = get_object_or_404(run.trials.numbered(int(number)))
    same = run.trials.filter(point_key=trial.point_key, target=trial.target_id, state=TrialState.PLANNED)
    return [planned.number for planned in same.only("index")]


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

    return _act(request, number, action)


@operator_action
def disarm(request: HttpRequest, number: int) -> HttpResponse:
    def action() -> str:
        if not disarm_run(run=_run(number), by=person(request)):
            return f"Run {number} was not armed."
        return f"Run {number} is disarmed. It overwrites nothing until somebody arms it again."

    return _act(request, number, action)


def _serials(request: HttpRequest) -> list[str]:
    return [text.strip() for text in request.POST.getlist("serial") if text.strip()]


@operator_action
def again(request: HttpRequest, number: int) -> HttpResponse:
    """Redirect to the new run, or back to the old one with the reason for a refusal."""
    try:
        new_run = run_again(
            run=_run(number),
            by=person(request),
            same_seed=request.POST.get("seed") == "same",
            only_failed=request.POST.get("what") == "failed",
            armed=_serials(request),
            note=request.POST.get("note", "")[:2000],
            request_id=uuid_or_none(request.POST.get("request_id", "")),
        )
    except Refusal as refusal:
        messages.error(request, f"Not started: {refusal}")
        return redirect("run", number=number)
    return redirect("run", number=new_run.number)


@operator_action
def note(request: HttpRequest, number: int) -> HttpResponse:
    run, back = _run(number), request.POST.get("back", "")

    def action() -> str:
        trial = get_object_or_404(run.trials.numbered(int(back))) if _numbers([back]) else None
        add_note(run=run, trial=trial, text=request.POST.get("text", ""), by=person(request))
        return "Note added."

    return _act(request, number, action)


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
