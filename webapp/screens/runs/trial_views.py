"""One trial: what was asked, what was really there, what came of it."""

from datetime import timedelta

import msgspec
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.utils import timezone

from webapp.results.models import LegRun, Result, Sample
from webapp.runs.models import SettingChange, Trial
from webapp.screens import points
from webapp.screens.access import page
from webapp.screens.runs.live import SAMPLES_AT_FIRST, live_samples


def _trial(number: int, index: int) -> Trial:
    related = Trial.objects.select_related("run__version__plan", "host", "target")
    return get_object_or_404(related, run__number=number, index=index)


def _samples(trial: Trial) -> list[object]:
    """The seconds of all its attempts, from the first one on."""
    rows = Sample.objects.filter(attempt__trial=trial).select_related("attempt__trial", "attempt__host")
    ordered = rows.defer("latency").order_by("attempt__created_at", "second", "leg", "direction")
    shown = list(ordered[:SAMPLES_AT_FIRST])
    began = shown[0].at - timedelta(milliseconds=shown[0].interval_ms) if shown else timezone.now()
    plain: list[object] = msgspec.to_builtins(live_samples(shown, began))
    return plain


@page
def trial_page(request: HttpRequest, number: int, index: int) -> HttpResponse:
    trial = _trial(number, index)
    repeats = trial.run.trials.filter(point_key=trial.point_key, target=trial.target_id).order_by("repeat")
    changes = SettingChange.objects.filter(attempt__trial=trial)
    legs = LegRun.objects.filter(attempt__trial=trial).select_related("attempt", "configuration")
    context = {
        "trial": trial,
        "title": points.in_words(trial.point),
        "levels": [(points.label(name), points.level(name, value)) for name, value in trial.point.items()],
        "repeats": repeats,
        "results": Result.objects.filter(trial=trial).order_by("direction").defer("latency"),
        "legs": legs.defer("fio_json"),
        "changes": changes.order_by("at", "id"),
        "attempts": trial.attempts.select_related("host").order_by("number"),
        "moves": trial.moves.order_by("at", "id"),
        "samples": _samples(trial),
    }
    return render(request, "screens/trial.html", context)
