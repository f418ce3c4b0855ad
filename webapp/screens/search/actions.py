"""What the command palette does: compare two products, open a run, create and add."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from django.db.models import Q
from django.urls import reverse

from webapp.bench.products import Kind, Product
from webapp.core.models import User
from webapp.hosts.models import Host, Target
from webapp.plans.models import Plan
from webapp.runs.models import Run
from webapp.screens.bench.address import bench_address

_COMPARE = re.compile(r"^(?:compare|bench)\s+(.+?)\s*(?:\s(?:and|with|to|vs)\s|,|\s)\s*(\S.*)$", re.IGNORECASE)
_RUN = re.compile(r"^(?:open\s+)?run\s+#?(\d{1,9})$", re.IGNORECASE)
_START = re.compile(r"^(?:start|run)\s+(\D.*)$", re.IGNORECASE)


@dataclass(frozen=True)
class Action:
    """`words` are looked for in the title; `role` is the one that may do it."""

    title: str
    page: str
    detail: str
    role: str = "viewer"


ACTIONS = (
    Action("New plan", "new_plan", "Plans", "operator"),
    Action("Import a plan", "import_plan", "Plans", "operator"),
    Action("Add host", "add_host", "Hosts", "administrator"),
    Action("New schedule", "new_schedule", "Schedules", "operator"),
    Action("Import results", "imports", "Imports", "operator"),
    Action("Compare two products", "bench", "Bench"),
    Action("Acceptance test", "acceptance", "Trends"),
)


@dataclass(frozen=True)
class Found:
    title: str
    address: str
    detail: str


def actions(words: str, user: User) -> Iterator[Found]:
    """Those that the words ask for, the most particular first. At most five queries."""
    if (match := _RUN.match(words)) and Run.objects.filter(number=int(match[1])).exists():
        yield Found(f"Open run {match[1]}", reverse("run", args=[int(match[1])]), "Run")
    if match := _COMPARE.match(words):
        products = [product for name in match.groups() if (product := product_named(name.strip()))]
        if len(set(products)) == 2:
            yield Found(f"Compare {products[0].value} and {products[1].value}", bench_address(products), "Bench")
    if match := _START.match(words):
        for plan in Plan.objects.filter(title__icontains=match[1], deleted_at=None).order_by("title")[:3]:
            yield Found(f"Start {plan.title}", reverse("plan", args=[plan.slug]), "Plan")
    if host := Host.objects.filter(slug__iexact=words, archived_at=None).first():
        yield from _of_host(host)
    roles = {"viewer": True, "operator": user.is_operator, "administrator": user.is_administrator}
    for action in ACTIONS:
        if roles[action.role] and all(word in action.title.lower() for word in words.lower().split()):
            yield Found(action.title, reverse(action.page), action.detail)


def _of_host(host: Host) -> Iterator[Found]:
    """Its first two targets beside each other."""
    targets = [Product(Kind.TARGET, f"{host.slug}/{slug}") for slug in _targets(host)]
    if len(targets) == 2:
        yield Found(f"Compare {targets[0].value} and {targets[1].value}", bench_address(targets), "Bench")


def _targets(host: Host) -> list[str]:
    return list(host.targets.filter(in_policy=True).order_by("slug").values_list("slug", flat=True)[:2])


def product_named(name: str) -> Product | None:
    """A run by its number, else a target or a drive model with exactly this name, else the first that contains it."""
    if match := _RUN.match(name):
        return Product(Kind.RUN, match[1])
    host, _, slug = name.rpartition("/")
    of_host = Q(host__slug__iexact=host) if host else Q()
    known = Target.objects.filter(in_policy=True, host__archived_at=None).select_related("host")
    known = known.order_by("host__slug", "slug")
    target = known.filter(of_host, slug__iexact=slug).first()
    if target:
        return Product(Kind.TARGET, str(target))
    named = known.filter(model__iexact=name).first() or known.filter(model__icontains=name).first()
    return Product(Kind.MODEL, named.model) if named else None
