"""The address of the page holds its whole state."""

from collections.abc import Iterable
from urllib.parse import urlencode

from django.http import QueryDict
from django.urls import reverse

from webapp.bench.products import Product
from webapp.bench.side_by_side import Asked, read_asked


def read_address(data: QueryDict) -> Asked | None:
    """None without products. Raises BenchRefused."""
    return read_asked(
        data.getlist("product"),
        baseline=data.get("baseline", ""),
        metric=data.get("metric", ""),
        workload=data.get("at", ""),
        ignored=data.getlist("ignore"),
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
