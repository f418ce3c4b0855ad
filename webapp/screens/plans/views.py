"""The page of a plan with its preview, and the start of a run."""

import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from django.contrib import messages
from django.core.files.uploadedfile import UploadedFile
from django.core.paginator import Paginator
from django.db.models import Count, F, Max
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404, redirect, render
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils.safestring import SafeString

from webapp.analysis.evidence import RunFinding
from webapp.analysis.run_findings import findings_of
from webapp.core.errors import Refusal
from webapp.hosts.models import Target
from webapp.plans.document import MAX_BYTES, PlanDocument, differences, export_plan, import_plan, read
from webapp.plans.factor_warnings import factor_warnings
from webapp.plans.grids import PartGrid, grids_of
from webapp.plans.jobfile.lines import MAX_FILES, JobFileError
from webapp.plans.jobfile.reader import read_job_file
from webapp.plans.jobfile.writer import parts_unfit_for_job_files, write_job_file
from webapp.plans.models import Plan, PlanVersion
from webapp.plans.points import in_order
from webapp.plans.services import copy_plan, delete_plan, restore_version, undelete_plan
from webapp.results.models import known
from webapp.runs.models import Run, RunState
from webapp.runs.services import start_run, unfit_targets
from webapp.schedules.models import Schedule
from webapp.screens import point_words
from webapp.screens.access import operator_action, page, person
from webapp.screens.arming import StartForm, TargetsForm, drives_to_arm, usable_targets
from webapp.screens.findings import as_heading
from webapp.screens.plans.draft import data_of, draft_of, keep
from webapp.screens.plans.library import (
    SHOWN_AS,
    Shown,
    listed_plans,
    overwrites_drives,
    plans_heading,
    rows,
    sentences,
    version_or_404,
)  # fmt: skip
from webapp.screens.plans.previewing import PreviewRequest, preview_request, shown_preview
from webapp.screens.runs.views import listed_runs

# A plan from a file: a fio job file or Sweetspot's YAML, pasted or uploaded. It opens in the editor, unsaved.

MAX_LINES = 2000  # on the page
KINDS = {"job": "fio job file", "yaml": "YAML of a plan"}


@dataclass(frozen=True)
class NumberedLine:
    number: int
    text: str
    problems: tuple[str, ...]


def import_plan_page(request: HttpRequest) -> HttpResponseBase:
    return read_plan(request) if request.method == "POST" else show_import(request)


@page
def show_import(request: HttpRequest) -> HttpResponse:
    kind = request.GET.get("kind", "job")
    return _page(request, kind if kind in KINDS else "job", "", "")


@operator_action
def read_plan(request: HttpRequest) -> HttpResponse:
    kind = request.POST.get("kind", "")
    kind = kind if kind in KINDS else "job"
    text = request.POST.get("text", "").replace("\r\n", "\n")
    title = request.POST.get("title", "")[:200]
    values = request.POST.get("variables", "").replace("\r\n", "\n")[:MAX_BYTES]
    try:
        text = _uploaded(request.FILES.get("file")) or text
        included = {str(file.name): _uploaded(file) for file in request.FILES.getlist("included")[: MAX_FILES + 1]}
        document = _read(kind, text, title, values, included)
    except Refusal as refusal:
        return _page(request, kind, text, title, refusal, values)
    count = f"{len(document.parts)} part{'s' if len(document.parts) > 1 else ''}"
    message = f"Read from the {KINDS[kind]}: {count}. Check the plan and save it; it is not saved yet."
    keep(request, reverse("new_plan"), data_of(draft_of(document)), message)
    return redirect("new_plan")


