"""Set and remove baselines."""

from urllib.parse import urlencode

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse, QueryDict
from django.shortcuts import get_object_or_404, redirect
from django.urls import reverse
from django.utils.safestring import SafeString

from webapp.core.errors import Refusal
from webapp.hosts.models import Target
from webapp.plans.models import Plan
from webapp.results.models import Import
from webapp.runs.models import Run
from webapp.screens.access import operator_action, page, person
from webapp.screens.trend.acceptance_address import address_of, imported_in, read_address
from webapp.screens.trend.asked import plan_and_target
from webapp.screens.trend.baseline_form import PREFIX, read_tolerances, refused_form
from webapp.screens.trend.views import show
from webapp.screens.undo import with_undo
from webapp.trends.models import Baseline
from webapp.trends.selectors import baselines
from webapp.trends.services import remove_baseline, set_baseline, set_import_baseline


@page
def baseline_page(request: HttpRequest, pk: int) -> HttpResponse:  # noqa: ARG001 - the framework gives it
    """The trend that the baseline belongs to."""
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
    return _is_set(request, made, before)


@operator_action
def set_import(request: HttpRequest) -> HttpResponse:
    """Runs of `plan` at `target` are judged like the candidate of the acceptance test with the address `test`, whose
    baseline is an import."""
    plan, target = plan_and_target(request.POST)
    if plan is None or target is None:
        raise Http404("There is no such plan or target.")
    before = baselines().filter(plan=plan, target=target).first()
    address = request.POST.get("test", "")
    asked = read_address(QueryDict(address))
    side = asked.sides[0]
    try:
        made = set_import_baseline(
            plan=plan, target=target, imported=_import(imported_in(side)), levels=side.levels, ignored=asked.ignored,
            single_values=asked.single_values, by=person(request),
            tolerances=_tolerances({f"{PREFIX}{key}": text for key, text in asked.typed.items()}),
        )  # fmt: skip
    except Refusal as refusal:
        messages.error(request, str(refusal))
        return redirect(f"{reverse('acceptance')}?{address}")
    return _is_set(request, made, before)


def _is_set(request: HttpRequest, made: Baseline, before: Baseline | None) -> HttpResponse:
    words = f"The baseline of {made} is {made.name}."
    messages.success(request, _with_undo(request, words, before) if before else words)
    return redirect(_address(made.plan, made.target))


def _import(number: int | None) -> Import:
    found = Import.objects.filter(number=number).first() if number is not None else None
    if found is None:
        raise Refusal("import_unknown", "Choose an import or a reference as the baseline.")
    return found


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
    baseline = get_object_or_404(baselines(), pk=pk)
    removed = _with_undo(request, f"{baseline} no longer has a baseline.", baseline)
    remove_baseline(baseline=baseline, by=person(request))
    messages.success(request, removed)
    return redirect(_address(baseline.plan, baseline.target))


def _with_undo(request: HttpRequest, words: str, before: Baseline) -> SafeString:
    """Undo sets this baseline again."""
    given = {"plan": before.plan.slug, "target": str(before.target)}
    if before.run is None:
        given["test"] = address_of(before)
        return with_undo(request, words, reverse("set_import_baseline"), given=given.items())
    given |= {"run": str(before.run.number)}
    given |= {f"{PREFIX}{key}": str(percent) for key, percent in before.tolerances.items()}
    return with_undo(request, words, reverse("set_baseline"), given=given.items())


def _address(plan: Plan, target: Target) -> str:
    return f"{reverse('trends')}?{urlencode({'plan': plan.slug, 'target': str(target)})}"
