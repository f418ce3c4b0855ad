"""What the search finds in imports: their titles and sources, and the drives, controllers and hosts of their labels."""

from collections.abc import Iterable
from urllib.parse import urlencode

from django.db.models import F, Q
from django.urls import reverse

from webapp.bench.products import Kind, Product
from webapp.results.models import Import, Origin
from webapp.screens.bench.product_addresses import product_address
from webapp.screens.search.hits import MAX_FOUND, Hit, joined

MAX_LABELS = 200  # different sets of labels, of which some may name the same product
# The label, its kind, and the words for it.
_LABELS = (
    ("drive", Kind.MODEL, "drive model"),
    ("serial", Kind.SERIAL, "drive"),
    ("controller", Kind.CONTROLLER, "controller"),
    ("host", Kind.HOST, "host"),
)


def imports(words: str) -> Iterable[Hit]:
    """The newest first, with the reference library."""
    named = Q(title__icontains=words) | Q(source__icontains=words) | Q(note__icontains=words)
    for one in Import.objects.filter(named).order_by("-number")[: MAX_FOUND + 1]:
        kind = f"import {one.number}" if one.slug is None else "reference"
        yield Hit(one.title, reverse("import", args=[one.number]), joined(kind, one.source[:120]))


def imported_products(words: str) -> Iterable[Hit]:
    """Each drive, controller and host once. The link is to its own page, or to the page of the reference if only
    references name it."""
    named = Q(*((f"{label}__icontains", words) for label, _, _ in _LABELS), _connector=Q.OR)
    columns = ("imported__slug", "imported__number", "imported__title", *(label for label, _, _ in _LABELS))
    found: dict[tuple[str, Kind], Hit] = {}
    own_first = Origin.objects.filter(named).order_by(F("imported__slug").desc(nulls_first=True), "-imported__number")
    for slug, number, title, *labels in own_first.values_list(*columns).distinct()[:MAX_LABELS]:
        for text, (_, kind, what) in zip(labels, _LABELS, strict=True):
            if words.lower() in text.lower() and (text, kind) not in found:
                address = "" if slug else _address(Product(kind, text))
                found[text, kind] = Hit(text, address or reverse("import", args=[number]), joined(what, title))
    return [found[key] for key in sorted(found)][: MAX_FOUND + 1]


def _address(product: Product) -> str:
    """Imported hosts have no page of their own, only results."""
    if product.kind is Kind.HOST:
        return f"{reverse('results')}?{urlencode({'host': product.value})}"
    return product_address(product)
