"""The list of plans: the filter and the rows."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from django.db.models import Aggregate, Count, F, FloatField, Max, Q, QuerySet
from django.db.models.functions import Extract

from webapp.plans.document import Part, PlanDocument, read
from webapp.plans.models import Plan, PlanVersion
from webapp.plans.outline import Outline, outline
from webapp.plans.part_levels import factor_texts
from webapp.runs.models import Run, RunState
from webapp.screens.plans.sentence import part_in_words

MAX_CHARACTERS = 10_000  # of levels that a row of the list reads; far more than a large plan has
TOO_MANY = "too many levels to list"


class Shown(StrEnum):
    ALL = ""
    OWN = "own"
    BUILTIN = "builtin"
    DELETED = "deleted"


SHOWN_AS = {Shown.ALL: "All", Shown.OWN: "Our own", Shown.BUILTIN: "Built in", Shown.DELETED: "Deleted"}
_FILTERS = {
    Shown.ALL: Q(deleted_at=None),
    Shown.OWN: Q(deleted_at=None, builtin=""),
    Shown.BUILTIN: Q(deleted_at=None) & ~Q(builtin=""),
    Shown.DELETED: Q(deleted_at__isnull=False),
}


class Median(Aggregate):
    """PostgreSQL's percentile_cont(0.5)."""

    function = "percentile_cont"
    template = "%(function)s(0.5) WITHIN GROUP (ORDER BY %(expressions)s)"
    output_field = FloatField()


@dataclass(frozen=True)
class Row:
    """`took_s` is the median duration of done runs, None if there are none."""

    plan: Plan
    latest: int
    sentences: list[tuple[str, str]]
    outline: Outline | None  # None: the plan is too large to be expanded for a list
    runs: int
    took_s: float | None
    last_run_at: datetime | None
    last_run_number: int | None


@dataclass(frozen=True)
class _Used:
    runs: int
    last_at: datetime
    last_number: int


def listed_plans(search: str, shown: Shown) -> QuerySet[Plan]:
    """Every word must occur in the title, the name or the content of a version."""
    plans = Plan.objects.filter(_FILTERS[shown])
    for word in search.split()[:10]:
        said = PlanVersion.objects.filter(document__icontains=word).values("plan")
        plans = plans.filter(Q(title__icontains=word) | Q(slug__icontains=word) | Q(pk__in=said))
    return plans.order_by("-deleted_at" if shown is Shown.DELETED else "title", "slug")


def rows(plans: Sequence[Plan]) -> list[Row]:
    """Rows of all plans, with three queries."""
    newest = PlanVersion.objects.filter(plan__in=plans).order_by("plan_id", "-number").distinct("plan_id")
    versions = {version.plan_id: version for version in newest}
    runs = Run.objects.filter(version__plan__in=plans).order_by().values("version__plan")
    counted = runs.annotate(n=Count("pk"), at=Max("created_at"), last=Max("number"))
    used = {row["version__plan"]: _Used(row["n"], row["at"], row["last"]) for row in counted}
    took = Extract(F("ended_at") - F("started_at"), "epoch")
    times = runs.filter(state=RunState.DONE).annotate(took=Median(took)).values_list("version__plan", "took")
    usual = dict(times)
    return [
        _row(plan, versions[plan.pk], used.get(plan.pk), usual.get(plan.pk)) for plan in plans if plan.pk in versions
    ]


def _row(plan: Plan, version: PlanVersion, used: _Used | None, took_s: float | None) -> Row:
    document = read(version.document)
    return Row(
        plan=plan,
        latest=version.number,
        sentences=sentences(document),
        outline=outline(document) if _characters(document) <= MAX_CHARACTERS else None,
        runs=used.runs if used else 0,
        took_s=took_s,
        last_run_at=used.last_at if used else None,
        last_run_number=used.last_number if used else None,
    )


def sentences(document: PlanDocument) -> list[tuple[str, str]]:
    """Name and sentence of each part, without sentences for parts after MAX_CHARACTERS of levels."""
    told, characters = [], 0
    for part in document.parts:
        characters += _characters_of(document, part)
        told.append((part.name, part_in_words(document, part) if characters <= MAX_CHARACTERS else TOO_MANY))
    return told


def _characters(document: PlanDocument) -> int:
    """Length of all levels as typed, in all parts."""
    return sum(_characters_of(document, part) for part in document.parts)


def _characters_of(document: PlanDocument, part: Part) -> int:
    return sum(map(len, factor_texts(document, part).values()))