def _uploaded(file: "UploadedFile[Any] | None") -> str:
    """The text of an uploaded file; "" without one. Raises Refusal."""
    if file is None:
        return ""
    if (file.size or 0) > MAX_BYTES:
        raise Refusal("file_refused", f"{file.name} is over the limit of {MAX_BYTES // 1024} KiB.")
    raw: bytes = file.read()
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw[: error.start].count(b"\n") + 1
        words = f"{file.name} is not UTF-8 text: line {line} has byte 0x{raw[error.start]:02x}. Save it as UTF-8."
        raise Refusal("file_refused", words) from error
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _read(kind: str, text: str, title: str, values: str, included: dict[str, str]) -> PlanDocument:
    if not text.strip():
        raise Refusal("file_refused", "Paste the file's text, or choose a file.")
    if "\x00" in text:
        raise Refusal("file_refused", "The file contains a NUL character, so it is not a text file.")
    if kind != "job":
        return import_plan(text)
    return read_job_file(text, title=title, variables=_variables(values), files=included)


def _variables(text: str) -> dict[str, str]:
    """One `NAME=value` per line; lines without a value are still to be filled in."""
    pairs = (line.partition("=") for line in text.split("\n"))
    return {name.strip(): value.strip() for name, _, value in pairs if name.strip() and value.strip()}


def _page(
    request: HttpRequest, kind: str, text: str, title: str, refusal: Refusal | None = None, values: str = ""
) -> HttpResponse:
    """Variables without a value get a line for it."""
    lines, general = _lines(text, refusal)
    named = {line.partition("=")[0].strip() for line in values.split("\n")}
    missing = [name for name in refusal.variables if name not in named] if isinstance(refusal, JobFileError) else []
    values = "\n".join(filter(None, [values.strip(), *(f"{name}=" for name in missing)]))
    context = {
        "kind": kind, "kinds": KINDS.items(), "text": text, "title": title, "lines": lines, "general": general,
        "variables": values,
    }  # fmt: skip
    return render(request, "screens/plan_import.html", context)


def _lines(text: str, refusal: Refusal | None) -> tuple[list[NumberedLine], list[str]]:
    """The lines of the text with their problems, and the problems of the whole file. Of a long file, only lines with
    problems."""
    if refusal is None:
        return [], []
    if not isinstance(refusal, JobFileError):
        return [], [refusal.message]
    at: dict[int, list[str]] = {}
    for problem in refusal.problems:
        at.setdefault(problem.line, []).append(f"{f'`{problem.option}` ' if problem.option else ''}{problem.message}")
    numbered = enumerate(text.split("\n"), start=1)
    lines = [NumberedLine(number, line, tuple(at.get(number, ()))) for number, line in numbered]
    if len(lines) > MAX_LINES:
        lines = [line for line in lines if line.problems][:MAX_LINES]
    return (lines if any(line.problems for line in lines) else []), at.get(0, [])


# Versions of a plan: list, comparison of two, restore, and export.


@page
def plan_versions_page(request: HttpRequest, slug: str) -> HttpResponse:
    newest = version_or_404(slug)
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
    old, newest = version_or_404(slug, request.POST.get("version", "")), version_or_404(slug)
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
    version = version_or_404(slug, request.GET.get("version", ""))
    response = HttpResponse(write(read(version.document)), content_type=kind)
    response["Content-Disposition"] = f'attachment; filename="{slug}-v{version.number}.{ending}"'
    return response


# The library: the list of plans; copy, delete and restore a plan.

PER_PAGE = 50
MAX_SEARCH_LENGTH = 200


@page
def plans_page(request: HttpRequest) -> HttpResponse:
    filter_name = request.GET.get("show", "")
    shown = Shown(filter_name) if filter_name in set(Shown) else Shown.ALL
    search = request.GET.get("q", "")[:MAX_SEARCH_LENGTH]
    pages = Paginator(listed_plans(search, shown), PER_PAGE).get_page(request.GET.get("page"))
    listed = rows(list(pages.object_list))
    context = {
        "heading": plans_heading(listed_plans(search, shown), search, shown),
        "rows": listed,
        "last_runs": [row.last for row in listed if row.last],
        "pages": pages,
        "search": search,
        "shown": shown,
        "choices": SHOWN_AS.items(),
        "any": search or shown is not Shown.ALL or pages.paginator.count,
    }
    return render(request, "screens/plans.html", context)


