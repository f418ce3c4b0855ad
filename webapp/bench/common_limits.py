"""Curves that level off at the same rate, although they differ at lower load.

The sentences say what was measured, and no cause: a shared link or controller looks like this, and so do drives with
equal limits. Equality is that of the page, corrected for the number of its comparisons. The interval of the ratio at
lower load has to be outside the margin. So values without repeats never support a sentence.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import takewhile

from webapp.bench.curves import Curve
from webapp.bench.import_labels import level_text
from webapp.bench.products import Product
from webapp.bench.workloads import DEPTH, JOBS
from webapp.compare.comparison import Cell
from webapp.compare.query import MARGIN
from webapp.plans.values import Value

MIN_FLAT = 2  # levels at the upper end of both curves
Pair = tuple[Value, Cell, Cell]  # a level, and the cells of the baseline and of the other product


def common_limits(curve: Curve, baseline: Product, names: Mapping[Product, str]) -> Iterator[str]:
    """A sentence for each product that levels off where the baseline does."""
    if curve.factor not in (DEPTH, JOBS) or baseline not in curve.points:
        return
    for product in curve.points:
        if product != baseline and (found := _flat(curve, curve.points[baseline], curve.points[product])):
            yield _sentence(curve, names[product], names[baseline], *found)


def _flat(curve: Curve, one: Mapping[Value, Cell], other: Mapping[Value, Cell]) -> tuple[list[Pair], Pair] | None:
    """The levels at which both curves are flat and equal, and the lowest one with a ratio beyond the margin."""
    highest = [[level for level in curve.levels if level in cells][-1] for cells in (one, other)]
    if highest[0] != highest[1]:
        return None  # the curve that ends first may rise further
    common = [(level, one[level], other[level]) for level in curve.levels if level in one and level in other]
    flat = list(takewhile(lambda pair: _is_flat(pair, common[-1]) and _equal(pair), reversed(common)))[::-1]
    below = common[: len(common) - len(flat)]
    differing = [pair for pair in below if _differs(pair)]
    if len(flat) < MIN_FLAT or not differing or _is_flat(below[0], flat[-1]):
        return None
    return flat, differing[0]


def _is_flat(pair: Pair, top: Pair) -> bool:
    """Whether both values are within the margin of those at the highest level."""
    means = [(cell.summary.mean, highest.summary.mean) for cell, highest in zip(pair[1:], top[1:], strict=True)]
    return all(highest > 0 and 1 / (1 + MARGIN) <= mean / highest <= 1 + MARGIN for mean, highest in means)


def _equal(pair: Pair) -> bool:
    against = pair[2].against_baseline
    return against is not None and against.equal and not (pair[1].doubts or pair[2].doubts)


def _differs(pair: Pair) -> bool:
    against = pair[2].against_baseline
    if against is None or against.ratio.low is None or against.ratio.high is None:
        return False
    return against.ratio.low > 1 + MARGIN or against.ratio.high < 1 / (1 + MARGIN)


def _sentence(curve: Curve, product: str, baseline: str, flat: Sequence[Pair], differing: Pair) -> str:
    label = curve.label[:1].lower() + curve.label[1:]
    at = " to ".join(level_text(curve.factor, pair[0]) for pair in (flat[0], flat[-1]))
    words = f" ({curve.words})" if curve.words else ""
    against = differing[2].against_baseline
    assert against is not None  # it is outside the margin
    return (
        f"{product} and {baseline} level off at the same rate: they differ by less than {100 * MARGIN:g} % in "
        f"{curve.panel.metric.label} at {label} {at}{words}, where neither rises further. At {label} "
        f"{level_text(curve.factor, differing[0])}, the ratio is {against.text} (95 % CI {against.interval_text})."
    )
