"""The queue: running and waiting runs by host, and changes of their order."""

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse

from webapp.core.errors import Refusal
from webapp.runs.actions.run_actions import move_in_queue
from webapp.runs.dispatch.host_queues import HostQueue, queues
from webapp.runs.models import Run
from webapp.schedules.selectors import occurrences_waiting
from webapp.screens.access import operator_action, page, person

WAITING_SHOWN = 10


@page
def queue_page(request: HttpRequest) -> HttpResponse:
    found = queues()
    waiting = occurrences_waiting()
    context = {
        "queues": found,
        "runs": _runs(found),
        "occurrences_waiting": waiting[:WAITING_SHOWN],
        "waiting_count": waiting.count(),
    }
    return render(request, "screens/queue.html", context)


def _runs(found: list[HostQueue]) -> list[Run]:
    """The waiting runs, each once: a run may wait on several hosts."""
    runs = {entry.run.pk: entry.run for queue in found for entry in queue.entries}
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
