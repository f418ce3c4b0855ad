"""Which products can be compared: those that have results, and those of results that a person selected."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import combinations

from django.contrib.postgres.expressions import ArraySubquery
from django.db.models import Exists, OuterRef, Subquery

from webapp.analysis.equals import BLOCK, DEPTH, JOBS, PATTERN
from webapp.bench.products import LABELS, MAX_PRODUCTS, Kind, Product, is_named, part_names
from webapp.hosts.models import Target
from webapp.results.models import Configuration, Import, Origin, Result, StreamRun
from webapp.results.reading.rows import MODEL_FACT, ResultRow, read_rows
from webapp.runs.models import Run

# The products of results that a person selected in a table.

# From the coarsest to the finest: the first kind in which all selected results differ is compared.
_KINDS: Mapping[Kind, Callable[[ResultRow], str]] = {
    Kind.MODEL: lambda row: row.model,
    Kind.SERIAL: lambda row: row.serial,
    Kind.CONTROLLER: lambda row: row.controller,
    Kind.HOST: lambda row: row.host,
    Kind.TARGET: lambda row: row.target_name,
    Kind.LAYOUT: lambda row: row.layout,
    Kind.RUN: lambda row: f"-{_part(row)}" if row.imported else str(row.run),
    Kind.CONFIGURATION: lambda row: row.configuration[:10],
}


def products_of_results(ids: Iterable[str]) -> tuple[Product, ...]:
    """Results of two models become models, those of two runs of one drive become runs. Each drive of a published table
    is a product of its own, because a table is read only if it is chosen itself. Four queries."""
    numbers = [int(id_) for id_ in ids if id_.isascii() and id_.isdecimal() and len(id_) < 19]
    rows = read_rows(Result.objects.filter(pk__in=numbers[: 10 * MAX_PRODUCTS]).order_by("id"))
    measured = [row for row in rows if not row.reference]
    return (*_products(measured), *_published([row for row in rows if row.reference]))[:MAX_PRODUCTS]


def _published(rows: Sequence[ResultRow]) -> list[Product]:
    by_import: dict[int, set[tuple[str, str]]] = {}
    for row in rows:
        by_import.setdefault(row.imported, set()).add((row.model or row.target, row.layout))
    parts = ((number, part) for number, labels in by_import.items() for part in part_names(labels))
    return [Product(Kind.IMPORT, f"{number}/{part}") for number, part in parts]


def _products(rows: Sequence[ResultRow]) -> list[Product]:
    candidates = [(kind, list(dict.fromkeys(of(row) for row in rows))) for kind, of in _KINDS.items()]
    usable = [(kind, values) for kind, values in candidates if values and "" not in values]
    if not usable:
        return []
    all_apart = next((candidate for candidate in usable if len(candidate[1]) == len(rows)), None)
    kind, values = all_apart or max(usable, key=lambda candidate: len(candidate[1]))
    return [_product(kind, value) for value in values]


def _part(row: ResultRow) -> str:
    """One drive of an import, as a product's value."""
    return f"{row.imported}/{row.target}"


def _product(kind: Kind, value: str) -> Product:
    """An import has no run; its number has a minus sign."""
    if kind is Kind.RUN and value.startswith("-"):
        return Product(Kind.IMPORT, value[1:])
    return Product(kind, value)


MAX_RUNS, MAX_CONFIGURATIONS, MAX_IMPORTS = 100, 50, 100
PAIRS, MAX_PAIRED, MAX_OFFERS = 6, 2_000, 40
_NEWEST = {Kind.RUN: MAX_RUNS, Kind.CONFIGURATION: MAX_CONFIGURATIONS, Kind.IMPORT: MAX_IMPORTS}
_DIGEST_SHOWN = 10
NO_HOSTS: Mapping["Offer", set[str]] = {}


class Source(StrEnum):
    """Where the results of a product are from."""

    OWN = "own"
    IMPORT = "import"
    REFERENCE = "reference"


class Facet(StrEnum):
    """By what products are filtered."""

    KIND = "kind"
    SOURCE = "source"
    MODEL = "model"
    CONTROLLER = "controller"
    HOST = "host"
    LAYOUT = "layout"


