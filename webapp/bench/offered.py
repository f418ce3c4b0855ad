"""Products that have results: to choose from, and pairs that share workloads."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import combinations

from django.db.models import Exists, OuterRef

from webapp.bench.products import LABELS, Kind, Product
from webapp.hosts.models import Target
from webapp.results.models import Configuration, Result, StreamRun
from webapp.runs.models import Run

MAX_RUNS, MAX_CONFIGURATIONS = 100, 50
PAIRS, MAX_PAIRED, MAX_OFFERS = 6, 500, 40
_DIGEST_SHOWN = 10


@dataclass(frozen=True)
class Offer:
    product: Product
    text: str
    note: str = ""

    @property
    def words(self) -> str:
        """What a search looks at."""
        return f"{self.product.label} {self.text} {self.note}".lower()


@dataclass(frozen=True)
class OfferGroup:
    label: str
    offers: tuple[Offer, ...]


@dataclass(frozen=True)
class Pair:
    """Two products that share plans."""

    offers: tuple[Offer, Offer]
    plans: int


def offered() -> tuple[OfferGroup, ...]:
    """All targets with results and what they belong to, newest runs, newest configurations. Four queries."""
    found: dict[Kind, list[Offer]] = defaultdict(list)
    for offer in (*_of_targets(_targets()), *_layouts(), *_runs(), *_configurations()):
        found[offer.product.kind].append(offer)
    return tuple(OfferGroup(LABELS[kind][1], tuple(found[kind])) for kind in Kind if found[kind])


def _targets() -> list[Target]:
    measured = Exists(Result.objects.filter(target=OuterRef("pk"), invalid=False))
    return list(Target.objects.filter(measured).select_related("host").order_by("model", "host__slug", "slug"))


def _of_targets(targets: Iterable[Target]) -> list[Offer]:
    found: dict[Product, Offer] = {}
    for target in targets:
        for offer in _offers(target):
            found.setdefault(offer.product, offer)
    return list(found.values())


def _offers(target: Target) -> Iterable[Offer]:
    host = target.host.slug
    if target.model:
        yield Offer(Product(Kind.MODEL, target.model), target.model)
    if target.serial:
        yield Offer(Product(Kind.SERIAL, target.serial), f"{target.model} {target.serial}".strip(), f"in {host}")
    yield Offer(Product(Kind.HOST, host), host)
    yield Offer(Product(Kind.TARGET, f"{host}/{target.slug}"), f"{host}/{target.slug}", target.model)


def _layouts() -> list[Offer]:
    lines = Result.objects.filter(target__kind="pool", invalid=False).order_by()
    found = lines.values_list("point__layout", flat=True).distinct()
    return [Offer(Product(Kind.LAYOUT, line), line) for line in sorted(filter(None, found))]


def _runs() -> list[Offer]:
    measured = Exists(Result.objects.filter(run=OuterRef("pk"), invalid=False))
    newest = Run.objects.filter(measured).order_by("-number")[:MAX_RUNS]
    return [
        Offer(Product(Kind.RUN, str(number)), f"Run {number}", title)
        for number, title in newest.values_list("number", "version__plan__title")
    ]


def _configurations() -> list[Offer]:
    newest = StreamRun.objects.filter(configuration=OuterRef("pk"), results__isnull=False)
    found = Configuration.objects.filter(Exists(newest))[:MAX_CONFIGURATIONS]
    return [
        Offer(
            Product(Kind.CONFIGURATION, digest[:_DIGEST_SHOWN]),
            f"Configuration {digest[:_DIGEST_SHOWN]}",
            _about(facts),
        )
        for digest, facts in found.values_list("digest", "facts")
    ]


def _about(facts: Mapping[str, str]) -> str:
    named = [
        text for name, text in facts.items() if name.endswith((".model", ".scheduler")) and ".controller" not in name
    ]
    return " · ".join([*dict.fromkeys(named), facts.get("kernel.release", "")]).strip(" ·")


def pairs() -> tuple[Pair, ...]:
    """Products that ran the same plan versions: drive models, else targets, else the newest runs. One query."""
    measured = Exists(Result.objects.filter(run=OuterRef("pk"), invalid=False))
    columns = ("number", "version", "targets__model", "targets__host__slug", "targets__slug")
    rows = list(Run.objects.filter(measured).order_by("-number").values_list(*columns)[:MAX_PAIRED])
    by_kind: dict[Kind, dict[Offer, set[int]]] = {Kind.MODEL: {}, Kind.TARGET: {}, Kind.RUN: {}}
    for number, version, model, host, slug in rows:
        target = f"{host}/{slug}"
        for kind, value, text in (
            (Kind.MODEL, model, model), (Kind.TARGET, target, target), (Kind.RUN, str(number), f"Run {number}"),
        ):  # fmt: skip
            if value:
                by_kind[kind].setdefault(Offer(Product(kind, value), text), set()).add(version)
    return next(filter(None, map(_pairs, by_kind.values())), ())


def _pairs(versions: Mapping[Offer, set[int]]) -> tuple[Pair, ...]:
    """With the most common plans first."""
    found = [
        Pair((one, other), len(versions[one] & versions[other]))
        for one, other in combinations([*versions][:MAX_OFFERS], 2)
    ]
    shared = [pair for pair in found if pair.plans]
    return tuple(sorted(shared, key=lambda pair: -pair.plans)[:PAIRS])
