"""The address of the page holds its whole state."""

from collections.abc import Iterable
from urllib.parse import urlencode

from django.http import QueryDict
from django.urls import reverse

from webapp.bench.matching import CHOICES, RATE
from webapp.bench.products import BenchRefused, Product, read_products
from webapp.bench.side_by_side import Asked
from webapp.plans.factors import FACTORS

KEYS = ("product", "baseline", "metric", "at", "ignore", "all")


def read_address(data: QueryDict) -> Asked | None:
    """None without products. Raises BenchRefused."""
    products = read_products(data.getlist("product"))
    if not products:
        return None
    metric = data.get("metric") or RATE
    if metric not in CHOICES:
        raise BenchRefused("bench_metric_unknown", f"metric={metric} is unknown. Use {', '.join(CHOICES)}.")
    ignored = frozenset(data.getlist("ignore")) - {""}
    if unknown := sorted(ignored - set(FACTORS)):
        raise BenchRefused("bench_factor_unknown", f"ignore={unknown[0]}: there is no factor with this name.")
    return Asked(products, _baseline(data.get("baseline", ""), products), metric, data.get("at", ""), ignored)


def _baseline(text: str, products: tuple[Product, ...]) -> Product:
    """A product that is no longer chosen is no baseline: then the first one is."""
    return next((product for product in products if str(product) == text), products[0])


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
