"""Services for plans. A version never changes: saving creates the next one."""

import itertools
from pathlib import Path

import msgspec
from django.db import transaction
from django.db.models import Max
from django.utils import timezone
from django.utils.text import slugify

from webapp.core.errors import Refusal, free_slug
from webapp.core.models import User
from webapp.core.services import audit
from webapp.plans.document import PlanDocument, import_plan, read, write
from webapp.plans.grids import refuse_unsound
from webapp.plans.models import Plan, PlanVersion
from webapp.plans.sizes import with_smaller_sizes

BUILTIN = Path(__file__).resolve().parent / "builtin"
_SLUG_LENGTH = 80
_TITLE_STEM = 180  # leaves room for " (copy 12)" in the 200 characters of a title
RESERVED = frozenset({"new", "import", "preview"})  # addresses of other pages under /plans/


@transaction.atomic
def create_plan(*, document: PlanDocument, by: User | None, slug: str | None = None) -> Plan:
    """Create a plan with its first version. Without `slug`, it is derived from the title.

    Raises PlanRefused; Refusal plan_exists if the given slug is taken.
    """
    return _create(document, by, slug)


def _create(document: PlanDocument, by: User | None, slug: str | None, builtin: str = "") -> Plan:
    _checked_texts(document)
    refuse_unsound(document)
    chosen = _free_slug(document.title) if slug is None else _checked_slug(slug)
    plan = Plan(slug=chosen, title=document.title, builtin=builtin)
    if Plan.objects.filter(slug=plan.slug).exists():
        raise Refusal(
            "plan_exists", f"A plan {plan.slug} already exists. Save a new version of it, or choose another name."
        )
    plan.save()
    _add_version(plan, document, by)
    audit(by=by, action="plan.create", on=plan, label=plan.slug)
    return plan


@transaction.atomic
def save_version(
    *, plan: Plan, document: PlanDocument, by: User | None, base: int | None = None, restored: int | None = None
) -> PlanVersion:
    """Save the next version of a plan; return the newest version if nothing has changed.

    With `base`, only if that is still the newest version. `restored` is the number of the copied version.
    Raises PlanRefused; Refusal plan_builtin, plan_deleted, plan_changed.
    """
    plan = Plan.objects.select_for_update().get(pk=plan.pk)
    _refuse_fixed(plan)
    newest = plan.versions.order_by("-number").first()
    if newest is not None and read(newest.document) == document:
        return newest
    if base is not None and newest is not None and newest.number != base:
        raise Refusal("plan_changed", _overtaken(newest, base))
    return _save(plan, document, by, restored)


@transaction.atomic
def create_or_save(*, slug: str, document: PlanDocument, by: User | None) -> tuple[PlanVersion, bool]:
    """Create the plan `slug`, or save its next version. False if its newest version has this content already. Raises as
    both."""
    plan = Plan.objects.select_for_update().filter(slug=slug).first()
    if plan is None:
        return create_plan(document=document, by=by, slug=slug).versions.get(), True
    before = plan.versions.count()
    version = save_version(plan=plan, document=document, by=by)
    return version, plan.versions.count() > before


def _refuse_fixed(plan: Plan) -> None:
    if plan.builtin:
        raise Refusal("plan_builtin", f"{plan} is built in and cannot be changed. Copy it and change the copy.")
    if plan.deleted_at:
        raise Refusal("plan_deleted", f"{plan} was deleted. Restore it before you change it.")


def _overtaken(newest: PlanVersion, base: int) -> str:
    who = newest.created_by.username if newest.created_by else "somebody"
    return (
        f"While you were changing version {base}, {who} saved version {newest.number}. Your changes are not "
        "saved: check the differences, then save again to create the next version."
    )


def _save(plan: Plan, document: PlanDocument, by: User | None, restored: int | None = None) -> PlanVersion:
    _checked_texts(document)
    refuse_unsound(document)
    version = _add_version(plan, document, by)
    Plan.objects.filter(pk=plan.pk).update(title=document.title)
    detail = {"version": version.number} | ({"restored": restored} if restored else {})
    audit(by=by, action="plan.save", on=plan, label=plan.slug, detail=detail)
    return version