Levels = frozenset[tuple[Facet, str]]  # of several models, for example, each one
_OWN: Levels = frozenset({(Facet.SOURCE, Source.OWN.value)})


def _levels(source: Source = Source.OWN, **texts: str) -> Levels:
    """Without empty texts."""
    known = ((Facet(name), text) for name, text in texts.items() if text)
    return frozenset({(Facet.SOURCE, source.value), *known})


@dataclass(frozen=True)
class Offer:
    product: Product
    text: str
    note: str = ""
    levels: Levels = _OWN


@dataclass(frozen=True)
class OfferGroup:
    label: str
    offers: tuple[Offer, ...]


@dataclass(frozen=True)
class Pair:
    """Two products, and how much they have in common."""

    offers: tuple[Offer, Offer]
    common: int
    words: str  # plan | workload


def offered() -> tuple[OfferGroup, ...]:
    """All products with results; the newest of runs, configurations and imports. Six queries."""
    offers: dict[Product, Offer] = {}
    for offer in (*_of_targets(), *_of_imports(), *_layouts(), *_configurations(), *_runs()):
        first = offers.get(offer.product, offer)
        offers[offer.product] = replace(
            first, levels=first.levels | offer.levels | {(Facet.KIND, offer.product.kind.value)}
        )
    groups: dict[tuple[Kind, str], list[Offer]] = {}
    for offer in offers.values():
        kind = offer.product.kind
        label = LABELS[kind][1] if kind is not Kind.IMPORT else "References" if _is_reference(offer) else "Imports"
        groups.setdefault((kind, label), []).append(offer)
    order = sorted(groups, key=lambda group: ([*Kind].index(group[0]), group[1]))
    return tuple(OfferGroup(_label(*group, groups[group]), tuple(_sorted(group[0], groups[group]))) for group in order)


def _is_reference(offer: Offer) -> bool:
    return (Facet.SOURCE, Source.REFERENCE.value) in offer.levels


def _label(kind: Kind, label: str, offers: Iterable[Offer]) -> str:
    """It says if there may be older ones."""
    most, whole = _NEWEST.get(kind), sum(not offer.product.part for offer in offers)
    return f"{label}, the newest {most}" if most and whole >= most else label


def _sorted(kind: Kind, offers: list[Offer]) -> list[Offer]:
    """Runs and configurations are newest first already."""
    if kind in (Kind.RUN, Kind.CONFIGURATION):
        return offers
    return sorted(offers, key=lambda offer: offer.text.lower())


def _of_targets() -> Iterator[Offer]:
    """The controller is that of the newest result: a drive may have been moved."""
    results = Result.objects.filter(target=OuterRef("pk"), invalid=False).order_by("-measured_at", "-id")
    controllers = results.values("stream_run__configuration__controller")
    measured = Target.objects.filter(Exists(results)).annotate(controller=Subquery(controllers[:1]))
    for target in measured.select_related("host").order_by("model", "host__slug", "slug"):
        host, name, controller = target.host.slug, f"{target.host.slug}/{target.slug}", target.controller or ""
        levels = _levels(model=target.model, host=host, controller=controller)
        if controller:
            yield Offer(Product(Kind.CONTROLLER, controller), controller, levels=levels)
        if target.model:
            yield Offer(Product(Kind.MODEL, target.model), target.model, levels=levels)
        if target.serial:
            text = f"{target.model} {target.serial}".strip()
            place = ", ".join(filter(None, (host, controller)))
            yield Offer(Product(Kind.SERIAL, target.serial), text, f"in {place}", levels)
        yield Offer(Product(Kind.HOST, host), host, levels=levels)
        yield Offer(Product(Kind.TARGET, name), name, target.model, levels)


