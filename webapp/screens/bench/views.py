"""The page Bench: two to eight products side by side. Its address contains everything."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypedDict
from urllib.parse import parse_qsl

import msgspec
from django.contrib import messages
from django.http import HttpRequest, HttpResponse, QueryDict
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.safestring import SafeString

from webapp.analysis.models import Price
from webapp.analysis.services import KINDS, remove_price, set_price
from webapp.bench.answer import bench_table
from webapp.bench.assembly import answer, bench_answer
from webapp.bench.missing import plan_for, target_for, why_no_plan, why_not_alone
from webapp.bench.nearest import OwnLevels
from webapp.bench.per_price import PerPrice
from webapp.bench.picking import products_of_results
from webapp.bench.products import LABELS, BenchRefused, Kind, Product
from webapp.bench.reading import scopes_of_products
from webapp.bench.saved import query_of
from webapp.bench.side_by_side import Advice, Asked, Finding, SideBySide, side_by_side
from webapp.bench.specifications import Specification
from webapp.bench.workloads import CHOICES, Workload, chart_words, factor_words
from webapp.core.answers import Question, answered
from webapp.core.errors import Refusal
from webapp.core.table_files.response import file_response
from webapp.screens.access import operator_action, own_action, page, person
from webapp.screens.bench.address import (
    bench_address,
    explore_address,
    product_address,
    read_address,
    with_value,
    without_key,
)
from webapp.screens.bench.charts import BenchCharts, ChartTable, curve_chart, curve_table, ladder_chart, ladder_table
from webapp.screens.bench.picker import COMPARE, comparable_pairs, picker
from webapp.screens.bench.report import Ceilings, ceilings_of, notes, shared_words, warnings
from webapp.screens.bench.rows import Column, columns_of, in_place_of_values, lacking_of
from webapp.screens.bench.sections import Sections, sections
from webapp.screens.ceilings import drawn
from webapp.screens.choices import Option, options_of
from webapp.screens.explore.saved import opened
from webapp.screens.plans.draft import data_of, draft_of, keep
from webapp.screens.plans.forms import usable_targets
from webapp.screens.undo import with_undo

# Sets or removes the price of a drive model or controller, from its page.


@operator_action
def price_action(request: HttpRequest) -> HttpResponse:
    """`remove` in the form removes the price. The message can bring back the price before."""
    kind, name, amount, currency, day = (
        str(request.POST.get(key, "")) for key in ("kind", "name", "amount", "currency", "priced_on")
    )
    before = Price.objects.filter(kind=kind, name=name).first()
    try:
        if "remove" in request.POST:
            remove_price(kind=kind, name=name, by=person(request))
            words = f"The price of {name} is removed."
        else:
            set_price(kind=kind, name=name, amount=amount, currency=currency, priced_on=day, by=person(request))
            words = f"The price of {name} is saved."
        messages.success(request, _with_undo(request, words, before) if before else words)
    except Refusal as refusal:
        messages.error(request, str(refusal))
    return redirect((product_address(Product(Kind(kind), name)) if kind in KINDS else "") or "bench")


def _with_undo(request: HttpRequest, words: str, before: Price) -> SafeString:
    given = {
        "kind": before.kind, "name": before.name, "amount": str(before.amount), "currency": before.currency,
        "priced_on": str(before.priced_on),
    }  # fmt: skip
    return with_undo(request, words, reverse("set_price"), given=given.items())


# Opens the plan editor with a draft of the workloads that a product lacks.

MAX_TITLE = 200


@own_action
def plan_missing(request: HttpRequest) -> HttpResponse:
    """The query is that of the page Bench. The form names either a product (`lacking`), or a workload and a product
    (`cell`): the plan then has only this workload."""
    try:
        return _planned(request)
    except BenchRefused as refusal:
        messages.error(request, refusal.message)
        return redirect("bench")


def _planned(request: HttpRequest) -> HttpResponse:
    asked = read_address(request.GET)
    key, _, named = request.POST.get("cell", "").partition(" ")
    known = asked.products if asked else ()
    product = next((one for one in known if str(one) == (named or request.POST.get("lacking"))), None)
    if asked is None or product is None:
        raise BenchRefused("bench_no_plan", "Choose a product. The plan gets the workloads that this product lacks.")
    found = side_by_side(asked)
    usable, rows, name = list(usable_targets()), found.read.rows[product], found.matched.names[product]
    if why := why_no_plan(product, rows, usable):
        raise BenchRefused("bench_no_plan", f"No plan was created. {why}")
    lacking = _lacking(found, product, key)
    words = f"{chart_words(lacking[0].chart)} {found.matched.texts[key]}" if key else "Missing"
    title = f"{words} on {name}"
    data = data_of(draft_of(plan_for(lacking, title[:MAX_TITLE])))
    target = target_for(product, rows, usable)
    data.setlist("target", [str(target.pk)] if target else [])
    count = f"{len(lacking)} workload{'s' if len(lacking) > 1 else ''}"
    keep(request, reverse("new_plan"), data, f"The plan has {count} that {name} lacks. It is not saved yet.")
    return redirect("new_plan")


def _lacking(found: SideBySide, product: Product, key: str) -> list[Workload]:
    """The workload of the key; without a key, all workloads that the product lacks. Without those that no new plan can
    measure. Raises BenchRefused."""
    if key and key not in found.matched.workloads:
        raise BenchRefused("bench_no_plan", "The page has changed and lacks this workload. Choose a workload again.")
    lacking = [one for one in found.missing[product] if key in ("", one.key)]
    if not lacking:
        words = "this workload" if key else "all workloads of the other products"
        raise BenchRefused("bench_no_plan", f"{product.value} has results for {words}.")
    alone = [one for one in lacking if not why_not_alone(one)]
    if not alone:
        raise BenchRefused("bench_no_plan", f"No plan was created. {why_not_alone(lacking[0])}")
    return alone


# The rows of Bench as a file, in stored units.

NAME = "sweetspot-bench"


@page
def bench_file(request: HttpRequest, ending: str) -> HttpResponseBase:
    """JSON has the shape of `GET /api/v1/bench`."""
    try:
        asked = read_address(request.GET)
    except BenchRefused as refusal:
        return HttpResponse(refusal.message, status=422, content_type="text/plain")
    if asked is None:
        return HttpResponse("Choose products first.", status=404, content_type="text/plain")
    found = bench_answer(asked)
    if ending != "json":
        return file_response(bench_table(found), NAME, ending)
    name = {"Content-Disposition": f'attachment; filename="{NAME}.json"'}
    return HttpResponse(msgspec.json.encode(found), content_type="application/json", headers=name)


MIN_COMPARED = 2


@page
def bench_page(request: HttpRequest) -> HttpResponse:
    if request.GET.getlist("result"):
        return _of_results(request, request.GET.getlist("result"))
    try:
        asked = read_address(request.GET)
    except BenchRefused as refusal:
        context = {"refusal": refusal.message, "picker": picker(request.GET, ())}
        return render(request, "screens/bench.html", context, status=422)
    chosen = asked.products if asked else ()
    is_sent = COMPARE in request.GET
    if asked is None or (is_sent and len(chosen) < MIN_COMPARED):
        return render(request, "screens/bench.html", _choosing(request.GET, chosen, is_sent=is_sent))
    if "selected" in request.GET:
        return redirect(bench_address(_oldest_run_first(chosen)))
    if is_sent:
        return redirect(reverse("bench") + without_key(request.GET, COMPARE))
    kept = opened(request.GET.get("saved", ""), parse_qsl(request.GET.urlencode()), person(request))
    context = {**_answered(request.GET, asked), "picker": picker(request.GET, chosen), "kept": kept}
    return render(request, "screens/bench.html", context)


def _choosing(data: QueryDict, chosen: Sequence[Product], *, is_sent: bool) -> dict[str, object]:
    """`is_sent`: the form was sent with too few products."""
    cards = picker(data, chosen, with_shares=True)
    shares = [card.share for group in cards.groups for card in group.cards]
    return {
        "picker": cards,
        "pairs": comparable_pairs(),
        "comparable": sum(bool(share and share.count) for share in shares),
        "is_bound": None in shares,
        "is_sent": is_sent,
    }


def _answered(data: QueryDict, asked: Asked) -> "BenchContext":
    texts, scopes = (data.urlencode(),), scopes_of_products(asked.products)
    return answered(Question(texts, scopes, BenchContext, lambda: _context(data, side_by_side(asked))))


def _of_results(request: HttpRequest, ids: Sequence[str]) -> HttpResponse:
    products = products_of_results(ids)
    kinds = ", ".join(dict.fromkeys(f"these {LABELS[one.kind][1].lower()}" for one in products))
    if products:
        messages.info(request, f"Bench shows all results of {kinds}, not only the selected results.")
    return redirect(bench_address(products))


def _oldest_run_first(products: Sequence[Product]) -> list[Product]:
    """The first product is the baseline, and a list of runs begins with the newest."""
    return sorted(products, key=lambda one: one.number if one.kind is Kind.RUN else 0)


@dataclass(frozen=True)
class Found:
    shared: int  # workloads that at least two products have
    apart: tuple[OwnLevels, ...]
    per_price: tuple[PerPrice, ...]
    findings: tuple[Finding, ...]


class BenchContext(TypedDict):
    """What the page shows of results."""

    found: Found
    sections: Sections
    header: list[Specification]
    columns: list[Column]
    shared: str
    caveats: list[str]
    ceilings: Ceilings
    curves: list[ChartTable]
    single_curves: list[ChartTable]
    curves_shown: int
    ladder_chart: int
    ladder: ChartTable | None
    ladders: tuple[Option, ...]
    slow: list[str]
    charts: BenchCharts
    metrics: list[tuple[str, str, bool]]
    metric: str
    explore: str
    other_keys: list[tuple[str, str]]
    query: str
    all: str
    specifications: dict[str, list[Specification]]
    advice: list[tuple[Advice, str]]
    held: list[tuple[str, str, str]]
    ignored: list[tuple[str, str]]


def _found(found: SideBySide) -> Found:
    return Found(found.shared, found.apart, found.per_price, found.findings)


def _context(data: QueryDict, found: SideBySide) -> BenchContext:
    names = found.matched.names
    made = answer(found)
    ceilings = ceilings_of(data, found)
    lines = drawn(ceilings.bounds)
    shown = [curve for curve in found.curves if curve.is_shared or len(found.products) == 1]
    single = [curve for curve in found.curves if curve not in shown]
    charts = [curve_chart(curve, names, found.colours, lines) for curve in (*shown, *single)]
    charts += [ladder_chart(found.ladder, names, found.colours)] if found.ladder else []
    columns = columns_of(data, found)
    absent = in_place_of_values(found)
    return {
        "found": _found(found),
        "sections": sections(made, whole="all" in data, lacking=lacking_of(found, made, columns)),
        "header": [one for one in found.header if not one.repeats(names.values())],
        "columns": columns,
        "shared": shared_words(found),
        "caveats": [*warnings(found), *notes(found)],
        "ceilings": ceilings,
        "curves": [curve_table(curve, names, absent) for curve in shown],
        "single_curves": [curve_table(curve, names, absent) for curve in single],
        "curves_shown": len(shown),
        "ladder_chart": len(shown) + len(single),
        "ladder": ladder_table(found.ladder) if found.ladder else None,
        "ladders": _ladders(found),
        "slow": [names[product] for product in found.ladder.slow] if found.ladder else [],
        "charts": BenchCharts(charts=tuple(charts)),
        "metrics": [(text, with_value(data, metric=key), key == found.asked.choice) for key, text in CHOICES.items()],
        "metric": CHOICES[found.asked.choice],
        "explore": explore_address(found, made),
        "other_keys": [(key, text) for key in data for text in data.getlist(key) if key != "at"],
        "query": data.urlencode(),
        "all": with_value(data, all="1"),
        "specifications": {
            "known": [one for one in found.differing if not one.is_partly_known],
            "partly": [one for one in found.differing if one.is_partly_known],
        },
        "advice": [(one, f"?{query_of(one.nearest)}" if one.nearest else "") for one in found.advice],
        "held": [(factor_words(name), level, _without_held(data, name, level)) for name, level in found.asked.held],
        "ignored": [(factor_words(name), _without_ignored(data, name)) for name in sorted(found.asked.ignored)],
    }


def _ladders(found: SideBySide) -> tuple[Option, ...]:
    return options_of(found.ladders.items(), found.ladder.key if found.ladder else "")


def _without_ignored(data: QueryDict, name: str) -> str:
    return with_value(data, ignore=[text for text in data.getlist("ignore") if text != name])


def _without_held(data: QueryDict, name: str, level: str) -> str:
    return with_value(data, hold=[text for text in data.getlist("hold") if text != f"{name}:{level}"])
