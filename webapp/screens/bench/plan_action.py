"""Opens the plan editor with a draft of the workloads that a product lacks."""

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse

from webapp.bench.missing import can_be_planned, missing, plan_for
from webapp.bench.products import BenchRefused, Kind, Product
from webapp.bench.side_by_side import side_by_side
from webapp.hosts.models import Target
from webapp.screens.access import own_action
from webapp.screens.bench.address import read_address
from webapp.screens.plans.draft import draft_of
from webapp.screens.plans.form_data import data_of
from webapp.screens.plans.forms import usable_targets
from webapp.screens.plans.kept import keep

MAX_TITLE = 200


@own_action
def plan_missing(request: HttpRequest) -> HttpResponse:
    """The query is that of the page Bench; `lacking` names the product."""
    try:
        return _planned(request)
    except BenchRefused as refusal:
        messages.error(request, refusal.message)
        return redirect("bench")


def _planned(request: HttpRequest) -> HttpResponse:
    asked = read_address(request.GET)
    known = asked.products if asked else ()
    product = next((one for one in known if str(one) == request.POST.get("lacking")), None)
    if asked is None or product is None:
        raise BenchRefused("bench_no_plan", "Choose a product on the page. The plan gets the workloads that it lacks.")
    found = side_by_side(asked)
    if not can_be_planned(product, found.read.rows[product]):
        raise BenchRefused("bench_no_plan", f"{found.matched.names[product]} has no target, so nothing can be planned.")
    lacking = missing(found.matched, product)
    if not lacking:
        raise BenchRefused("bench_no_plan", f"{product.value} has results for all workloads of the other products.")
    data = data_of(draft_of(plan_for(lacking, f"Missing on {found.matched.names[product]}"[:MAX_TITLE])))
    data.setlist("target", [str(target.pk) for target in usable_targets() if _is_of(product, target)][:1])
    count = f"{len(lacking)} workload{'s' if len(lacking) > 1 else ''}"
    said = f"The plan has {count} that {found.matched.names[product]} lacks. It is not saved yet."
    keep(request, reverse("new_plan"), data, said)
    return redirect("new_plan")


def _is_of(product: Product, target: Target) -> bool:
    values = {
        Kind.MODEL: target.model, Kind.SERIAL: target.serial, Kind.HOST: target.host.slug, Kind.TARGET: str(target),
    }  # fmt: skip
    return values.get(product.kind) == product.value