def _of_imports() -> Iterator[Offer]:
    """The labels of own imports, each import, and the products of an import that has several."""
    newest = Import.objects.filter(results_made__gt=0).order_by("-number")[:MAX_IMPORTS]
    imports = {imported.pk: imported for imported in newest}
    columns = ("imported", "host", "controller", "drive", "serial", "layout")
    drives: dict[int, dict[tuple[str, str], Levels]] = defaultdict(dict)  # by drive and layout
    labels = Origin.objects.filter(imported__in=imports).order_by().values_list(*columns).distinct()
    for key, host, controller, drive, serial, layout in labels:
        source = Source.REFERENCE if imports[key].slug else Source.IMPORT
        levels = _levels(source, model=drive, controller=controller, host=host, layout=layout)
        drives[key][drive, layout] = drives[key].get((drive, layout), levels) | levels
        if source is Source.IMPORT:
            yield from _of_labels(host, controller, drive, serial, layout, levels)
    for key, imported in imports.items():
        yield from _of_import(imported, drives[key])


def _of_import(imported: Import, drives: Mapping[tuple[str, str], Levels]) -> Iterator[Offer]:
    source = Source.REFERENCE if imported.slug else Source.IMPORT
    every = _levels(source).union(*drives.values())
    yield Offer(Product(Kind.IMPORT, str(imported.number)), imported.title, levels=every)
    names = part_names(drives)
    for name in names if len(names) > 1 or ("", "") in drives else ():
        levels = _levels(source).union(*(levels for labels, levels in drives.items() if is_named(name, *labels)))
        product = Product(Kind.IMPORT, f"{imported.number}/{name}")
        yield Offer(product, f"{imported.title}: {name}", levels=levels)


def products_of_import(imported: Import) -> list[Product]:
    """Its drives or layouts, as many as Bench shows, or the import itself if it has only one."""
    labels = Origin.objects.filter(imported=imported).order_by().values_list("drive", "layout").distinct()
    parts = part_names(labels)
    if len(parts) < 2:
        return [Product(Kind.IMPORT, str(imported.number))]
    return [Product(Kind.IMPORT, f"{imported.number}/{part}") for part in parts[:MAX_PRODUCTS]]


def _of_labels(host: str, controller: str, drive: str, serial: str, layout: str, levels: Levels) -> Iterator[Offer]:
    named = (
        (Kind.HOST, host, host), (Kind.CONTROLLER, controller, controller), (Kind.MODEL, drive, drive),
        (Kind.SERIAL, serial, f"{drive} {serial}".strip()), (Kind.LAYOUT, layout, layout),
    )  # fmt: skip
    for kind, value, text in named:
        if value:
            yield Offer(Product(kind, value), text, "imported", levels)


def _layouts() -> Iterator[Offer]:
    lines = Result.objects.filter(target__kind="pool", invalid=False).order_by()
    for line, model, host in lines.values_list("point__layout", "target__model", "host__slug").distinct():
        if line:
            yield Offer(Product(Kind.LAYOUT, line), line, levels=_levels(model=model, host=host, layout=line))


def _runs() -> Iterator[Offer]:
    measured = Exists(Result.objects.filter(run=OuterRef("pk"), invalid=False))
    of_run = Target.objects.filter(runs=OuterRef("pk")).order_by()
    newest = (
        Run.objects.filter(measured)
        .order_by("-number")
        .annotate(models=ArraySubquery(of_run.values("model")), hosts=ArraySubquery(of_run.values("host__slug")))
    )
    columns = ("number", "version__plan__title", "models", "hosts")
    for number, title, models, hosts in newest.values_list(*columns)[:MAX_RUNS]:
        levels = _OWN.union(*(_levels(model=model, host=host) for model, host in zip(models, hosts, strict=True)))
        yield Offer(Product(Kind.RUN, str(number)), f"Run {number}", title, levels)


def _configurations() -> Iterator[Offer]:
    """Configurations and their controllers."""
    # Not Exists: PostgreSQL may make a join of it and read the streams of each configuration.
    streams = StreamRun.objects.filter(configuration=OuterRef("pk"), results__isnull=False).order_by()
    measured = Configuration.objects.annotate(stream=Subquery(streams.values("pk")[:1])).filter(stream__isnull=False)
    columns = measured.values_list("digest", "facts", "controller")
    for digest, facts, controller in columns[:MAX_CONFIGURATIONS]:
        short = digest[:_DIGEST_SHOWN]
        models = (_levels(model=text) for name, text in facts.items() if name.endswith(MODEL_FACT))
        levels = _levels(controller=controller).union(*models)
        yield Offer(Product(Kind.CONFIGURATION, short), f"Configuration {short}", _about(facts), levels)
        if controller:
            yield Offer(Product(Kind.CONTROLLER, controller), controller, levels=levels)


