"""The page Bench: two to eight products side by side. Its address contains everything."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from urllib.parse import parse_qsl

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect, render

from webapp.bench.picking import Offer, OfferGroup, Pair, offered, pairs, products_of_results
from webapp.bench.products import LABELS, MAX_PRODUCTS, BenchRefused, Kind, Product
from webapp.bench.side_by_side import Group, SideBySide, side_by_side
from webapp.bench.workloads import CHOICES, factor_words
from webapp.screens.access import page, person
from webapp.screens.bench.address import bench_address, read_address, with_value
from webapp.screens.bench.ceilings import ceilings_of
from webapp.screens.bench.charts import curve_chart, curve_table, ladder_chart, ladder_table
from webapp.screens.bench.payloads import BenchCharts
from webapp.screens.bench.report import ROWS_SHOWN
from webapp.screens.bench.rows import Column, ShownRow, columns_of, shown_row
from webapp.screens.bench.words import notes, shared_words, warnings
from webapp.screens.ceilings import drawn
from webapp.screens.choices import Option, options_of
from webapp.screens.explore.saved import opened

KEPT = ("baseline", "metric", "ignore", "saved")  # if other products are chosen


@dataclass(frozen=True)
class ShownGroup:
    name: str
    rows: tuple[ShownRow, ...]
    more: int  # rows that are not shown


@page
def bench_page(request: HttpRequest) -> HttpResponse:
    if request.GET.getlist("result"):
        return _of_results(request, request.GET.getlist("result"))
    try:
        asked = read_address(request.GET)
        if asked and "selected" in request.GET:
            return redirect(bench_address(_oldest_run_first(asked.products)))
    except BenchRefused as refusal:
        context = {"refusal": refusal.message, "picker": _picker(request.GET, ())}
        return render(request, "screens/bench.html", context, status=422)
    if asked is None:
        return render(request, "screens/bench.html", {"picker": _picker(request.GET, ()), "pairs": _pairs()})
    found = side_by_side(replace(asked, most_rows=None if request.GET.get("all") else ROWS_SHOWN))
    kept = opened(request.GET.get("saved", ""), parse_qsl(request.GET.urlencode()), person(request))
    return render(request, "screens/bench.html", _context(request.GET, found) | {"kept": kept})


def _of_results(request: HttpRequest, ids: Sequence[str]) -> HttpResponse:
    products = products_of_results(ids)
    kinds = ", ".join(dict.fromkeys(f"these {LABELS[one.kind][1].lower()}" for one in products))
    if products:
        messages.info(request, f"Bench shows all results of {kinds}, not only the selected results.")
    return redirect(bench_address(products))


def _oldest_run_first(products: Sequence[Product]) -> list[Product]:
    """The first product is the baseline, and a list of runs begins with the newest."""
    return sorted(products, key=lambda one: one.number if one.kind is Kind.RUN else 0)


def _context(data: QueryDict, found: SideBySide) -> dict[str, object]:
    names = found.matched.names
    ceilings = ceilings_of(data, found)
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
        "shared": shared_words(found),
        "warnings": list(warnings(found)),
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
        "other_keys": [(key, text) for key in data for text in data.getlist(key) if key != "at"],
        "query": data.urlencode(),
        "all": with_value(data, all="1"),
        "notes": list(notes(found)),
        "specifications": {
            "known": [one for one in found.differing if not one.is_partly_known],
            "partly": [one for one in found.differing if one.is_partly_known],
        },
        "ignore": _ignore(data, found),
        "ignorable": [one.label for one in found.apart if one.ignorable],
        "ignored": [(factor_words(name), _without_ignored(data, name)) for name in sorted(found.asked.ignored)],
    }


def _group(group: Group, colours: Sequence[int], columns: Sequence[Column]) -> ShownGroup:
    rows = tuple(shown_row(row, row.title, colours, columns) for row in group.rows)
    return ShownGroup(group.panel.name, rows, group.shared - len(rows))


def _ladders(found: SideBySide) -> tuple[Option, ...]:
    return options_of(found.ladders.items(), found.ladder.key if found.ladder else "")


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
        tuple((key, text) for key in data for text in data.getlist(key) if key in KEPT),
    )


def _pairs() -> list[tuple[str, Pair]]:
    return [(bench_address([offer.product for offer in pair.offers]), pair) for pair in pairs()]
