"""What the address of Bench asks for, also in the API."""

from collections.abc import Collection, Sequence

from webapp.bench.import_labels import is_label
from webapp.bench.panels import CHOICES, RATE
from webapp.bench.products import BenchRefused, Product, read_products
from webapp.bench.side_by_side import Asked
from webapp.plans.factors import FACTORS


def read_asked(
    products: Sequence[str], *, baseline: str = "", metric: str = "", workload: str = "", ignored: Collection[str] = ()
) -> Asked | None:
    """None without products. Raises BenchRefused."""
    chosen = read_products(products)
    if not chosen:
        return None
    if metric and metric not in CHOICES:
        raise BenchRefused("bench_metric_unknown", f"metric={metric} is unknown. Use {', '.join(CHOICES)}.")
    factors = frozenset(ignored) - {""}
    if unknown := sorted(name for name in factors - set(FACTORS) if not is_label(name)):
        raise BenchRefused("bench_factor_unknown", f"ignore={unknown[0]}: there is no factor with this name.")
    return Asked(chosen, _baseline(baseline, chosen), metric or RATE, workload, factors)


def _baseline(text: str, products: Sequence[Product]) -> Product:
    """The first product if the baseline is not one of the products."""
    return next((product for product in products if str(product) == text), products[0])