@operator_action
def copy_plan_action(request: HttpRequest, slug: str) -> HttpResponse:
    """Copy a plan, perhaps with sizes of at most `most_bytes`, and open the copy in the editor."""
    version = version_or_404(slug, request.POST.get("version", ""))
    most = request.POST.get("most_bytes", "")
    most_bytes = int(most) if most.isascii() and most.isdecimal() and len(most) < 20 else 0
    try:
        copied = copy_plan(version=version, by=person(request), most_bytes=most_bytes)
    except Refusal as refusal:
        messages.error(request, f"Not copied: {refusal}")
        return redirect("plan", slug=slug)
    messages.success(request, f"Copied from {version.plan.title}, version {version.number}.")
    return redirect("edit_plan", slug=copied.slug)


@operator_action
def delete_plan_action(request: HttpRequest, slug: str) -> HttpResponse:
    plan = version_or_404(slug).plan
    if plan.deleted_at is not None:
        messages.info(request, f"{plan.title} was already deleted.")
        return redirect("plans")
    delete_plan(plan=plan, by=person(request))
    messages.success(request, _with_undo(request, plan))
    return redirect("plans")


def _with_undo(request: HttpRequest, plan: Plan) -> SafeString:
    """The message with an Undo button, which is a form and needs no script."""
    context = {"title": plan.title, "restore": reverse("undelete_plan", kwargs={"slug": plan.slug})}
    return render_to_string("screens/messages/plan_deleted.html", context, request)


@operator_action
def undelete_plan_action(request: HttpRequest, slug: str) -> HttpResponse:
    plan = version_or_404(slug).plan
    if plan.deleted_at is None:
        messages.info(request, f"{plan.title} is not deleted.")
    else:
        undelete_plan(plan=plan, by=person(request))
        messages.success(request, f"{plan.title} is restored.")
    return redirect("plan", slug=slug)


MAX_RANDOM_SEED = 10**6  # short enough to say aloud; it is not a secret
RUNS_SHOWN = 10
MAX_TRIED = 3  # targets, each with a preview


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
    return FactorGroup(title, tuple((name, point_words.label(name), factors[name]) for name in in_order(factors)))


@dataclass(frozen=True)
class Unfit:
    """A target on which no run can start now. `without`: the address of the page without it, "" if it is not chosen."""

    target: Target
    reason: str
    without: str


def _without(request: HttpRequest, target: Target) -> str:
    chosen = request.GET.getlist("target")
    return _with_targets(request, [id_ for id_ in chosen if id_ != str(target.pk)]) if chosen else ""


def _with_targets(request: HttpRequest, ids: list[str]) -> str:
    query = request.GET.copy()
    query.setlist("target", ids)
    return f"?{query.urlencode()}#where"


def _first_fit(
    document: PlanDocument, grids: Sequence[PartGrid], wanted: PreviewRequest, unfit: Sequence[Unfit]
) -> tuple[list[Target], list[Unfit]]:
    """The target that was measured last, of those on which a run can start now and overwrites nothing, and why those
    before it are not. Only MAX_TRIED are tried."""
    others = usable_targets().exclude(pk__in=[each.target.pk for each in unfit])
    refused: list[Unfit] = []
    for target in others.annotate(last=Max("runs__number")).order_by(F("last").desc(nulls_last=True), "pk")[:MAX_TRIED]:
        preview = shown_preview(document, [target], wanted, grids).preview
        reason = unfit_targets(document, [target], preview.expansion, grids).get(target.pk, "")
        if preview.destructive:
            reason = reason or "The plan would overwrite all its data, so choose it yourself."
        reason = reason or next(iter(preview.expansion.problems), "")
        if not reason and preview.estimate.trials:
            return [target], refused
        refused.append(Unfit(target, reason or "The plan has no trial there.", ""))
    return [], refused


