"""Plans: list, read, save, copy, restore, delete."""

from datetime import datetime
from typing import Annotated, Any

from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from ninja import Field, Router, Schema, Status
from ninja.pagination import paginate

from webapp.api.common.authentication import OPERATORS, operator
from webapp.api.common.schemas import Input, Paged
from webapp.plans.jobfile import read_job_file, write_job_file
from webapp.plans.models import Plan, PlanVersion
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
from webapp.plans.yaml_io import (
    Difference,
    PlanDocument,
    PlanFileRefused,
    differences,
    document_of,
    export_plan,
    import_plan,
    read,
)

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


class PlanIn(Input):
    """Either `document` (a plan as JSON) or `yaml` (a plan file)."""

    document: dict[str, Any] | None = None
    yaml: str | None = None

    def read(self) -> PlanDocument:
        if (self.document is None) is (self.yaml is None):
            raise PlanFileRefused("Send either `document` or `yaml`.")
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


class JobFileIn(Input):
    text: str
    title: str = Field("", max_length=200)
    slug: str | None = None


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
    found = version_of(slug, version)
    response = HttpResponse(export_plan(read(found.document)), content_type="application/yaml")
    response["Content-Disposition"] = f'attachment; filename="{slug}-v{found.number}.yaml"'
    return response


@router.get("/plans/{slug}/job-file")
def plan_job_file(request: HttpRequest, slug: str, version: int | None = None) -> HttpResponse:
    """One section per point; values without an fio option are in comments that `POST /job-files` reads back."""
    found = version_of(slug, version)
    response = HttpResponse(write_job_file(read(found.document)), content_type="text/plain; charset=utf-8")
    response["Content-Disposition"] = f'attachment; filename="{slug}-v{found.number}.fio"'
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
    """Create the plan, or save the next version of it; without changes, return the newest. Safe to repeat."""
    person = operator(request)
    version, created = create_or_save(slug=slug, document=payload.read(), by=person)
    return Status(201 if created else 200, version_of(slug, version.number))


@router.post("/job-files", response={201: VersionOut}, auth=OPERATORS)
def plan_from_job_file(request: HttpRequest, payload: JobFileIn) -> Status[PlanVersion]:
    """Convert a fio job file into a plan; refused options are listed with their lines."""
    person = operator(request)
    document = read_job_file(payload.text, title=payload.title)
    return Status(201, version_of(create_plan(document=document, by=person, slug=payload.slug).slug))


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
    found = version_of(slug)
    undelete_plan(plan=found.plan, by=operator(request))
    return found
