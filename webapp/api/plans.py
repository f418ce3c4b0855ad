"""Plans, and previews of their runs: trials, time estimated from earlier runs, job texts."""

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Any

import msgspec
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from ninja import Field, Query, Router, Schema, Status
from ninja.pagination import paginate

from webapp.analysis.detectable import detectable
from webapp.api.common.authentication import OPERATORS, operator
from webapp.api.common.schemas import Input, Paged
from webapp.hosts.models import Target
from webapp.hosts.selectors import known_targets
from webapp.plans.document import (
    Difference,
    PlanDocument,
    PlanFileRefused,
    differences,
    document_of,
    export_plan,
    import_plan,
    read,
)
from webapp.plans.grids import document_problems, grids_of, problem_code
from webapp.plans.jobfile.reader import read_job_file
from webapp.plans.jobfile.writer import write_job_file
from webapp.plans.layouts import LayoutPlan
from webapp.plans.models import Plan, PlanVersion
from webapp.plans.preflight import EnduranceUse
from webapp.plans.preview import StreamJob, jobs_of
from webapp.plans.selectors import plans_list, version_of
from webapp.plans.services import (
    copy_plan,
    create_or_save,
    create_plan,
    delete_plan,
    restore_version,
    save_version,
    undelete_plan,
)
from webapp.results.speeds import expected_writes, learned_preview
from webapp.runs.services import obstacles

# Plans: list, read, save, copy, restore, delete.

router = Router(tags=["plans"])


class PlanOut(Schema):
    slug: str
    title: str
    builtin: bool
    latest: int | None
    run_count: int
    created_at: datetime

    @staticmethod
    def resolve_builtin(plan: Plan) -> bool:
        return bool(plan.builtin)


class VersionOut(Schema):
    plan: str
    number: int
    created_at: datetime
    created_by: str | None
    document: dict[str, Any]

    @staticmethod
    def resolve_plan(version: PlanVersion) -> str:
        return version.plan.slug

    @staticmethod
    def resolve_created_by(version: PlanVersion) -> str | None:
        return version.created_by.username if version.created_by else None


class JobFileText(Input):
    text: str
    title: str = Field("", max_length=200)
    variables: dict[str, str] = {}
    files: dict[str, str] = {}

    def read(self) -> PlanDocument:
        return read_job_file(self.text, title=self.title, variables=self.variables, files=self.files)


class PlanIn(Input):
    """One of `document` (a plan as JSON), `yaml` (a plan file) and `job_file` (a fio job file or command)."""

    document: dict[str, Any] | None = None
    yaml: str | None = None
    job_file: JobFileText | None = None

    def read(self) -> PlanDocument:
        if sum(form is not None for form in (self.document, self.yaml, self.job_file)) != 1:
            raise PlanFileRefused("Send one of `document`, `yaml` and `job_file`.")
        if self.job_file is not None:
            return self.job_file.read()
        return import_plan(self.yaml) if self.yaml is not None else document_of(self.document)


class NewPlanIn(PlanIn):
    slug: str | None = None


class NextVersionIn(PlanIn):
    base: int | None = None


class DifferenceOut(Schema):
    """`where` is a part's name, "" for the whole plan; "" in `before` or `after` means absent."""

    where: str
    what: str
    before: str
    after: str


class JobFileIn(JobFileText):
    slug: str | None = None


class PlanFileOut(Schema):
    yaml: str


@router.get("/plans", response=list[PlanOut])
@paginate(Paged)
def plans(request: HttpRequest) -> QuerySet[Plan]:
    """All plans, without deleted ones."""
    return plans_list()


@router.get("/plans/{slug}", response=VersionOut)
def plan(request: HttpRequest, slug: str, version: int | None = None) -> PlanVersion:
    """A version of a plan; by default the newest."""
    return version_of(slug, version)


@router.get("/plans/{slug}/versions", response=list[VersionOut])
@paginate(Paged)
def versions(request: HttpRequest, slug: str) -> QuerySet[PlanVersion]:
    """All versions of a plan with their documents."""
    return version_of(slug).plan.versions.select_related("plan", "created_by")


@router.get("/plans/{slug}/yaml")
def plan_yaml(request: HttpRequest, slug: str, version: int | None = None) -> HttpResponse:
    """A version as a plan file."""
    plan_version = version_of(slug, version)
    response = HttpResponse(export_plan(read(plan_version.document)), content_type="application/yaml")
    response["Content-Disposition"] = f'attachment; filename="{slug}-v{plan_version.number}.yaml"'
    return response