def _last_answer(runs: Sequence[Run]) -> RunFinding | None:
    """The first finding of the newest of these runs that is done; None without one."""
    done = next((run for run in runs if run.state == RunState.DONE), None)
    findings = findings_of([done]).get(known(done.number), []) if done else []
    return next((each for each in findings if not each.is_dismissed), None)


@page
def plan_page(request: HttpRequest, slug: str) -> HttpResponse:
    """A run started here has the displayed order: the seed is drawn now, or typed.

    The preview is that of the chosen targets on which a run can start now; of the others there are the reasons. Until
    somebody chooses, the targets of the plan's last run are chosen, if it can start on them, else the target that was
    measured last, of those on which it can start and overwrites nothing.
    """
    version = version_or_404(slug, request.GET.get("version", ""))
    form = TargetsForm(request.GET)
    chosen = list(form.cleaned_data["target"]) if form.is_valid() else []
    runs = list(listed_runs().filter(version__plan=version.plan)[:RUNS_SHOWN])
    is_proposed = set(request.GET) <= {"version"}
    last = runs[0] if runs and is_proposed else None
    if last is not None:
        chosen = list(usable_targets().filter(runs=last.pk))
    document = read(version.document)
    grids = grids_of(document)
    wanted = preview_request(request.GET, default_seed=secrets.randbelow(MAX_RANDOM_SEED))
    whole = shown_preview(document, chosen, wanted, grids) if chosen else None
    reasons = unfit_targets(document, chosen, whole.preview.expansion, grids) if whole else {}
    unfit = [Unfit(target, reasons[target.pk], _without(request, target)) for target in chosen if target.pk in reasons]
    fit = [target for target in chosen if target.pk not in reasons]
    other, refused = _first_fit(document, grids, wanted, unfit) if not fit and (is_proposed or unfit) else ([], [])
    chosen_by = last if fit else None
    if is_proposed:
        chosen = fit = fit or other
        unfit += [] if fit else refused
    shown = whole if chosen else None
    if fit and (unfit or not whole):
        shown = shown_preview(document, fit, wanted, grids)
    answer = _last_answer(runs)
    context = {
        "heading": as_heading(answer.claim) if answer else document.question or document.title,
        "answer": answer,
        "version": version,
        "newest": version.plan.versions.aggregate(newest=Max("number"))["newest"],
        "document": document,
        "sentences": sentences(document),
        "overwrites": overwrites_drives(document),
        "fits_job_file": not parts_unfit_for_job_files(document),
        "factor_groups": _factor_groups(document),
        "factor_warnings": shown.preview.factor_warnings if shown else factor_warnings(document),
        "targets": usable_targets(),
        "chosen": {target.id for target in chosen},
        "chosen_by": chosen_by,
        "is_proposed": is_proposed,
        "instead": [] if is_proposed else [(target, _with_targets(request, [str(target.pk)])) for target in other],
        "unfit": unfit,
        "fit": fit,
        "fitting_bytes": whole.preview.fitting_bytes if whole else 0,
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
    query = [("plan", version.plan.slug), ("version", version.number), *(("target", str(target)) for target in chosen)]
    return f"{reverse('new_schedule')}?{urlencode(query)}"


@operator_action
def start_plan(request: HttpRequest, slug: str) -> HttpResponse:
    version = version_or_404(slug, request.POST.get("version", ""))
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
        return redirect(f"{reverse('plan', kwargs={'slug': slug})}?{_form_query(version, form)}")
    return redirect("run", number=run.number)


def _form_query(version: PlanVersion, form: StartForm) -> str:
    """The parameters of the page, without the serial numbers."""
    data = form.cleaned_data
    query = [("version", version.number), *(("target", target.id) for target in data["target"]), ("note", data["note"])]
    return urlencode([*query, *([("seed", data["seed"])] if data["seed"] is not None else [])])
