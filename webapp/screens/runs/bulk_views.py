"""Actions on the runs that are selected in a list. The form sends their numbers as `run`, once for each.

`text` holds tags or a reason. Undo sends `text.<number>` for each run instead: the tags that the run got or lost.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.http import url_has_allowed_host_and_scheme

from webapp.core.errors import Refusal
from webapp.core.models import User
from webapp.results.retention import delete_run
from webapp.results.validity import mark_run, trust_run
from webapp.runs.actions.annotations import tag_run, untag_run
from webapp.runs.models import Run
from webapp.runs.services import cancel_run
from webapp.runs.states import ENDED_RUN_STATES
from webapp.screens.access import operator_action, person
from webapp.screens.undo import with_undo

MAX_RUNS = 200
MAX_BACK = 2_000  # characters of an address
REFUSALS_SHOWN = 5


@dataclass(frozen=True)
class BulkAction:
    """`act` gets the run, the text of the form and the person, and returns the tags that it changed. `undo` is the name
    of the opposite action."""

    act: Callable[[Run, str, User], list[str] | None]
    said: str  # after the number of runs
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
        messages.success(request, _said(request, ACTIONS[action], done))
    if refused:
        messages.error(request, _refusals(refused))
    if not done and not refused:
        messages.warning(request, "No run is selected. Select runs in the first column.")
    return HttpResponseRedirect(_back(request))


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


def _said(request: HttpRequest, action: BulkAction, done: Mapping[int, list[str] | None]) -> str:
    """With a form that undoes the action on the runs that it changed, if there is one."""
    named = f"Run {next(iter(done))} is" if len(done) == 1 else f"{len(done)} runs are"
    words = f"{named} {action.said}."
    changed = {number: tags for number, tags in done.items() if tags != []}
    if not (action.undo and changed):
        return words
    given = [("run", str(number)) for number in changed]
    given += [(f"text.{number}", " ".join(tags)) for number, tags in changed.items() if tags]
    return with_undo(request, words, reverse("bulk_runs", args=[action.undo]), back=_back(request), given=given)


def _refusals(refused: Mapping[int, str]) -> str:
    shown = [f"Run {number}: {why}" for number, why in list(refused.items())[:REFUSALS_SHOWN]]
    more = len(refused) - len(shown)
    return " ".join(["Not changed.", *shown, *([f"And {more} more."] if more else [])])


def _back(request: HttpRequest) -> str:
    """The page of the form; the list of runs without a valid address."""
    back = request.POST.get("back", "")
    is_here = back.startswith("/") and url_has_allowed_host_and_scheme(back, allowed_hosts=None)
    return back if is_here and len(back) <= MAX_BACK else reverse("runs")
