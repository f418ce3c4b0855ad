"""How much of a long history counts for what a drive, host, controller or layout is now.

Comparisons of such products, on all pages and in verdicts, read the newest `PER_CELL` results of a cell, or all if it
has fewer. A cell is a target at a controller, at a test point in a direction. A comparison of named runs, imports or
configurations reads all of their results, and so does one along runs or facts, such as kernels: it is about history.
"""

from collections import Counter
from collections.abc import Collection, Sequence

from webapp.plans.factors import FACTORS
from webapp.results.reading.rows import ResultRow

PER_CELL = 15
_PRODUCTS = frozenset({"model", "serial", "host", "controller", "target", "layout"})
_CHOSEN = frozenset({"run", "imported", "configuration"})  # to see all of their results
_AXES = frozenset({"", "matched", "direction"})


def is_of_products(series: Collection[str], axes: Collection[str], named: Collection[str]) -> bool:
    """Whether a comparison reads the newest results only. `series` and `axes` are its dimensions, `named` those of
    which its filters name levels."""
    others = set(axes) - _AXES - _PRODUCTS - FACTORS.keys()
    return bool(series) and _PRODUCTS.issuperset(series) and not others and _CHOSEN.isdisjoint(named)


def newest_of(rows: Sequence[ResultRow]) -> tuple[ResultRow, ...]:
    """Imports have no cells: all of their results."""
    counts: Counter[tuple[str, ...]] = Counter()
    newest: set[int] = set()
    for row in sorted(rows, key=lambda row: row.id, reverse=True):
        cell = (row.target_name, row.controller, row.point_key, row.direction)
        counts[cell] += 1
        if row.imported or counts[cell] <= PER_CELL:
            newest.add(row.id)
    return tuple(row for row in rows if row.id in newest)


def newest_words() -> str:
    return f"Values are of the newest {PER_CELL} results of each target at each controller and test point."
