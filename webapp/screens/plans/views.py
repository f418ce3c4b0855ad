"""The page of a plan with its preview, and the start of a run."""

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import urlencode

from django.contrib import messages
from django.db.models import Max
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse

from webapp.core.errors import Refusal
from webapp.hosts.models import Target
from webapp.plans.document import PlanDocument, read
from webapp.plans.factor_warnings import factor_warnings
from webapp.plans.jobfile import parts_unfit_for_job_files
from webapp.plans.models import Plan, PlanVersion
from webapp.plans.points import in_order
from webapp.runs.services import start_run
from webapp.schedules.models import Schedule
from webapp.screens import points
from webapp.screens.access import operator_action, page, person
from webapp.screens.arming import drives_to_arm
from webapp.screens.plans.finding import found_version
from webapp.screens.plans.forms import StartForm, TargetsForm, usable_targets
from webapp.screens.plans.library import sentences
from webapp.screens.plans.previewing import asked, shown_preview
from webapp.screens.runs.views import listed_runs

MAX_RANDOM_SEED = 10**6  # short enough to say aloud; it is not a secret
RUNS_SHOWN = 10


@dataclass(frozen=True)
class FactorGroup:
    """The factors that all parts share, or the own factors of a part or of one of its streams.

    `rows`: the name and the label of each factor, and its levels as typed.
    """

    title: str
    rows: tuple[tuple[str, str, str], ...]


def _factor_groups(document: PlanDocument) -> list[FactorGroup]:
    """Groups that have factors: common factors, then those of each part and of each of its streams."""
    groups = [_factor_group("All parts", document.common)]
    for part in document.parts:
        groups.append(_factor_group(part.name, part.factors))
        groups += [_factor_group(f"{part.name}, stream {stream.name}", stream.factors) for stream in part.streams]
    return [group for group in groups if group.rows]


def _factor_group(title: str, factors: Mapping[str, str]) -> FactorGroup:
    return FactorGroup(title, tuple((name, points.label(name), factors[name]) for name in in_order(factors)))


@page
def plan_page(request: HttpRequest, slug: str) -> HttpResponse:
    """A run started here has the displayed order: the seed is drawn now, or typed.

    Without parameters, the targets of the plan's last run are chosen.
    """
    version = found_version(slug, request.GET.get("version", ""))
    form = TargetsForm(request.GET)
    chosen = list(form.cleaned_data["target"]) if form.is_valid() else []
    runs = list(listed_runs().filter(version__plan=version.plan)[:RUNS_SHOWN])
    last = runs[0] if runs and not request.GET else None
    if last is not None:
        chosen = list(usable_targets().filter(runs=last.pk))
    document = read(version.document)
    wanted = asked(request.GET, default_seed=secrets.randbelow(MAX_RANDOM_SEED))
    shown = shown_preview(document, chosen, wanted) if chosen else None
    context = {
        "version": version,
        "newest": version.plan.versions.aggregate(newest=Max("number"))["newest"],
        "document": document,
        "sentences": sentences(document),
        "fits_job_file": not parts_unfit_for_job_files(document),
        "factor_groups": _factor_groups(document),
        "factor_warnings": shown.preview.factor_warnings if shown else factor_warnings(document),
        "targets": usable_targets(),
        "chosen": {target.id for target in chosen},
        "chosen_by": last if chosen else None,
        "shown": shown,
        "drives": drives_to_arm(shown.preview.destructive) if shown and shown.preview.destructive else [],
        "note": request.GET.get("note", "")[:2000],
        "schedules": Schedule.objects.filter(version__plan=version.plan, deleted_at=None).select_related("version"),
        "schedule_url": _schedule_url(version, chosen),
        "runs": runs,
    }
    return render(request, "screens/plan.html", context)


def _schedule_url(version: PlanVersion, chosen: Sequence[Target]) -> str:
    """Redirect to the form of a new schedule of this version on the chosen targets."""
    query = [("plan", version.plan.slug), ("version", version.number), *(("target", str(one)) for one in chosen)]
    return f"{reverse('new_schedule')}?{urlencode(query)}"


@operator_action
def start_plan(request: HttpRequest, slug: str) -> HttpResponse:
    version = found_version(slug, request.POST.get("version", ""))
    get_object_or_404(Plan, pk=version.plan_id, deleted_at=None)
    form = StartForm(request.POST)
    if not form.is_valid() or not form.cleaned_data["target"]:
        messages.error(request, "Choose at least one target that is available now.")
        return redirect("plan", slug=slug)
    targets = list(form.cleaned_data["target"])
    try:
        run = start_run(
            version=version,
            targets=targets,
            by=person(request),
            armed=form.serials(),
            seed=form.cleaned_data["seed"],
            note=form.cleaned_data["note"],
        )
    except Refusal as refusal:
        messages.error(request, f"Not started: {refusal}")
        return redirect(f"{reverse('plan', kwargs={'slug': slug})}?{_asked_again(version, form)}")
    return redirect("run", number=run.number)


def _asked_again(version: PlanVersion, form: StartForm) -> str:
    """The parameters of the page, without the serial numbers."""
    data = form.cleaned_data
    query = [("version", version.number), *(("target", target.id) for target in data["target"]), ("note", data["note"])]
    return urlencode([*query, *([("seed", data["seed"])] if data["seed"] is not None else [])])