@router.get("/plans/{slug}/job-file")
def plan_job_file(request: HttpRequest, slug: str, version: int | None = None) -> HttpResponse:
    """One section per point; values without an fio option are in comments that `POST /job-files` reads back."""
    plan_version = version_of(slug, version)
    response = HttpResponse(write_job_file(read(plan_version.document)), content_type="text/plain; charset=utf-8")
    response["Content-Disposition"] = f'attachment; filename="{slug}-v{plan_version.number}.fio"'
    return response


@router.get("/plans/{slug}/differences", response=list[DifferenceOut])
def plan_differences(request: HttpRequest, slug: str, before: int, after: int | None = None) -> tuple[Difference, ...]:
    """The changes from version `before` to `after`; by default the newest."""
    old, new = version_of(slug, before), version_of(slug, after)
    return differences(read(old.document), read(new.document))


@router.post("/plans", response={201: VersionOut}, auth=OPERATORS)
def new_plan(request: HttpRequest, payload: NewPlanIn) -> Status[PlanVersion]:
    """Create a plan. To create or update one, use PUT."""
    person = operator(request)
    return Status(201, version_of(create_plan(document=payload.read(), by=person, slug=payload.slug).slug))


@router.put("/plans/{slug}", response={200: VersionOut, 201: VersionOut}, auth=OPERATORS)
def put_plan(request: HttpRequest, slug: str, payload: PlanIn) -> Status[PlanVersion]:
    """Create the plan, or save its next version (201); without changes, return the newest (200). Safe to repeat."""
    person = operator(request)
    version, saved = create_or_save(slug=slug, document=payload.read(), by=person)
    return Status(201 if saved else 200, version_of(slug, version.number))


@router.post("/job-files", response={201: VersionOut}, auth=OPERATORS)
def plan_from_job_file(request: HttpRequest, payload: JobFileIn) -> Status[PlanVersion]:
    """Convert a fio job file into a plan; refused options are listed with their lines."""
    person = operator(request)
    return Status(201, version_of(create_plan(document=payload.read(), by=person, slug=payload.slug).slug))


@router.post("/job-files/yaml", response=PlanFileOut)
def job_file_as_yaml(request: HttpRequest, payload: JobFileText) -> dict[str, str]:
    """Convert a fio job file or command into a plan file. Saves nothing."""
    return {"yaml": export_plan(payload.read())}


@router.post("/plans/{slug}/versions", response=VersionOut, auth=OPERATORS)
def new_version(request: HttpRequest, slug: str, payload: NextVersionIn) -> PlanVersion:
    """Save the next version; without changes, return the newest. With `base`, only if that is the newest."""
    person = operator(request)
    saved = save_version(plan=version_of(slug).plan, document=payload.read(), by=person, base=payload.base)
    return version_of(slug, saved.number)


@router.post("/plans/{slug}/copy", response={201: VersionOut}, auth=OPERATORS)
def copy(
    request: HttpRequest,
    slug: str,
    version: int | None = None,
    most_bytes: Annotated[int, Field(ge=0, le=2**60)] = 0,
) -> Status[PlanVersion]:
    """Copy this version into a new plan. With `most_bytes`, its sizes and amounts are divided until each point fits."""
    person = operator(request)
    copied = copy_plan(version=version_of(slug, version), by=person, most_bytes=most_bytes)
    return Status(201, version_of(copied.slug))


@router.post("/plans/{slug}/versions/{number}/restore", response=VersionOut, auth=OPERATORS)
def restore(request: HttpRequest, slug: str, number: int) -> PlanVersion:
    """Restore that version as the next version."""
    person = operator(request)
    saved = restore_version(plan=version_of(slug, number).plan, number=number, by=person)
    return version_of(slug, saved.number)


@router.delete("/plans/{slug}", response={204: None}, auth=OPERATORS)
def remove_plan(request: HttpRequest, slug: str) -> Status[None]:
    """Delete a plan. Its versions and runs stay, and it can be restored."""
    delete_plan(plan=version_of(slug).plan, by=operator(request))
    return Status(204, None)


@router.post("/plans/{slug}/undelete", response=VersionOut, auth=OPERATORS)
def bring_plan_back(request: HttpRequest, slug: str) -> PlanVersion:
    """Restore a deleted plan. Safe to repeat."""
    plan_version = version_of(slug)
    undelete_plan(plan=plan_version.plan, by=operator(request))
    return plan_version


MAX_PREVIEWED = 100


