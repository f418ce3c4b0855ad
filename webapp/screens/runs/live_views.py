"""Requests of open pages: a run's live data once a second, its sections that change when a trial ends, and whether
results were marked as invalid."""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import msgspec
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import get_object_or_404, render
from django.views.decorators.cache import never_cache

from webapp.results.validity import marks_changed
from webapp.runs.models import OPEN_RUN_STATES, Run
from webapp.screens.access import page
from webapp.screens.payloads import Marks
from webapp.screens.runs.live import BadCursor, live_run, observed, setting_rows
from webapp.screens.runs.wear import wear_rows

# One answer for simultaneous identical requests, so that fifty viewers of a run cost about as much as one.
#
# Answers are kept in this process for SHARED_S. The first request computes the answer; the others wait for it.

SHARED_S = 0.25  # maximum age of an answer; viewers see data this much later
MAX_KEPT = 500


@dataclass
class _Answer:
    lock: threading.Lock = field(default_factory=threading.Lock)
    body: bytes | None = None
    made_at: float = 0.0

    def fresh(self) -> bool:
        return self.body is not None and time.monotonic() - self.made_at < SHARED_S


class SharedAnswers:
    """Thread-safe."""

    def __init__(self) -> None:
        self._answers: dict[object, _Answer] = {}
        self._lock = threading.Lock()

    def get(self, key: object, make: Callable[[], bytes]) -> bytes:
        """The answer for `key`, computed unless there is a fresh one. Raises the exceptions of `make`."""
        with self._lock:
            answer = self._answers.get(key)
            if answer is None:
                self._drop_stale()
                answer = self._answers[key] = _Answer()
        with answer.lock:
            if not answer.fresh() or answer.body is None:
                # before `make`: later commits belong to the next answer
                answer.made_at = time.monotonic()
                answer.body = make()
            return answer.body

    def _drop_stale(self) -> None:
        if len(self._answers) >= MAX_KEPT:
            self._answers = {key: kept for key, kept in self._answers.items() if kept.lock.locked() or kept.fresh()}


_answers = SharedAnswers()


@never_cache
@page
def live(request: HttpRequest, number: int) -> HttpResponse:
    run = get_object_or_404(Run, number=number)
    after = request.GET.get("after", "")
    try:
        body = _answers.get((run.pk, after), lambda: msgspec.json.encode(live_run(run, after)))
    except BadCursor as error:
        return JsonResponse({"code": "bad_cursor", "message": str(error)}, status=422)
    return HttpResponse(body, content_type="application/json")


@never_cache
@page
def wear(request: HttpRequest, number: int) -> HttpResponse:
    """The section about bytes written to drives; the page fetches it again when a trial has ended."""
    run = get_object_or_404(Run, number=number)
    context = {"wear_rows": wear_rows(run), "open": run.state in OPEN_RUN_STATES}
    return render(request, "screens/parts/wear.html", context)


@never_cache
@page
def settings(request: HttpRequest, number: int) -> HttpResponse:
    """The section about settings and configuration; the page fetches it again when a trial has ended."""
    run = get_object_or_404(Run, number=number)
    context = {"run": run, "setting_rows": setting_rows(run), "observed": observed(run)}
    return render(request, "screens/parts/run_settings.html", context)


@never_cache
@page
def marks(request: HttpRequest) -> HttpResponse:
    """The number of validity changes in `?run=17`, or in all runs."""
    found = Marks(count=marks_changed(request.GET.get("run", "")[:60]))
    return HttpResponse(msgspec.json.encode(found), content_type="application/json")