def _about(facts: Mapping[str, str]) -> str:
    named = [
        text for name, text in facts.items() if name.endswith((".model", ".scheduler")) and "controller" not in name
    ]
    targets = [text for name, text in facts.items() if name.startswith("stream.") and name.endswith(".target")]
    texts = (*dict.fromkeys((*targets, *named)), facts.get("kernel.release", ""))
    return " · ".join(filter(None, texts))


def pairs() -> tuple[Pair, ...]:
    """Products that ran the same plan versions: drive models, else targets, else runs; and imports that share
    workloads. Two queries."""
    planned = next(filter(None, (_pairs(versions, "plan") for versions in _planned().values())), ())
    imported, hosts = _imported()
    return (*planned, *_pairs(imported, "workload", hosts))


def _planned() -> dict[Kind, dict[Offer, set[object]]]:
    """The plan versions of each product, by its kind; of drives with the host, because they are compared only in one. A
    plan can have different parts for devices and directories."""
    measured = Exists(Result.objects.filter(run=OuterRef("pk"), invalid=False))
    columns = ("number", "version", "targets__model", "targets__host__slug", "targets__slug", "targets__kind")
    versions_by_offer: dict[Kind, dict[Offer, set[object]]] = {Kind.MODEL: {}, Kind.TARGET: {}, Kind.RUN: {}}
    for number, version, model, host, slug, target_kind in (
        Run.objects.filter(measured).order_by("-number").values_list(*columns)[:MAX_PAIRED]
    ):
        target = f"{host}/{slug}"
        named = ((Kind.MODEL, model, model), (Kind.TARGET, target, target), (Kind.RUN, str(number), f"Run {number}"))
        for kind, value, text in named:
            if value:
                place = "" if kind is Kind.RUN else host
                versions_by_offer[kind].setdefault(Offer(Product(kind, value), text), set()).add(
                    (version, target_kind, place)
                )
    return versions_by_offer


def _imported() -> tuple[dict[Offer, set[object]], dict[Offer, set[str]]]:
    """The main factors of the workloads of each reference, and of each drive of own imports, with its hosts; of the
    newest results."""
    columns = (
        "origin__imported__number",
        "origin__imported__title",
        "reference",
        "origin__drive",
        "origin__host",
        "point",
        "direction",
    )
    rows = Result.objects.filter(origin__isnull=False, invalid=False).values_list(*columns)[:MAX_PAIRED]
    workloads: dict[Offer, set[object]] = {}
    hosts: dict[Offer, set[str]] = defaultdict(set)
    for number, title, reference, drive, host, point, direction in rows:
        product = Product(Kind.IMPORT, str(number)) if reference or not drive else Product(Kind.MODEL, drive)
        text = title if product.kind is Kind.IMPORT else drive
        main = tuple(str(point.get(name)) for name in (PATTERN, BLOCK, JOBS, DEPTH))
        offer = Offer(product, text)
        workloads.setdefault(offer, set()).add((*main, direction))
        hosts[offer].add(host)
    return workloads, hosts


def _pairs(
    common: Mapping[Offer, set[object]], words: str, hosts: Mapping[Offer, set[str]] = NO_HOSTS
) -> tuple[Pair, ...]:
    """The pairs with the most in common first. `hosts`: of drives, which are compared only in one."""
    offers: Iterable[Offer] = [*common][:MAX_OFFERS]
    candidates = [
        Pair((first, second), len(common[first] & common[second]), words)
        for first, second in combinations(offers, 2)
        if {first.product.kind, second.product.kind} != {Kind.MODEL} or not hosts or hosts[first] & hosts[second]
    ]
    return tuple(sorted((pair for pair in candidates if pair.common), key=lambda pair: -pair.common)[:PAIRS])
