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
from django.utils import timezone
from django.utils.safestring import SafeString

from webapp.analysis.models import Price
from webapp.analysis.seals import COMMON
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
from webapp.bench.side_by_side import Advice, Finding, Selection, SideBySide, side_by_side
from webapp.bench.specifications import Specification
from webapp.bench.workloads import CHOICES, Workload, chart_words, factor_words
from webapp.celery import app
from webapp.core import changes
from webapp.core.answers import RENEWAL_S, Question, answered_or_earlier
from webapp.core.errors import Refusal
from webapp.core.table_files import file_response
from webapp.screens.access import operator_action, own_action, page, person
from webapp.screens.arming import usable_targets
from webapp.screens.bench.address import (
    bench_address,
    explore_address,
    other_values,
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
    selection = read_address(request.GET)
    key, _, named = request.POST.get("cell", "").partition(" ")
    known = selection.products if selection else ()
    product = next((candidate for candidate in known if str(candidate) == (named or request.POST.get("lacking"))), None)
    if selection is None or product is None:
        raise BenchRefused("bench_no_plan", "Choose a product. The plan gets the workloads that this product lacks.")
    comparison = side_by_side(selection)
    usable, rows, name = list(usable_targets()), comparison.read.rows[product], comparison.matched.names[product]
    if why := why_no_plan(product, rows, usable):
        raise BenchRefused("bench_no_plan", f"No plan was created. {why}")
    lacking = _lacking(comparison, product, key)
    words = f"{chart_words(lacking[0].chart)} {comparison.matched.texts[key]}" if key else "Missing"
    title = f"{words} on {name}"
    data = data_of(draft_of(plan_for(lacking, title[:MAX_TITLE])))
    target = target_for(product, rows, usable)
    data.setlist("target", [str(target.pk)] if target else [])
    count = f"{len(lacking)} workload{'s' if len(lacking) > 1 else ''}"
    keep(request, reverse("new_plan"), data, f"The plan has {count} that {name} lacks. It is not saved yet.")
    return redirect("new_plan")


def _lacking(comparison: SideBySide, product: Product, key: str) -> list[Workload]:
    """The workload of the key; without a key, all workloads that the product lacks. Without those that no new plan can
    measure. Raises BenchRefused."""
    if key and key not in comparison.matched.workloads:
        raise BenchRefused("bench_no_plan", "The page has changed and lacks this workload. Choose a workload again.")
    lacking = [workload for workload in comparison.missing[product] if key in ("", workload.key)]
    if not lacking:
        words = "this workload" if key else "all workloads of the other products"
        raise BenchRefused("bench_no_plan", f"{product.value} has results for {words}.")
    alone = [workload for workload in lacking if not why_not_alone(workload)]
    if not alone:
        raise BenchRefused("bench_no_plan", f"No plan was created. {why_not_alone(lacking[0])}")
    return alone


# The rows of Bench as a file, in stored units.

NAME = "sweetspot-bench"


@page
def bench_file(request: HttpRequest, ending: str) -> HttpResponseBase:
    """JSON has the shape of `GET /api/v1/bench`."""
    try:
        selection = read_address(request.GET)
    except BenchRefused as refusal:
        return HttpResponse(refusal.message, status=422, content_type="text/plain")
    if selection is None:
        return HttpResponse("Choose products first.", status=404, content_type="text/plain")
    answer = bench_answer(selection)
    if ending != "json":
        return file_response(bench_table(answer), NAME, ending)
    name = {"Content-Disposition": f'attachment; filename="{NAME}.json"'}
    return HttpResponse(msgspec.json.encode(answer), content_type="application/json", headers=name)


MIN_COMPARED = 2


@page
def bench_page(request: HttpRequest) -> HttpResponse:
    if request.GET.getlist("result"):
        return _of_results(request, request.GET.getlist("result"))
    try:
        selection = read_address(request.GET)
    except BenchRefused as refusal:
        context = {"refusal": refusal.message, "picker": picker(request.GET, ())}
        return render(request, "screens/bench.html", context, status=422)
    chosen = selection.products if selection else ()
    is_sent = COMPARE in request.GET
    if selection is None or (is_sent and len(chosen) < MIN_COMPARED):
        return render(request, "screens/bench.html", _choosing(request.GET, chosen, is_sent=is_sent))
    if "selected" in request.GET:
        return redirect(bench_address(_oldest_run_first(chosen)))
    if is_sent:
        return redirect(reverse("bench") + without_key(request.GET, COMPARE))
    saved = opened(request.GET.get("saved", ""), parse_qsl(request.GET.urlencode()), person(request))
    shown, as_of = answered_or_earlier(shown_products(request.GET, selection), renew=lambda: _renew(request.GET))
    context = {**shown, "as_of": as_of, "picker": picker(request.GET, chosen), "kept": saved}
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


def shown_products(data: QueryDict, selection: Selection) -> "Question[BenchContext]":
    """What people enter, such as prices, is part of the question: no earlier answer lacks it."""
    scopes = scopes_of_products(selection.products)
    common, seal = changes.seals([[COMMON], scopes])
    texts = data.urlencode(), str(common)
    return Question(texts, scopes, BenchContext, lambda: _context(data, side_by_side(selection)), seal=seal)


def _renew(data: QueryDict) -> None:
    """In the background: Bench takes a second, the longest of all pages."""
    address, zone = data.urlencode(), timezone.get_current_timezone_name()
    app.send_task("webapp.screens.tasks.renew_bench", (address, zone), expires=RENEWAL_S, retry=False)


def _of_results(request: HttpRequest, ids: Sequence[str]) -> HttpResponse:
    products = products_of_results(ids)
    kinds = ", ".join(dict.fromkeys(f"these {LABELS[product.kind][1].lower()}" for product in products))
    if products:
        messages.info(request, f"Bench shows all results of {kinds}, not only the selected results.")
    return redirect(bench_address(products))


def _oldest_run_first(products: Sequence[Product]) -> list[Product]:
    """The first product is the baseline, and a list of runs begins with the newest."""
    return sorted(products, key=lambda product: product.number if product.kind is Kind.RUN else 0)


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
    other_values: tuple[str, str]  # name and address
    other_keys: list[tuple[str, str]]
    query: str
    all: str
    specifications: dict[str, list[Specification]]
    advice: list[tuple[Advice, str]]
    held: list[tuple[str, str, str]]
    ignored: list[tuple[str, str]]


def _context(data: QueryDict, comparison: SideBySide) -> BenchContext:
    names, ladder = comparison.matched.names, comparison.ladder
    made = answer(comparison)
    ceilings = ceilings_of(data, comparison)
    lines = drawn(ceilings.bounds)
    shown = [curve for curve in comparison.curves if curve.is_shared or len(comparison.products) == 1]
    single = [curve for curve in comparison.curves if curve not in shown]
    charts = [curve_chart(curve, names, comparison.colours, lines) for curve in (*shown, *single)]
    charts += [ladder_chart(ladder, names, comparison.colours)] if ladder else []
    columns = columns_of(data, comparison)
    absent = in_place_of_values(comparison)
    return {
        "found": Found(comparison.shared, comparison.apart, comparison.per_price, comparison.findings),
        "sections": sections(made, whole="all" in data, lacking=lacking_of(comparison, made, columns)),
        "header": [specification for specification in comparison.header if not specification.repeats(names.values())],
        "columns": columns,
        "shared": shared_words(comparison),
        "caveats": [*warnings(comparison), *notes(comparison)],
        "ceilings": ceilings,
        "curves": [curve_table(curve, names, absent) for curve in shown],
        "single_curves": [curve_table(curve, names, absent) for curve in single],
        "curves_shown": len(shown),
        "ladder_chart": len(shown) + len(single),
        "ladder": ladder_table(ladder) if ladder else None,
        "ladders": options_of(comparison.ladders.items(), ladder.key if ladder else ""),
        "slow": [names[product] for product in ladder.slow] if ladder else [],
        "charts": BenchCharts(charts=tuple(charts)),
        "metrics": [
            (text, with_value(data, metric=key), key == comparison.selection.choice) for key, text in CHOICES.items()
        ],
        "metric": CHOICES[comparison.selection.choice],
        "explore": explore_address(comparison, made),
        "other_values": other_values(comparison),
        "other_keys": [(key, text) for key in data for text in data.getlist(key) if key != "at"],
        "query": data.urlencode(),
        "all": with_value(data, all="1"),
        "specifications": {
            "known": [specification for specification in comparison.differing if not specification.is_partly_known],
            "partly": [specification for specification in comparison.differing if specification.is_partly_known],
        },
        "advice": [(advice, f"?{query_of(advice.nearest)}" if advice.nearest else "") for advice in comparison.advice],
        "held": [
            (factor_words(name), level, _without_held(data, name, level)) for name, level in comparison.selection.held
        ],
        "ignored": [
            (factor_words(name), _without_ignored(data, name)) for name in sorted(comparison.selection.ignored)
        ],
    }


def _without_ignored(data: QueryDict, name: str) -> str:
    return with_value(data, ignore=[text for text in data.getlist("ignore") if text != name])


def _without_held(data: QueryDict, name: str, level: str) -> str:
    return with_value(data, hold=[text for text in data.getlist("hold") if text != f"{name}:{level}"])
