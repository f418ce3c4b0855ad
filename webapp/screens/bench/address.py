"""The address of the page holds its whole state."""

from collections.abc import Iterable
from urllib.parse import urlencode

from django.http import QueryDict
from django.urls import NoReverseMatch, reverse

from webapp.bench.products import Kind, Product
from webapp.bench.side_by_side import Asked, read_asked

# The pages of products.


def product_address(product: Product) -> str:
    """ "" if the product cannot exist."""
    try:
        if product.kind is Kind.HOST:
            return reverse("host", args=(product.value,))
        if product.kind is Kind.TARGET:
            return reverse("host_target", args=product.value.split("/", 1))
        if product.kind is Kind.RUN:
            return reverse("run", args=(product.number,))
        if product.kind is Kind.IMPORT:
            return reverse("import", args=(product.number,))
        return reverse("product", args=(product.kind.value, product.value))
    except NoReverseMatch:  # a name that nothing can have
        return ""


def read_address(data: QueryDict) -> Asked | None:
    """None without products. Raises BenchRefused."""
    return read_asked(
        data.getlist("product"),
        baseline=data.get("baseline", ""),
        metric=data.get("metric", ""),
        workload=data.get("at", ""),
        ignored=data.getlist("ignore"),
        held=data.getlist("hold"),
    )


def bench_address(products: Iterable[Product]) -> str:
    return f"{reverse('bench')}?{urlencode([('product', str(product)) for product in products])}"


def without(data: QueryDict, product: Product) -> str:
    """The query without one product."""
    changed = data.copy()
    changed.setlist("product", [text for text in data.getlist("product") if text.strip() != str(product)])
    return f"?{changed.urlencode()}"


def with_value(data: QueryDict, **changes: str | list[str]) -> str:
    changed = data.copy()
    for key, value in changes.items():
        changed.setlist(key, value if isinstance(value, list) else [value])
    return f"?{changed.urlencode()}"
