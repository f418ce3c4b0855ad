"""Plans: the list, one plan with its preview, and starting it."""

from collections.abc import Sequence

from django.contrib import messages
from django.core.paginator import Paginator
from django.db.models import Count, Max, Q
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse

from webapp.core.errors import Refusal
from webapp.hosts.models import Target
from webapp.plans.document import PlanDocument, read
from webapp.plans.factors import FACTORS
from webapp.plans.models import Plan, PlanVersion
from webapp.plans.preview import Preview, job_of, preview
from webapp.runs.services import start_run
from webapp.screens import points
from webapp.screens.access import operator_action, page, person
from webapp.screens.plans.forms import StartForm, TargetsForm, usable_targets
from webapp.screens.plans.sentence import part_in_words
from webapp.screens.runs.views import listed_runs

TRIALS_PER_PAGE = 25
RUNS_SHOWN = 10


@page
def plans_page(request: HttpRequest) -> HttpResponse:
    plans = Plan.objects.filter(deleted_at=None).annotate(
        latest=Max("versions__number"),
        run_count=Count("versions__runs", distinct=True),
        last_run_at=Max("versions__runs__created_at"),
    )
    latest = PlanVersion.objects.filter(plan__in=plans).order_by("plan_id", "-number").distinct("plan_id")
    documents = {version.plan_id: read(version.document) for version in latest}
    rows = [(plan, _sentences(documents[plan.id])) for plan in plans if plan.id in documents]
    return render(request, "screens/plans.html", {"rows": rows})


def _version(slug: str, number: str) -> PlanVersion:
    wanted = Q(number=int(number)) if number.isdecimal() else Q()
    version = PlanVersion.objects.select_related("plan").filter(wanted, plan__slug=slug).order_by("-number").first()
    if version is None:
        raise Http404("There is no such plan or version.")
    return version


def _sentences(document: PlanDocument) -> list[tuple[str, str]]:
    return [(part.name, part_in_words(document, part)) for part in document.parts]


def _factor_rows(document: PlanDocument) -> list[tuple[str, str, list[str]]]:
    """Name, label and the levels as typed: the common ones, then those of each part."""
    said = {*document.common, *(name for part in document.parts for name in part.factors)}
    names = [*(name for name in FACTORS if name in said), *sorted(said - set(FACTORS))]
    columns = [document.common, *(part.factors for part in document.parts)]
    return [(name, points.label(name), [column.get(name, "") for column in columns]) for name in names]


@page
def plan_page(request: HttpRequest, slug: str) -> HttpResponse:
    version = _version(slug, request.GET.get("version", ""))
    form = TargetsForm(request.GET)
    chosen = list(form.cleaned_data["target"]) if form.is_valid() else []
    document = read(version.document)
    context = {
        "version": version,
        "versions": version.plan.versions.values_list("number", flat=True),
        "document": document,
        "sentences": _sentences(document),
        "factor_rows": _factor_rows(document),
        "targets": usable_targets(),
        "chosen": {target.id for target in chosen},
        "runs": listed_runs().filter(version__plan=version.plan)[:RUNS_SHOWN],
    }
    if chosen:
        context |= _preview_context(request, preview(document, chosen), chosen)
    return render(request, "screens/plan.html", context)


def _preview_context(request: HttpRequest, made: Preview, chosen: Sequence[Target]) -> dict[str, object]:
    """The preview, a page of its trials and the job of the one that is looked at."""
    trials = made.expansion.trials
    targets = {str(target.id): target for target in chosen}
    asked = request.GET.get("trial", "")
    index = int(asked) if asked.isdecimal() and int(asked) < len(trials) else 0
    names = points.varying(trial.point for trial in trials)
    shown = Paginator(trials, TRIALS_PER_PAGE).get_page(request.GET.get("page", index // TRIALS_PER_PAGE + 1))
    return {
        "preview": made,
        "factors": [points.label(name) for name in names],
        "planned": [
            (
                trial,
                targets[trial.target_id],
                [points.level(n, trial.point[n]) if n in trial.point else "–" for n in names],
            )
            for trial in shown.object_list
        ],
        "planned_pages": shown,
        "job": job_of(trials[index], targets[trials[index].target_id]) if trials else None,
    }


@operator_action
def start_plan(request: HttpRequest, slug: str) -> HttpResponse:
    version = _version(slug, request.POST.get("version", ""))
    get_object_or_404(Plan, pk=version.plan_id, deleted_at=None)
    form = StartForm(request.POST)
    if not form.is_valid() or not form.cleaned_data["target"]:
        messages.error(request, "Choose at least one target that is usable now.")
        return redirect("plan", slug=slug)
    targets = list(form.cleaned_data["target"])
    try:
        run = start_run(
            version=version,
            targets=targets,
            by=person(request),
            armed=form.serials(),
            note=form.cleaned_data["note"],
        )
    except Refusal as refusal:
        messages.error(request, f"Not started: {refusal}")
        chosen = "&".join(f"target={target.id}" for target in targets)
        return redirect(f"{reverse('plan', kwargs={'slug': slug})}?version={version.number}&{chosen}")
    return redirect("run", number=run.number)
