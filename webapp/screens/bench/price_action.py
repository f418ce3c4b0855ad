"""Sets or removes the price of a drive model or controller, from its page."""

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.safestring import SafeString

from webapp.analysis.models import Price
from webapp.analysis.services import KINDS, remove_price, set_price
from webapp.bench.products import Kind, Product
from webapp.core.errors import Refusal
from webapp.screens.access import operator_action, person
from webapp.screens.bench.product_addresses import product_address
from webapp.screens.undo import with_undo


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
