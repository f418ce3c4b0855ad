"""The page Bench: two to eight products side by side. Its address contains everything."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect, render

from webapp.bench.import_labels import factor_words
from webapp.bench.offered import Offer, OfferGroup, Pair, offered, pairs
from webapp.bench.panels import CHOICES
from webapp.bench.products import MAX_PRODUCTS, BenchRefused, Product
from webapp.bench.selected import products_of_results
from webapp.bench.side_by_side import Group, SideBySide, side_by_side
from webapp.compare.observed import moments_of
from webapp.hosts.inventory.bounds import Bound, bounds_of
from webapp.screens.access import page
from webapp.screens.bench.address import bench_address, read_address, with_value
from webapp.screens.bench.charts import curve_chart, curve_table, ladder_chart, ladder_table
from webapp.screens.bench.columns import Column, columns_of
from webapp.screens.bench.payloads import BenchCharts
from webapp.screens.bench.rows import ShownRow, shown_row
from webapp.screens.ceilings import drawn, in_words
from webapp.screens.choices import Option, options_of

ROWS_SHOWN = 12  # of each group, unless all are asked for


@dataclass(frozen=True)
class ShownGroup:
    name: str
    rows: tuple[ShownRow, ...]
    more: int  # rows that are not shown


@page
def bench_page(request: HttpRequest) -> HttpResponse:
    if request.GET.getlist("result"):
        return redirect(bench_address(products_of_results(request.GET.getlist("result"))))
    try:
        asked = read_address(request.GET)
    except BenchRefused as refusal:
        context = {"refusal": refusal.message, "picker": _picker(request.GET, ())}
        return render(request, "screens/bench.html", context, status=400)
    if asked is None:
        return render(request, "screens/bench.html", {"picker": _picker(request.GET, ()), "pairs": _pairs()})
    found = side_by_side(replace(asked, most_rows=None if request.GET.get("all") else ROWS_SHOWN))
    return render(request, "screens/bench.html", _context(request.GET, found))


def _context(data: QueryDict, found: SideBySide) -> dict[str, object]:
    names = found.matched.names
    ceilings = _ceilings(data, found)
    lines = drawn(ceilings.bounds)
    charts = [curve_chart(curve, names, found.colours, lines) for curve in found.curves]
    charts += [ladder_chart(found.ladder, names, found.colours)] if found.ladder else []
    colours, columns = list(found.colours.values()), columns_of(data, found)
    return {
        "found": found,
        "header": [one for one in found.header if not one.repeats(names.values())],
        "columns": columns,
        "picker": _picker(data, found.products),
        "headlines": [
            shown_row(row, found.matched.texts[row.workload.key], colours, columns) for row in found.headlines
        ],
        "shared": _shared(found),
        "warnings": list(_warnings(found)),
        "groups": [_group(group, colours, columns) for group in found.groups if group.rows],
        "alone": sum(group.alone for group in found.groups),
        "ceilings": ceilings,
        "curves": [curve_table(curve, names) for curve in found.curves],
        "ladder": ladder_table(found.ladder) if found.ladder else None,
        "ladders": _ladders(found),
        "slow": [names[product] for product in found.ladder.slow] if found.ladder else [],
        "charts": BenchCharts(charts=tuple(charts)),
        "metrics": [(text, with_value(data, metric=key), key == found.asked.choice) for key, text in CHOICES.items()],
        "metric": CHOICES[found.asked.choice],
        "absent": "no value" if found.read.cut else "not measured",
        "kept": [(key, text) for key in data for text in data.getlist(key) if key != "at"],
        "query": data.urlencode(),
        "all": with_value(data, all="1"),
        "notes": list(_notes(found)),
        "ignore": _ignore(data, found),
        "ignorable": [one.label for one in found.apart if one.ignorable],
        "ignored": [(factor_words(name), _without_ignored(data, name)) for name in sorted(found.asked.ignored)],
    }


@dataclass(frozen=True)
class Ceilings:
    """The limits of the targets that the products were measured at, for curves of bandwidth."""

    offered: bool
    shown: bool
    other: str  # the query of the page with the other choice
    bounds: tuple[Bound, ...]

    @property
    def in_words(self) -> list[str]:
        return in_words(self.bounds)


def _ceilings(data: QueryDict, found: SideBySide) -> Ceilings:
    offered = any(curve.panel.metric.key == "bytes_per_s" for curve in found.curves)
    shown = offered and data.get("ceilings") == "on"
    rows = [row for rows in found.read.rows.values() for row in rows] if shown else []
    other = with_value(data, ceilings="" if shown else "on")
    return Ceilings(offered, shown, other, bounds_of(moments_of(rows)) if shown else ())


def _group(group: Group, colours: Sequence[int], columns: Sequence[Column]) -> ShownGroup:
    rows = tuple(shown_row(row, row.title, colours, columns) for row in group.rows)
    return ShownGroup(group.panel.name, rows, group.shared - len(rows))


def _shared(found: SideBySide) -> str:
    """`8 of 98 workloads measured by all 3 products, 60 by at least two`"""
    products, of = len(found.products), f"of {found.workloads:,} workload{'' if found.workloads == 1 else 's'}"
    if products < 2:
        return "Only one product: choose another one to compare it with."
    if products == 2:
        return f"{found.shared:,} {of} shared"
    return f"{found.by_all:,} {of} measured by all {products} products, {found.shared:,} by at least two"


def _warnings(found: SideBySide) -> Iterator[str]:
    """Beside the headline numbers."""
    names = found.matched.names
    if found.confounded:
        yield found.confounded
    if found.latency_kinds:
        yield found.latency_kinds
    if found.without_common:
        without = ", ".join(names[product] for product in found.without_common)
        yield f"No ratio to the baseline {names[found.asked.baseline]}: it shares no workload with {without}."


def _ladders(found: SideBySide) -> tuple[Option, ...]:
    return options_of(found.ladders.items(), found.ladder.key if found.ladder else "")


def _notes(found: SideBySide) -> Iterator[str]:
    names = found.matched.names
    for product in found.empty:
        yield f"{names[product]} has no valid results."
    for product in found.read.cut:
        yield (
            f"{names[product]} has more than {found.read.limit:,} results. The page reads the newest run of each plan, "
            "then older runs, up to this number. Choose single runs to compare others."
        )
    for product in found.references:
        yield f"{names[product]} is a published table: a ratio to it is not evidence of a difference."
    if found.single:
        yield (
            f"{found.single} of {len(found.matched.measured)} values were measured once. They have no interval, and a "
            "ratio to them is not evidence of a difference."
        )
    cells = [cell for group in found.groups for row in group.rows for cell in row.cells if cell]
    pooled = sum(bool(cell.pooled) for cell in cells)
    if pooled:
        yield f"{pooled} values on this page are means over several targets, kernels or settings; their cells say so."
    if any(cell.assumed for cell in cells):
        yield (
            "Some imports state no queue depth or number of jobs. Their values are shown with the one workload that "
            "fits, or with queue depth 1 and one job. The cells name this workload."
        )
    if found.matched.comparisons:
        yield (
            f"Conclusions and colours are corrected for {found.matched.comparisons} comparisons (Holm's method: at "
            "most 5 % for any false claim on the page). Intervals are not corrected."
        )


def _ignore(data: QueryDict, found: SideBySide) -> str:
    """The query that matches workloads despite the factors that keep them apart; "" if that is not possible."""
    names = [one.factor for one in found.apart if one.ignorable]
    if not names or (len(found.products) == 2 and len(names) < len(found.apart)):
        return ""
    return with_value(data, ignore=[*sorted(found.asked.ignored), *names])


def _without_ignored(data: QueryDict, name: str) -> str:
    return with_value(data, ignore=[text for text in data.getlist("ignore") if text != name])


@dataclass(frozen=True)
class Picker:
    chosen: tuple[Offer, ...]
    groups: tuple[OfferGroup, ...]
    kept: tuple[tuple[str, str], ...]  # other keys of the address
    most: int = MAX_PRODUCTS


def _picker(data: QueryDict, chosen: tuple[Product, ...]) -> Picker:
    """The chosen products first, in their order."""
    groups = offered()
    known = {offer.product: offer for group in groups for offer in group.offers}
    rest = [OfferGroup(g.label, tuple(o for o in g.offers if o.product not in chosen)) for g in groups]
    return Picker(
        tuple(known.get(product) or Offer(product, product.value) for product in chosen),
        tuple(group for group in rest if group.offers),
        tuple((key, text) for key in data for text in data.getlist(key) if key in ("baseline", "metric", "ignore")),
    )


def _pairs() -> list[tuple[str, Pair]]:
    return [(bench_address([offer.product for offer in pair.offers]), pair) for pair in pairs()]
