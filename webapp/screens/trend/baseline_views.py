"""Set and remove baseline runs."""

from urllib.parse import urlencode

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.urls import reverse
from django.utils.safestring import SafeString

from webapp.core.errors import Refusal
from webapp.hosts.models import Target
from webapp.plans.models import Plan
from webapp.runs.models import Run
from webapp.screens.access import operator_action, page, person
from webapp.screens.trend.asked import plan_and_target
from webapp.screens.trend.baseline_form import PREFIX, read_tolerances, refused_form
from webapp.screens.trend.views import show
from webapp.screens.undo import with_undo
from webapp.trends.models import Baseline
from webapp.trends.selectors import baselines
from webapp.trends.services import remove_baseline, set_baseline


@page
def baseline_page(request: HttpRequest, pk: int) -> HttpResponse:  # noqa: ARG001 - the framework gives it
    """The trend that the baseline run belongs to."""
    baseline = get_object_or_404(baselines(), pk=pk)
    return redirect(_address(baseline.plan, baseline.target))


@operator_action
def set_baseline_run(request: HttpRequest) -> HttpResponse:
    """`plan`, `target` (host/target), `run` (number), `tolerance.<metric>` in percent."""
    given = request.POST
    plan, target = plan_and_target(given)
    if plan is None or target is None:
        raise Http404("There is no such plan or target.")
    before = baselines().filter(plan=plan, target=target).first()
    try:
        made = set_baseline(
            run=_run(plan, target, given.get("run", "")), target=target,
            tolerances=_tolerances(given.dict()), by=person(request),
        )  # fmt: skip
    except Refusal as refusal:
        return show(request, plan, target, refused_form(plan, target, given.dict(), refusal.message))
    words = f"Run {made.run.number} is the baseline run of {made}."
    messages.success(request, _with_undo(request, words, before) if before else words)
    return redirect(_address(plan, target))


def _run(plan: Plan, target: Target, number: str) -> Run:
    found = Run.objects.filter(version__plan=plan, targets=target).select_related("version__plan")
    run = found.filter(number=number).first() if number.isascii() and number.isdigit() and len(number) < 10 else None
    if run is None:
        raise Refusal("run_unknown", "Choose a run of this plan at this target.")
    return run


def _tolerances(given: dict[str, str]) -> dict[str, float]:
    try:
        return read_tolerances(given)
    except ValueError as error:
        raise Refusal("tolerance_refused", str(error)) from error


@operator_action
def remove_baseline_run(request: HttpRequest, pk: int) -> HttpResponse:
    baseline = get_object_or_404(Baseline.objects.select_related("plan", "target__host", "run"), pk=pk)
    removed = _with_undo(request, f"{baseline} no longer has a baseline run.", baseline)
    remove_baseline(baseline=baseline, by=person(request))
    messages.success(request, removed)
    return redirect(_address(baseline.plan, baseline.target))


def _with_undo(request: HttpRequest, words: str, before: Baseline) -> SafeString:
    """Undo sets this baseline run again."""
    given = {"plan": before.plan.slug, "target": str(before.target), "run": str(before.run.number)}
    given |= {f"{PREFIX}{key}": str(percent) for key, percent in before.tolerances.items()}
    return with_undo(request, words, reverse("set_baseline"), given=given.items())


def _address(plan: Plan, target: Target) -> str:
    return f"{reverse('trends')}?{urlencode({'plan': plan.slug, 'target': str(target)})}"