@transaction.atomic
def restore_version(*, plan: Plan, number: int, by: User | None) -> PlanVersion:
    """Save an older version's content as the next version. Raises as `save_version`; PlanVersion.DoesNotExist."""
    old = plan.versions.get(number=number)
    return save_version(plan=plan, document=read(old.document), by=by, restored=number)


@transaction.atomic
def copy_plan(*, version: PlanVersion, by: User | None, most_bytes: int = 0) -> Plan:
    """Create a plan with the content of `version` and a new title. With `most_bytes`, its sizes are divided to fit."""
    Plan.objects.select_for_update().get(pk=version.plan_id)  # of two copies at once, the second one has another title
    document = read(version.document)
    if most_bytes:
        document = with_smaller_sizes(document, most_bytes)
    titles = set(Plan.objects.filter(title__startswith=document.title[:_TITLE_STEM]).values_list("title", flat=True))
    copies = (f"{document.title[:_TITLE_STEM]} (copy{f' {n}' if n > 1 else ''})" for n in itertools.count(1))
    title = next(title for title in copies if title not in titles)
    return _create(msgspec.structs.replace(document, title=title), by, None)


def _checked_texts(document: PlanDocument) -> None:
    """PostgreSQL cannot store NUL or unpaired surrogates. Raises Refusal."""
    try:
        stored = msgspec.json.encode(document)
    except UnicodeEncodeError as error:
        raise Refusal(
            "text_refused", "The plan contains invalid characters (unpaired surrogates). Remove them."
        ) from error
    if b"\\u0000" in stored:
        raise Refusal("text_refused", "The plan contains a NUL character. Remove it.")


def _add_version(plan: Plan, document: PlanDocument, by: User | None) -> PlanVersion:
    highest = plan.versions.aggregate(highest=Max("number"))["highest"] or 0
    return PlanVersion.objects.create(plan=plan, number=highest + 1, document=write(document), created_by=by)


@transaction.atomic
def delete_plan(*, plan: Plan, by: User | None) -> None:
    """Delete a plan: it disappears from the lists; its versions and runs stay."""
    if Plan.objects.filter(pk=plan.pk, deleted_at=None).update(deleted_at=timezone.now()):
        audit(by=by, action="plan.delete", on=plan, label=plan.slug)


@transaction.atomic
def undelete_plan(*, plan: Plan, by: User | None) -> None:
    """Restore a deleted plan."""
    if Plan.objects.filter(pk=plan.pk, deleted_at__isnull=False).update(deleted_at=None):
        audit(by=by, action="plan.restore", on=plan, label=plan.slug)


def load_builtin_plans() -> list[Plan]:
    """Update the built-in plans: save a new version of each plan whose text has changed.

    Safe to call repeatedly. A deleted built-in plan stays deleted, and a user's plan with the name of a built-in plan
    does not change.
    """
    return [_load(path) for path in sorted(BUILTIN.glob("*.yaml"))]


def _load(path: Path) -> Plan:
    document = import_plan(path.read_text(encoding="utf-8"))
    plan = Plan.objects.filter(builtin=path.stem).first() or _adopted(path.stem)
    if plan is None:
        free = not Plan.objects.filter(slug=path.stem).exists()
        return _create(document, None, path.stem if free else None, builtin=path.stem)
    if read(plan.versions.latest("number").document) != document:
        _save(plan, document, None)
    return plan


def _adopted(stem: str) -> Plan | None:
    """A built-in plan of an older installation, which has no mark: the system created its first version."""
    known = Plan.objects.filter(slug=stem, builtin="", versions__number=1, versions__created_by=None).first()
    if known is not None:
        Plan.objects.filter(pk=known.pk).update(builtin=stem)
        known.builtin = stem
    return known


def _checked_slug(slug: str) -> str:
    if slugify(slug) != slug or not 0 < len(slug) <= _SLUG_LENGTH or slug in RESERVED:
        raise Refusal(
            "slug_refused",
            f"`{slug}` is not a valid name: use lowercase letters, digits and hyphens, "
            "and none of the words in the addresses of other pages.",
        )
    return slug


def _free_slug(title: str) -> str:
    """A slug from the title, with a number if it is taken."""
    wanted = slugify(title)[: _SLUG_LENGTH - 5].strip("-") or "plan"
    return free_slug(wanted, {*Plan.objects.filter(slug__startswith=wanted).values_list("slug", flat=True), *RESERVED})
