"""The address of the page holds its whole state."""

from collections.abc import Iterable
from urllib.parse import urlencode

from django.http import QueryDict
from django.urls import NoReverseMatch, reverse

from webapp.analysis.dimensions import MATCHED
from webapp.analysis.equals import DEPTH
from webapp.analysis.question import CompareQuery
from webapp.bench.answer import BenchAnswer
from webapp.bench.forest import varying_factors
from webapp.bench.products import BenchRefused, Kind, Product, read_products
from webapp.bench.side_by_side import Selection, SideBySide, read_selection
from webapp.bench.workloads import CHOICES, MAIN, RATE
from webapp.results.metrics import entered_metric

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


def read_address(data: QueryDict) -> Selection | None:
    """None without products. Raises BenchRefused."""
    return read_selection(
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


def without_key(data: QueryDict, key: str) -> str:
    changed = data.copy()
    changed.pop(key, None)
    return f"?{changed.urlencode()}"


def with_value(data: QueryDict, **changes: str | list[str]) -> str:
    changed = data.copy()
    for key, value in changes.items():
        changed.setlist(key, value if isinstance(value, list) else [value])
    return f"?{changed.urlencode()}"


# The same question in Explore.

_SERIES = {
    Kind.MODEL: "model", Kind.SERIAL: "serial", Kind.HOST: "host", Kind.CONTROLLER: "controller", Kind.TARGET: "target",
    Kind.LAYOUT: "layout", Kind.RUN: "run", Kind.IMPORT: "import",
}  # fmt: skip
_DIMENSIONS = {"import": "imported"}  # of filters with another name


def explore_address(comparison: SideBySide, answer: BenchAnswer) -> str:
    """The products as series, with the same baseline and over the same workloads, so that both pages correct their
    claims alike. "" for products that Explore cannot tell apart."""
    kinds = {product.kind for product in comparison.products}
    if len(kinds) > 1 or not kinds <= _SERIES.keys() or any(product.part for product in comparison.products):
        return ""
    key = _SERIES[kinds.pop()]
    factors = varying_factors([*comparison.matched.workloads.values()])
    x = factors[0] if len(factors) == 1 and factors[0] in MAIN else MATCHED if factors else DEPTH
    pairs = [(key, product.value) for product in comparison.products]
    pairs += [("x", x), ("series", _DIMENSIONS.get(key, key)), ("panel", "pattern")]
    pairs += [("metric", _metric(comparison, answer)), ("baseline", comparison.matched.baseline.value)]
    return f"{reverse('explore')}?{urlencode(pairs)}"


def other_values(comparison: SideBySide) -> tuple[str, str]:
    """The name of a value that Bench does not compare, such as one entered by hand, and the address where Explore
    compares it. Empty texts unless all products have it and none has rates or latencies."""
    kinds = {product.kind for product in comparison.products}
    if (
        comparison.workloads
        or len(kinds) > 1
        or not kinds <= _SERIES.keys()
        or any(product.part for product in comparison.products)
    ):
        return "", ""
    key = _SERIES[kinds.pop()]
    of_products = [{name for row in rows for name in row.metrics} for rows in comparison.read.rows.values()]
    shared = sorted(set.intersection(*of_products) if of_products else ())
    found = next((metric for name in shared if (metric := entered_metric(name))), None)
    if found is None:
        return "", ""
    pairs = [(key, product.value) for product in comparison.products]
    pairs += [("metric", found.key), ("x", "imported"), ("series", _DIMENSIONS.get(key, key))]
    pairs += [("baseline", comparison.matched.baseline.value)]
    return found.label, f"{reverse('explore')}?{urlencode(pairs)}"


def bench_of_series(query: CompareQuery, keys: Iterable[str]) -> str:
    """Explore's series as products of Bench; "" if they are no products, or more or fewer than Bench shows. `keys`: of
    the series."""
    kinds = {_DIMENSIONS.get(key, key): kind for kind, key in _SERIES.items() if kind is not Kind.LAYOUT}
    if len(query.series) != 1 or query.series[0] not in kinds:
        return ""
    kind = kinds[query.series[0]]
    try:
        products = read_products(f"{kind.value}:{key}" for key in keys)
    except BenchRefused:  # such as results of imports among those of runs
        return ""
    if len(products) < 2:
        return ""
    pairs = [("product", str(product)) for product in products]
    pairs += [("baseline", f"{kind.value}:{query.baseline}")] if query.baseline else []
    pairs += [("metric", query.metric)] if query.metric in CHOICES else []
    return f"{reverse('bench')}?{urlencode(pairs)}"


def _metric(comparison: SideBySide, answer: BenchAnswer) -> str:
    if comparison.selection.choice != RATE:
        return comparison.selection.choice
    return answer.forest[0].metric if answer.forest else "iops"
