"""The page of what was found, and the same for the command palette."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from urllib.parse import urlencode

import msgspec
from django.db.models import Exists, F, OuterRef, Prefetch, Q
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from msgspec import structs

from webapp.analysis.models import SavedComparison
from webapp.bench.products import Kind, Product
from webapp.core import formatting
from webapp.core.models import User
from webapp.hosts.models import Host, Target
from webapp.plans.models import Plan
from webapp.results.models import Import, Origin
from webapp.runs.models import Note, Run
from webapp.screens.access import page, person
from webapp.screens.bench.address import bench_address, product_address
from webapp.screens.payloads import SearchHit, SearchHits
from webapp.screens.templatetags.notes import plain
from worker.contract.workload import TargetKind

# What the box in the bar finds: hosts, drives, targets, plans, runs, saved comparisons and imports, one query each.

# What was found, in groups.

MAX_FOUND = 20


@dataclass(frozen=True)
class Hit:
    title: str
    address: str
    detail: str


@dataclass(frozen=True)
class Group:
    """`more`: there are more than MAX_FOUND, which are not shown."""

    title: str
    hits: tuple[Hit, ...]
    more: bool


def joined(*parts: str) -> str:
    return " · ".join(part for part in parts if part)


# What the search finds in imports: their titles and sources, and the drives, controllers and hosts of their labels.

MAX_LABELS = 200  # different sets of labels, of which some may name the same product
# The label, its kind, and the words for it.
_LABELS = (
    ("drive", Kind.MODEL, "drive model"),
    ("serial", Kind.SERIAL, "drive"),
    ("controller", Kind.CONTROLLER, "controller"),
    ("host", Kind.HOST, "host"),
)


def imports(words: str) -> Iterable[Hit]:
    """The newest first, with the reference library."""
    named = Q(title__icontains=words) | Q(source__icontains=words) | Q(note__icontains=words)
    for imported in Import.objects.filter(named).order_by("-number")[: MAX_FOUND + 1]:
        kind = f"import {imported.number}" if imported.slug is None else "reference"
        yield Hit(imported.title, reverse("import", args=[imported.number]), joined(kind, imported.source[:120]))


def imported_products(words: str) -> Iterable[Hit]:
    """Each drive, controller and host once. The link is to its own page, or to the page of the reference if only
    references name it."""
    named = Q(*((f"{label}__icontains", words) for label, _, _ in _LABELS), _connector=Q.OR)
    columns = ("imported__slug", "imported__number", "imported__title", *(label for label, _, _ in _LABELS))
    hits: dict[tuple[str, Kind], Hit] = {}
    own_first = Origin.objects.filter(named).order_by(F("imported__slug").desc(nulls_first=True), "-imported__number")
    for slug, number, title, *labels in own_first.values_list(*columns).distinct()[:MAX_LABELS]:
        for text, (_, kind, what) in zip(labels, _LABELS, strict=True):
            if words.lower() in text.lower() and (text, kind) not in hits:
                address = "" if slug else _address(Product(kind, text))
                hits[text, kind] = Hit(text, address or reverse("import", args=[number]), joined(what, title))
    return [hits[key] for key in sorted(hits)][: MAX_FOUND + 1]


def _address(product: Product) -> str:
    """Imported hosts have no page of their own, only results."""
    if product.kind is Kind.HOST:
        return f"{reverse('results')}?{urlencode({'host': product.value})}"
    return product_address(product)


MAX_TARGETS_OF_DRIVES = 100  # of which some may be the same drive
_NUMBER = re.compile(r"^(?:(?:open\s+)?run\s*)?#?(\d{1,9})$", re.IGNORECASE)


def find(words: str) -> tuple[Group, ...]:
    """Groups that have a hit. A hit contains the words as they are, in any case."""
    groups = (
        _group("Hosts", _hosts(words)),
        _group("Drives", _drives(words)),
        _group("Targets", _targets(words)),
        _group("Plans", _plans(words)),
        _group("Runs", _runs(words)),
        _group("Saved comparisons", _comparisons(words)),
        _group("Drives, controllers and hosts of imports", imported_products(words)),
        _group("Imports and references", imports(words)),
    )
    return tuple(group for group in groups if group.hits)


def _group(title: str, hits: Iterable[Hit]) -> Group:
    hits_found = tuple(hits)
    return Group(title, hits_found[:MAX_FOUND], len(hits_found) > MAX_FOUND)


def _hosts(words: str) -> Iterable[Hit]:
    named = Q(slug__icontains=words) | Q(hostname__icontains=words) | Q(former_names__slug__icontains=words)
    for host in Host.objects.filter(named).distinct().order_by("slug")[: MAX_FOUND + 1]:
        state = "removed" if host.archived_at else ""
        yield Hit(host.slug, reverse("host", args=[host.slug]), joined(host.hostname, state))


def _drives(words: str) -> Iterable[Hit]:
    """Each drive once, also if it was in several hosts; the address is that of its newest target."""
    named = Q(serial__icontains=words) | Q(model__icontains=words)
    targets_of_drives = (
        Target.objects.filter(named).exclude(serial="").select_related("host").order_by("-in_policy", "-pk")
    )
    by_drive: dict[tuple[str, str], list[Target]] = {}
    for target in targets_of_drives[:MAX_TARGETS_OF_DRIVES]:
        by_drive.setdefault((target.model, target.serial), []).append(target)
    for (model, serial), targets in sorted(by_drive.items()):
        address = reverse("host_target", args=[targets[0].host.slug, targets[0].slug])
        yield Hit(model or serial, address, joined(f"serial {serial}", ", ".join(map(str, targets[:3]))))


def _named(words: str, prefix: str = "") -> Q:
    """Targets with these words in one of their names."""
    fields = ("serial", "model", "slug", "stable_id", "path", "device")
    return Q(*((f"{prefix}{field}__icontains", words) for field in fields), _connector=Q.OR)


def _targets(words: str) -> Iterable[Hit]:
    for target in (
        Target.objects.filter(_named(words)).select_related("host").order_by("host__slug", "slug")[: MAX_FOUND + 1]
    ):
        serial = f"serial {target.serial}" if target.serial else ""
        gone = "" if target.in_policy else "no longer in the policy"
        size = formatting.bytes_decimal(target.size_bytes) if target.size_bytes else ""
        if size and target.kind == TargetKind.DIRECTORY:
            size += " free"
        detail = joined(target.model, serial, size, target.path, gone)
        yield Hit(str(target), reverse("host_target", args=[target.host.slug, target.slug]), detail)


def _plans(words: str) -> Iterable[Hit]:
    plans = Plan.objects.filter(Q(title__icontains=words) | Q(slug__icontains=words), deleted_at=None)
    for plan in plans.order_by("title")[: MAX_FOUND + 1]:
        yield Hit(plan.title, reverse("plan", args=[plan.slug]), plan.slug)


def _runs(words: str) -> Iterable[Hit]:
    """By number, note, plan, and by the names of their targets and hosts."""
    at = Target.objects.filter(_named(words) | Q(host__slug__icontains=words)).values("pk")
    measured = Exists(Run.targets.through.objects.filter(run=OuterRef("pk"), target__in=at))
    noted = Exists(Note.objects.filter(run=OuterRef("pk"), text__icontains=words))
    wanted = Q(note__icontains=words) | noted | measured | Q(version__plan__title__icontains=words)
    if number := _NUMBER.match(words):
        wanted |= Q(number=int(number.group(1)))
    targets = Prefetch("targets", Target.objects.select_related("host"))
    runs = Run.objects.filter(wanted).select_related("version__plan").prefetch_related(targets).order_by("-number")
    for run in runs[: MAX_FOUND + 1]:
        on = "on " + ", ".join(map(str, run.targets.all()[:3]))
        note = run.note.partition("\n")[0][:120]
        detail = joined(run.version.plan.title, on, run.get_state_display(), note)
        yield Hit(f"Run {run.number}", reverse("run", args=[run.number]), detail)


def _comparisons(words: str) -> Iterable[Hit]:
    wanted = Q(title__icontains=words) | Q(note__icontains=words)
    for saved in SavedComparison.objects.filter(wanted, deleted_at=None)[: MAX_FOUND + 1]:
        yield Hit(saved.title, reverse("saved_comparison", args=[saved.pk]), plain(saved.note).partition("\n")[0][:120])


MAX_QUERY_LENGTH = 200
HITS_PER_GROUP = 5
EXACT, ACTION = "Exact match", "Action"


@page
def search_page(request: HttpRequest) -> HttpResponse:
    words = _words(request)
    groups = find(words) if words else ()
    count = sum(len(group.hits) for group in groups)
    context = {"words": words, "groups": groups, "count": count, "most": MAX_FOUND}
    return render(request, "screens/search.html", context)


@page
def search_hits(request: HttpRequest) -> HttpResponse:
    """Exact matches, actions, then the first hits of each group, as JSON."""
    words = _words(request)
    groups = find(words) if words else ()
    hits = [
        SearchHit(group=group.title, title=hit.title, address=hit.address, detail=hit.detail)
        for group in groups
        for hit in group.hits[:HITS_PER_GROUP]
    ]
    exact = [structs.replace(hit, group=EXACT) for hit in hits if _is_named(hit.title, words)]
    others = [hit for hit in hits if not _is_named(hit.title, words)]
    done = [
        SearchHit(group=ACTION, title=each.title, address=each.address, detail=each.detail)
        for each in (actions(words, person(request)) if words else ())
    ]
    shown = SearchHits(hits=(*exact, *done, *others))
    return HttpResponse(msgspec.json.encode(shown), content_type="application/json")


def _is_named(title: str, words: str) -> bool:
    """Its whole name, the name of a target without its host, or the number of a run."""
    number = _NUMBER.match(words)
    names = {title.lower(), title.lower().rpartition("/")[2]}
    return words.lower() in names or bool(number and title == f"Run {int(number[1])}")


def _words(request: HttpRequest) -> str:
    return request.GET.get("q", "").strip()[:MAX_QUERY_LENGTH]


# What the command palette does: compare two products, open a run, create and add.

# Two names with a word or a comma between them, or two words.
_COMPARE = re.compile(
    r"^(?:compare|bench)\s+(?:(?P<one>.+?)(?:\s+(?:and|with|to|vs)\s+|\s*,\s*)(?P<other>\S.*)|(?P<first>\S+)\s+(?P<last>\S+))$",
    re.IGNORECASE,
)
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
    Action("New notice", "notices", "Notices"),
    Action("New API token", "new_token", "Account"),
    Action("API reference", "api-reference", "Documentation"),
)


def actions(words: str, user: User) -> Iterator[Hit]:
    """Those that the words ask for, the most particular first. At most five queries."""
    if (match := _NUMBER.match(words)) and Run.objects.filter(number=int(match[1])).exists():
        yield Hit(f"Open run {match[1]}", reverse("run", args=[int(match[1])]), "Run")
    if match := _COMPARE.match(words):
        products = [product for name in match.groups() if name and (product := product_named(name.strip()))]
        if len(set(products)) == 2:
            yield Hit(f"Compare {products[0].value} and {products[1].value}", bench_address(products), "Bench")
    if match := _START.match(words):
        for plan in Plan.objects.filter(title__icontains=match[1], deleted_at=None).order_by("title")[:3]:
            yield Hit(f"Start {plan.title}", reverse("plan", args=[plan.slug]), "Plan")
    if host := Host.objects.filter(slug__iexact=words, archived_at=None).first():
        yield from _of_host(host)
    roles = {"viewer": True, "operator": user.is_operator, "administrator": user.is_administrator}
    for action in ACTIONS:
        if roles[action.role] and all(word in action.title.lower() for word in words.lower().split()):
            yield Hit(action.title, reverse(action.page), action.detail)


def _of_host(host: Host) -> Iterator[Hit]:
    """Its first two targets beside each other."""
    targets = [Product(Kind.TARGET, f"{host.slug}/{slug}") for slug in _targets_named(host)]
    if len(targets) == 2:
        yield Hit(f"Compare {targets[0].value} and {targets[1].value}", bench_address(targets), "Bench")


def _targets_named(host: Host) -> list[str]:
    return list(host.targets.filter(in_policy=True).order_by("slug").values_list("slug", flat=True)[:2])


def product_named(name: str) -> Product | None:
    """A run by its number, else a target or a drive model with exactly this name, else the first that contains it, also
    in imports."""
    if (match := _NUMBER.match(name)) and Run.objects.filter(number=int(match[1])).exists():
        return Product(Kind.RUN, str(int(match[1])))
    host, _, slug = name.rpartition("/")
    of_host = Q(host__slug__iexact=host) if host else Q()
    known = Target.objects.filter(in_policy=True, host__archived_at=None).select_related("host")
    known = known.order_by("host__slug", "slug")
    target = known.filter(of_host, slug__iexact=slug).first()
    if target:
        return Product(Kind.TARGET, str(target))
    measured = known.values_list("model", flat=True)
    imported = Origin.objects.order_by("drive").values_list("drive", flat=True)
    models = (
        names.filter(**{f"{column}__{lookup}": name}).first()
        for lookup in ("iexact", "icontains")
        for names, column in ((measured, "model"), (imported, "drive"))
    )
    model = next(filter(None, models), "")
    return Product(Kind.MODEL, model) if model else None
