"""The page of a drive, model, controller, layout or configuration: results over time, curves, changes and runs."""

from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render

from webapp.analysis.models import Price
from webapp.bench.products import BenchRefused, Kind, Product, read_products
from webapp.hosts.models import Target
from webapp.screens.access import page
from webapp.screens.bench.product_parts import product_parts
from webapp.screens.ceilings import ceiling_form

DRIVES = (Kind.MODEL, Kind.SERIAL)  # values that targets have
PRICED = (Kind.MODEL, Kind.CONTROLLER)
KINDS = (*DRIVES, Kind.CONTROLLER, Kind.LAYOUT, Kind.CONFIGURATION)


@page
def product_page(request: HttpRequest, kind: str, value: str) -> HttpResponse:
    product = _product(kind, value)
    targets = list(_targets(product)) if product.kind in DRIVES else []
    parts = product_parts(product)
    if parts is None and not targets:
        raise Http404(f"There is no {product.label.lower()} {product.value}.")
    priced = product.kind in PRICED
    context: dict[str, object] = {
        "product": product,
        "targets": targets,
        "parts": parts,
        "priced": priced,
        "price": Price.objects.filter(kind=product.kind, name=product.value).first() if priced else None,
    }
    if product.kind == Kind.CONTROLLER:
        context["ceiling_form"] = ceiling_form([(product.kind.value, product.value)], request.path)
    return render(request, "screens/product.html", context)


def _targets(product: Product) -> QuerySet[Target]:
    return Target.objects.filter(**{product.kind.value: product.value}).select_related("host")


def _product(kind: str, value: str) -> Product:
    if kind not in KINDS:
        raise Http404(f"There is no page of this kind. Use {' or '.join(KINDS)}.")
    try:
        (product,) = read_products([f"{kind}:{value}"])
    except BenchRefused as refusal:
        raise Http404(refusal.message) from refusal
    return product
