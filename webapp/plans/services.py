"""Writes of plans. A version is never changed: saving makes the next one."""

from pathlib import Path

import msgspec
from django.db import transaction
from django.db.models import Max
from django.utils import timezone
from django.utils.text import slugify

from webapp.core.errors import Refusal
from webapp.core.models import User
from webapp.core.services import audit
from webapp.plans.document import PlanDocument, read, write
from webapp.plans.models import Plan, PlanVersion
from webapp.plans.yaml_io import import_plan

BUILTIN = Path(__file__).resolve().parent / "builtin"
_SLUG_LENGTH = 80


@transaction.atomic
def create_plan(*, document: PlanDocument, by: User | None, slug: str | None = None) -> Plan:
    """A new plan with its first version. Without `slug` one is made from the title.

    Raises Refusal plan_exists where the slug that was asked for is taken.
    """
    _checked_texts(document)
    plan = Plan(slug=_free_slug(document.title) if slug is None else _checked_slug(slug), title=document.title)
    if Plan.objects.filter(slug=plan.slug).exists():
        raise Refusal(
            "plan_exists", f"There is a plan {plan.slug} already. Save a version of it, or take another name."
        )
    plan.save()
    _add_version(plan, document, by)
    audit(by=by, action="plan.create", subject=plan.slug)
    return plan


@transaction.atomic
def save_version(*, plan: Plan, document: PlanDocument, by: User | None) -> PlanVersion:
    """The next version of a plan; the newest one as it is where nothing has changed."""
    plan = Plan.objects.select_for_update().get(pk=plan.pk)
    newest = plan.versions.order_by("-number").first()
    if newest is not None and read(newest.document) == document:
        return newest
    version = _add_version(plan, document, by)
    Plan.objects.filter(pk=plan.pk).update(title=document.title)
    audit(by=by, action="plan.save", subject=plan.slug, detail={"version": version.number})
    return version


def _checked_texts(document: PlanDocument) -> None:
    """PostgreSQL keeps neither NUL nor half of a surrogate pair. Raises Refusal."""
    try:
        stored = msgspec.json.encode(document)
    except UnicodeEncodeError as error:
        raise Refusal("text_refused", "The plan holds characters that are no text.") from error
    if b"\\u0000" in stored:
        raise Refusal("text_refused", "The plan holds a NUL character.")


def _add_version(plan: Plan, document: PlanDocument, by: User | None) -> PlanVersion:
    _checked_texts(document)
    highest = plan.versions.aggregate(highest=Max("number"))["highest"] or 0
    return PlanVersion.objects.create(plan=plan, number=highest + 1, document=write(document), created_by=by)


@transaction.atomic
def delete_plan(*, plan: Plan, by: User | None) -> None:
    """Take a plan out of the lists; its versions and runs stay."""
    if Plan.objects.filter(pk=plan.pk, deleted_at=None).update(deleted_at=timezone.now()):
        audit(by=by, action="plan.delete", subject=plan.slug)


@transaction.atomic
def undelete_plan(*, plan: Plan, by: User | None) -> None:
    """Bring a deleted plan back."""
    if Plan.objects.filter(pk=plan.pk, deleted_at__isnull=False).update(deleted_at=None):
        audit(by=by, action="plan.undelete", subject=plan.slug)


def load_builtin_plans() -> list[Plan]:
    """Bring the plans that come with Sweetspot up to date: a new version only where the text has changed.

    Safe to call any number of times. A built-in plan that somebody has deleted stays deleted.
    """
    return [_load(path) for path in sorted(BUILTIN.glob("*.yaml"))]


def _load(path: Path) -> Plan:
    document = import_plan(path.read_text(encoding="utf-8"))
    plan = Plan.objects.filter(slug=path.stem).first()
    if plan is None:
        return create_plan(document=document, by=None, slug=path.stem)
    ours = plan.versions.filter(created_by=None).order_by("-number").first()
    if ours is None or read(ours.document) != document:
        save_version(plan=plan, document=document, by=None)
    return plan


def _checked_slug(slug: str) -> str:
    if slugify(slug) != slug or not 0 < len(slug) <= _SLUG_LENGTH:
        raise Refusal("slug_refused", f"`{slug}` is no short name: use small letters, digits and hyphens.")
    return slug


def _free_slug(title: str) -> str:
    """From the title, with a number where that is taken."""
    wanted = slugify(title)[: _SLUG_LENGTH - 5].strip("-") or "plan"
    taken = set(Plan.objects.filter(slug__startswith=wanted).values_list("slug", flat=True))
    numbered = (f"{wanted}-{number}" for number in range(2, len(taken) + 3))
    return next(slug for slug in (wanted, *numbered) if slug not in taken)
