"""Sets or removes the price of a drive model or controller, from its page."""

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect

from webapp.bench.products import Kind, Product
from webapp.compare.prices import KINDS, remove_price, set_price
from webapp.core.errors import Refusal
from webapp.screens.access import operator_action, person
from webapp.screens.bench.product_addresses import product_address


@operator_action
def price_action(request: HttpRequest) -> HttpResponse:
    """`remove` in the form removes the price."""
    kind, name, amount, currency, day = (
        str(request.POST.get(key, "")) for key in ("kind", "name", "amount", "currency", "priced_on")
    )
    try:
        if "remove" in request.POST:
            remove_price(kind=kind, name=name, by=person(request))
            messages.success(request, f"The price of {name} is removed.")
        else:
            set_price(kind=kind, name=name, amount=amount, currency=currency, priced_on=day, by=person(request))
            messages.success(request, f"The price of {name} is saved.")
    except Refusal as refusal:
        messages.error(request, str(refusal))
    return redirect((product_address(Product(Kind(kind), name)) if kind in KINDS else "") or "bench")
