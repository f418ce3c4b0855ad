"""Opens the plan editor with a draft of the workloads that a product lacks."""

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse

from webapp.bench.missing import plan_for, target_for, why_no_plan, why_not_alone
from webapp.bench.products import BenchRefused, Product
from webapp.bench.side_by_side import SideBySide, side_by_side
from webapp.bench.workloads import Workload, chart_words
from webapp.screens.access import own_action
from webapp.screens.bench.address import read_address
from webapp.screens.plans.draft import draft_of
from webapp.screens.plans.form_data import data_of
from webapp.screens.plans.forms import usable_targets
from webapp.screens.plans.kept import keep

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