class EstimateOut(Schema):
    """`seconds` excludes `unknown_trials`, which end by an amount. It counts the maximum time of `unknown_stops`, which
    have a stop rule and no earlier trial like them on the target. `learned_runs` 0: at least one of these hosts has no
    earlier runs."""

    trials: int
    seconds: float
    seconds_low: float
    seconds_high: float
    learned_runs: int
    unknown_trials: int
    stop_trials: int
    stop_seconds: Annotated[list[int], Field(min_length=2, max_length=2)]
    unknown_stops: int
    bytes_written_max: int
    space_bytes: int
    layouts_built: int
    unknown_builds: int  # builds of layouts that are new on their host; their time is not in `seconds`
    settings_changed: list[str]


class PreviewStep(Schema):
    """A step before a trial; `job_text` is null unless it writes."""

    step: str
    job_text: str | None


class PreviewStream(Schema):
    target: str
    job_text: str
    prefill_job_text: str | None
    steps: list[PreviewStep]


class PreviewTrial(Schema):
    """`streams` start together, one per target; `target` and the job texts beside it are of the first."""

    number: int  # in the order of execution, from 1
    repeat: int
    part: str
    target: str
    point: dict[str, Any]
    settings: dict[str, str]
    drop_caches: bool
    job_text: str
    prefill_job_text: str | None
    purge: str  # method, before everything else; "" for none
    steps: list[PreviewStep]
    streams: list[PreviewStream]


class AlignmentOut(Schema):
    """The alignment of one layer with the data stripe width below it."""

    layer: str
    verdict: str
    unit_bytes: int | None
    start_bytes: int
    width_bytes: int | None
    words: str


class LayoutOut(Schema):
    """A layout on a pool; KEY in a command is different for each run."""

    layout: str
    pool: str
    drives: list[str]
    usable_bytes: int
    width_bytes: int | None
    alignment: list[AlignmentOut]
    build: list[list[str]]
    take_down: list[list[str]]
    purge: str  # purge method of its drives before each trial, which rebuilds the layout; "" for none
    by_controller: bool  # built by a RAID controller's tool; no such tool was tested on real hardware


class EnduranceUseOut(Schema):
    """Maximum bytes written to a drive, also in percent of its rated endurance if that is known.

    `limit_bytes`: the maximum per run that the policy of its host allows.
    """

    target: str
    bytes_most: int
    percent_most: float | None
    rated_bytes: int | None
    left_bytes: int | None
    percent_used: int | None
    too_much: bool
    limit_bytes: int | None
    over_limit: bool

    @staticmethod
    def resolve_target(use: EnduranceUse) -> str:
        return str(use.target)

    @staticmethod
    def resolve_rated_bytes(use: EnduranceUse) -> int | None:
        return use.endurance.rated_bytes

    @staticmethod
    def resolve_left_bytes(use: EnduranceUse) -> int | None:
        return use.endurance.left_bytes

    @staticmethod
    def resolve_percent_used(use: EnduranceUse) -> int | None:
        return use.endurance.percent_used


class ExpectedOut(Schema):
    """Expected bytes written to a target, from the nearest earlier results of such writes; `estimate` has the bound.

    `by_model`: partly from other targets with the same drive model. Only targets with earlier results are listed.
    """

    target: str
    bytes: int
    by_model: bool


class FindsOut(Schema):
    """The smallest difference between two levels that a run claims with about 85 % probability; `percent` is null if it
    claims nothing: with fewer than 3 repeats, or if no levels are compared. `noise_percent`: standard deviation of a
    trial on `target`, from so many results; with 0 results it is assumed."""

    percent: float | None
    repeats: int
    comparisons: int
    noise_percent: float
    results: int
    target: str


class PreviewOut(Schema):
    """A plan with `problems` cannot be started. `code` is then `plan_too_large`, if it has more levels or trials than
    a run may have, or `plan_problem`, else "". With `obstacles`, it cannot be started on these targets. `arm`:
    serial numbers to send with the start.

    A host whose last `stop_after` trials failed gets no more trials of the run; 0: no limit.
    `shared`: targets that are used at once and share a drive. `warnings`: what a host does not support, factors that
    cannot do anything here, and targets whose reads may not come from a drive. `fitting_bytes`: the largest size that
    fits the targets, if a size of the plan does not; else 0.
    """

    problems: list[str]
    code: str
    obstacles: list[str]
    note: str
    skipped: list[str]
    shared: list[str]
    fitting_bytes: int
    warnings: list[str]
    estimate: EstimateOut
    arm: list[str]
    stop_after: int
    endurance: list[EnduranceUseOut]
    expected: list[ExpectedOut]
    layouts: list[LayoutOut]
    finds: FindsOut | None
    trials: list[PreviewTrial]


