"""Saved comparisons whose query is an address of Bench: it names products, and that of Explore does not."""

from collections.abc import Mapping
from urllib.parse import parse_qsl, urlencode

from webapp.analysis.services import explore_query
from webapp.bench.products import Kind, Product, read_products
from webapp.bench.side_by_side import Selection, read_selection
from webapp.bench.workloads import RATE

KEYS = ("product", "baseline", "metric", "at", "ignore", "hold", "ceilings", "all")


def is_bench(query: str) -> bool:
    return any(key == "product" and text for key, text in parse_qsl(query))


def checked_query(query: str) -> str:
    """As it is stored, of Bench or Explore. Raises Refusal if it compares nothing."""
    if not is_bench(query):
        return explore_query(query)
    selection_of(query)
    return urlencode([pair for pair in parse_qsl(query) if pair[0] in KEYS])


def selection_of(query: str) -> Selection:
    """Raises BenchRefused."""
    pairs = parse_qsl(query)
    given = dict(pairs)
    selection = read_selection(
        [text for key, text in pairs if key == "product"],
        baseline=given.get("baseline", ""),
        metric=given.get("metric", ""),
        workload=given.get("at", ""),
        ignored=[text for key, text in pairs if key == "ignore"],
        held=[text for key, text in pairs if key == "hold"],
    )
    assert selection is not None  # it names products
    return selection


def query_of(selection: Selection) -> str:
    """The address of Bench that asks this."""
    pairs = [("product", str(product)) for product in selection.products]
    pairs += [("baseline", str(selection.baseline))] if selection.baseline else []
    pairs += [("metric", selection.choice)] if selection.choice != RATE else []
    pairs += [("ignore", name) for name in sorted(selection.ignored)]
    pairs += [("hold", f"{factor}:{level}") for factor, level in selection.held]
    return urlencode(pairs)


def products_in_words(query: str, titles: Mapping[int, str]) -> str:
    """`Drive model X, Import 3 “Old tests”: PM9A3`. `titles`: of imports, by number."""
    products = read_products(text for key, text in parse_qsl(query) if key == "product")
    return ", ".join(f"{product.label} {_value(product, titles)}" for product in products)


def _value(product: Product, titles: Mapping[int, str]) -> str:
    title = titles.get(product.number) if product.kind is Kind.IMPORT else None
    part = f": {product.part}" if product.part else ""
    return f"{product.number} “{title}”{part}" if title else product.value
