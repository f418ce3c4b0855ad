"""The columns of the page Bench."""

from dataclasses import dataclass

from django.http import QueryDict

from webapp.bench.missing import why_no_plan
from webapp.bench.products import Product
from webapp.bench.reading import Read
from webapp.bench.side_by_side import SideBySide
from webapp.screens.bench.address import with_value, without
from webapp.screens.bench.product_addresses import product_address
from webapp.screens.plans.forms import usable_targets


@dataclass(frozen=True)
class Column:
    """One product in the header."""

    product: Product
    kind: str
    name: str
    colour: int
    address: str  # of its own page, "" without one
    is_baseline: bool
    as_baseline: str  # queries of the page
    removed: str
    missing: frozenset[str]  # keys of the workloads that it lacks
    why_no_plan: str  # "" if a plan can measure what the product lacks
    results: int
    is_cut: bool  # it has more results
    absent: str  # in place of a value


def absent_words(read: Read, product: Product) -> str:
    """What is known of a workload without a value: results that were not read may have one."""
    return f"not in the {read.limit:,} results read" if product in read.cut else "not measured"


def columns_of(data: QueryDict, found: SideBySide) -> list[Column]:
    usable = list(usable_targets())
    return [
        Column(
            product=product,
            kind=found.kind_of(product),
            name=found.matched.names[product],
            colour=found.colours[product],
            address=product_address(product),
            is_baseline=product == found.asked.baseline,
            as_baseline=with_value(data, baseline=str(product)),
            removed=without(data, product),
            missing=frozenset(one.key for one in found.missing[product]),
            why_no_plan=why_no_plan(product, found.read.rows[product], usable),
            results=len(found.read.rows[product]),
            is_cut=product in found.read.cut,
            absent=absent_words(found.read, product),
        )
        for product in found.products
    ]
