"""Load curves: what each product reaches, and at what latency, from one load to the next.

Without latencies, the rate over block size: IOPS stop at small blocks and bandwidth at large ones.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Literal

from webapp.analysis.answer import Finding, FindingKind
from webapp.analysis.equals import BLOCK, DEPTH, JOBS
from webapp.bench.answer import LoadBand, LoadCurve, LoadPoint, LoadSeries
from webapp.bench.curves import Curve
from webapp.bench.matching import Matched
from webapp.bench.products import Product
from webapp.bench.side_by_side import SideBySide
from webapp.bench.workloads import MAIN, RATE, Panel, factor_words, in_words
from webapp.plans.load import LOAD
from webapp.results.metrics import METRICS

LOADS = (LOAD, DEPTH, JOBS)  # open loops first: a closed loop hides how long clients would wait
MIN_POINTS = 3
_LIMITS = (FindingKind.CEILING, FindingKind.SATURATION)


def load_curves(comparison: SideBySide) -> list[LoadCurve]:
    """One for each pattern; all of the kind of the first one."""
    made = list(_of_patterns(comparison))
    return [curve for curve in made if curve.has_latency == made[0].has_latency]


def _of_patterns(comparison: SideBySide) -> Iterator[LoadCurve]:
    least = min(2, len(comparison.products))
    for panel in comparison.matched.panels_of(RATE):
        panel_curves = [
            curve for curve in comparison.rate_curves if curve.panel == panel and len(curve.points) >= least
        ]
        with_latency = filter(None, (_with_latency(comparison, curve) for curve in _loads(panel_curves)))
        made = next(with_latency, None) or _over_blocks(comparison, panel_curves)
        if made:
            yield made


def _loads(curves: Iterable[Curve]) -> list[Curve]:
    """The shown curve over shares of the load, then that over queue depth, then that over jobs."""
    return sorted(
        (curve for curve in curves if curve.is_shown and curve.factor in LOADS),
        key=lambda curve: LOADS.index(curve.factor),
    )


def _with_latency(comparison: SideBySide, curve: Curve) -> LoadCurve | None:
    matched, rate = comparison.matched, curve.panel.metric
    latency = next((panel for panel in matched.panels_of(matched.percentile) if _same_group(panel, curve.panel)), None)
    if latency is None:
        return None
    series = [
        LoadSeries(product=str(product), points=tuple(_points(matched, curve, latency, product)))
        for product in curve.points
    ]
    if max((len(line.points) for line in series), default=0) < MIN_POINTS:
        return None
    return LoadCurve(
        name=curve.panel.name, words=_words(matched, curve), has_latency=True, x_label=rate.label,
        y_label=latency.metric.label, level_label=curve.label, x_shown_as=rate.shown_as,
        y_shown_as=latency.metric.shown_as,
        series=tuple(line for line in series if line.points), bands=tuple(_bands(comparison, curve, "x")),
    )  # fmt: skip


def _words(matched: Matched, curve: Curve) -> str:
    """`4 KiB · 2 jobs`"""
    return in_words(matched.workloads[curve.keys[0]], [name for name in MAIN if name != curve.factor])


def _same_group(first: Panel, second: Panel) -> bool:
    return (first.chart, first.direction) == (second.chart, second.direction)


def _points(matched: Matched, curve: Curve, latency: Panel, product: Product) -> Iterator[LoadPoint]:
    for level, text, key in zip(curve.levels, curve.texts, curve.keys, strict=True):
        rate, wait = curve.points[product].get(level), matched.cell(latency, product, key)
        if rate and wait and wait.summary.mean > 0:
            yield LoadPoint(
                level=text, x=rate.summary.mean, y=wait.summary.mean, x_text=rate.text, y_text=wait.text,
                n=rate.summary.n,
            )  # fmt: skip


def _over_blocks(comparison: SideBySide, curves: Sequence[Curve]) -> LoadCurve | None:
    """At the highest load that most products have, because limits show there."""
    blocks = [curve for curve in curves if curve.factor == BLOCK]
    if not blocks:
        return None
    most = max(len(curve.points) for curve in blocks)
    curve = [curve for curve in blocks if len(curve.points) == most][-1]
    metric = curve.panel.metric
    series = tuple(
        LoadSeries(
            product=str(product),
            points=tuple(
                LoadPoint(
                    level=text, x=float(number or 0), y=cell.summary.mean, x_text=text, y_text=cell.text,
                    n=cell.summary.n,
                )
                for level, text, number in zip(curve.levels, curve.texts, curve.numbers, strict=True)
                if (cell := cells.get(level)) and cell.summary.mean > 0
            ),
        )
        for product, cells in curve.points.items()
    )  # fmt: skip
    return LoadCurve(
        name=curve.panel.name, words=_words(comparison.matched, curve), has_latency=False,
        x_label=factor_words(BLOCK), y_label=metric.label, level_label=factor_words(BLOCK), x_shown_as=None,
        y_shown_as=metric.shown_as, series=series,
        bands=tuple(_bands(comparison, curve, "y")),
    )  # fmt: skip


def _bands(comparison: SideBySide, curve: Curve, along: Literal["x", "y"]) -> Iterator[LoadBand]:
    for other, finding in comparison.seen:
        if other is curve and finding.kind in _LIMITS and finding.value and finding.marks:
            yield _band(curve, finding, along)


def _band(curve: Curve, finding: Finding, along: Literal["x", "y"]) -> LoadBand:
    """As wide as the values at the limit. Along block sizes, a limit at the large ones is of bandwidth."""
    products = list(curve.points)
    by_place = [list(curve.points[product].items()) for product in products]
    levels = {level: place for place, level in enumerate(curve.levels)}
    is_bandwidth = curve.factor == BLOCK and curve.panel.metric.key == "iops" and finding.marks[0].first > 0
    values = [
        cell.summary.mean * (float(number) if is_bandwidth and isinstance(number := level, int | float) else 1.0)
        for mark in finding.marks
        for level, cell in by_place[mark.series]
        if mark.first <= levels[level] <= mark.last
    ]
    metric = METRICS["bytes_per_s"] if is_bandwidth else curve.panel.metric
    words = "shared limit" if finding.kind is FindingKind.CEILING else "limit"
    return LoadBand(
        along="product" if is_bandwidth else along,
        low=min(values),
        high=max(values),
        text=f"{words} {metric.format(finding.value)}",
    )