class PlanPreviewOut(PreviewOut):
    plan: str
    version: int


class PreviewIn(PlanIn):
    """`targets` are host/target; without targets, only the plan itself is checked and there are no trials."""

    targets: list[str] = Field([], max_length=100)
    limit: int = Field(0, ge=0, le=MAX_PREVIEWED, strict=True)
    offset: int = Field(0, ge=0, strict=True)


@router.get("/plans/{slug}/preview", response=PlanPreviewOut)
def plan_preview(
    request: HttpRequest,
    slug: str,
    target: Query[list[str]],
    version: int | None = None,
    limit: Annotated[int, Field(ge=0, le=MAX_PREVIEWED)] = 25,
    offset: Annotated[int, Field(ge=0)] = 0,
) -> dict[str, object]:
    """Preview a run on `target=host/target&target=…`, with the exact job texts. Changes nothing.

    The time is a range if there are earlier runs on these hosts.
    """
    plan_version = version_of(slug, version)
    shown = slice(offset, offset + limit)
    return {"plan": slug, "version": plan_version.number} | _preview(
        read(plan_version.document), known_targets(target), shown
    )


@router.post("/previews", response=PreviewOut)
def unsaved_preview(request: HttpRequest, payload: PreviewIn) -> dict[str, object]:
    """Check a plan that is not saved, and preview a run of it. Changes nothing."""
    shown = slice(payload.offset, payload.offset + payload.limit)
    return _preview(payload.read(), known_targets(payload.targets), shown)


def _preview(document: PlanDocument, targets: Sequence[Target], shown: slice) -> dict[str, object]:
    grids = grids_of(document)
    made = learned_preview(document, targets, grids=grids)
    problems, code = made.expansion.problems, made.expansion.problem_code
    if not targets:
        problems_of_document = document_problems(document, grids)
        problems, code = tuple(map(str, problems_of_document)), problem_code(problems_of_document)
    names = {str(target.id): target for target in targets}
    each_point = [trial for trial, _ in made.expansion.distinct]
    return {
        "problems": problems,
        "code": code,
        "obstacles": obstacles(made.expansion, targets) if targets and not problems else [],
        "note": document.note,
        "skipped": made.expansion.skipped,
        "shared": made.shared,
        "fitting_bytes": made.fitting_bytes,
        "warnings": [*made.target_warnings, *map(str, made.factor_warnings)],
        "estimate": made.estimate,
        "arm": [target.arming_serial for target in made.destructive],
        "stop_after": made.stop_after,
        "endurance": made.endurance,
        "expected": [
            {"target": str(target), "bytes": expected.bytes, "by_model": expected.by_model}
            for target, expected in expected_writes(made.expansion, made.estimate, targets)
        ],
        "layouts": [_layout(layout) for layout in made.layouts],
        "finds": msgspec.to_builtins(detectable(each_point, document.repeats, targets))
        if each_point and not document.goal
        else None,
        "trials": [
            {name: getattr(trial, name) for name in ("number", "repeat", "part", "point", "settings", "drop_caches")}
            | {"purge": trial.before.purge}
            | _streams([_stream(job) for job in jobs_of(trial, names)])
            for trial in made.expansion.trials[shown]
        ],
    }


def _streams(streams: list[dict[str, object]]) -> dict[str, object]:
    return streams[0] | {"streams": streams}


def _stream(job: StreamJob) -> dict[str, object]:
    return {
        "target": str(job.target),
        "job_text": job.recipe.job_text,
        "prefill_job_text": job.prefill.job_text if job.prefill else None,
        "steps": [{"step": words, "job_text": recipe.job_text if recipe else None} for words, recipe in job.steps],
    }


def _layout(made: LayoutPlan) -> dict[str, object]:
    return {
        "layout": made.line,
        "pool": made.pool,
        "drives": [drive.name for drive in made.drives],
        "usable_bytes": made.usable_bytes,
        "width_bytes": made.width_bytes,
        "alignment": [msgspec.to_builtins(layer) for layer in made.alignment],
        "build": [list(step.argv) for step in made.build],
        "take_down": [list(step.argv) for step in made.take_down],
        "by_controller": made.by_controller,
        "purge": made.purge,
    }
