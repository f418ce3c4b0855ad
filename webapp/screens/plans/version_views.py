"""Versions of a plan: list, comparison of two, restore, and export."""

from collections.abc import Callable, Sequence

from django.contrib import messages
from django.db.models import Count
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render

from webapp.core.errors import Refusal
from webapp.plans.document import PlanDocument, differences, export_plan, read
from webapp.plans.jobfile import write_job_file
from webapp.plans.models import PlanVersion
from webapp.plans.services import restore_version
from webapp.screens.access import operator_action, page, person
from webapp.screens.plans.finding import found_version
from webapp.screens.plans.library import sentences


@page
def plan_versions_page(request: HttpRequest, slug: str) -> HttpResponse:
    newest = found_version(slug)
    versions = list(
        newest.plan.versions.select_related("created_by").annotate(run_count=Count("runs")).order_by("-number")
    )
    before, after = _compared(request, versions)
    context = {
        "plan": newest.plan,
        "newest": newest,
        "versions": [(version, sentences(read(version.document))) for version in versions],
        "before": before,
        "after": after,
        "differences": differences(read(before.document), read(after.document)),
    }
    return render(request, "screens/plan_versions.html", context)


def _compared(request: HttpRequest, versions: Sequence[PlanVersion]) -> tuple[PlanVersion, PlanVersion]:
    """The two requested versions, else the newest and the one before it."""
    by_number = {str(version.number): version for version in versions}
    after = by_number.get(request.GET.get("after", ""), versions[0])
    older = next((version for version in versions if version.number < after.number), after)
    return by_number.get(request.GET.get("before", ""), older), after


@operator_action
def restore_plan_action(request: HttpRequest, slug: str) -> HttpResponse:
    old, newest = found_version(slug, request.POST.get("version", "")), found_version(slug)
    try:
        saved = restore_version(plan=old.plan, number=old.number, by=person(request))
    except Refusal as refusal:
        messages.error(request, f"Not restored: {refusal}")
    else:
        if saved.number == newest.number:
            messages.info(request, f"Nothing to restore: version {newest.number}, the newest, has the same content.")
        else:
            messages.success(request, f"Version {old.number} is restored as version {saved.number}.")
    return redirect("plan_versions", slug=slug)


@page
def plan_yaml(request: HttpRequest, slug: str) -> HttpResponse:
    return _file(request, slug, export_plan, "yaml", "application/yaml")


@page
def plan_job_file(request: HttpRequest, slug: str) -> HttpResponse:
    try:
        return _file(request, slug, write_job_file, "fio", "text/plain; charset=utf-8")
    except Refusal as refusal:
        messages.error(request, f"This plan cannot be exported as a job file: {refusal}")
        return redirect("plan", slug=slug)


def _file(
    request: HttpRequest, slug: str, write: Callable[[PlanDocument], str], ending: str, kind: str
) -> HttpResponse:
    version = found_version(slug, request.GET.get("version", ""))
    response = HttpResponse(write(read(version.document)), content_type=kind)
    response["Content-Disposition"] = f'attachment; filename="{slug}-v{version.number}.{ending}"'
    return response
