"""Every series against the baseline: over all points of a chart, and at each point, with what may be claimed.

A point's variance is never taken smaller than the mean of its chart: with few repeats, one of many points is quiet by
luck. Likewise the mean over points is at least as uncertain as the differences between points inside blocks.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean, median

from webapp.analysis.answer import Level
from webapp.analysis.cells import CellKey, Grouped, Measured
from webapp.analysis.claims import (
    MIN_BLOCKS,
    NOTHING,
    Claim,
    Contrast,
    ContrastTest,
    Pair,
    claims,
    contrast,
    pooled_freedom,
    same_order,
    within_variance,
)
from webapp.core.statistics import Ratio

# A point is set apart from the mean if its ratio is 0, if it has too few repeats, or if its ratio is twice or half the
# median (our convention), as long as such points are few: a geometric mean over 13 equal points and one of ×0.01
# describes none of them.
_FAR = math.log(2)
_FEW = 1 / 4
SeriesKey = tuple[str, str]  # keys of panel and series


@dataclass(frozen=True)
class PointResult:
    """One point. A value of 0, different workloads or different kinds of latency have no result."""

    ratio: Ratio
    claim: Claim
    n: int


@dataclass(frozen=True)
class SeriesResult:
    """All points of a chart that both series have."""

    ratio: Ratio | None  # geometric mean over `points`; None without points
    claim: Claim
    n: int  # blocks at the point that has the fewest
    points: tuple[CellKey, ...]  # in the mean
    apart: tuple[CellKey, ...]  # not in the mean
    order: str  # contrasts.same_order


@dataclass(frozen=True)
class Extremes:
    """The lowest and the highest mean of a chart with one series."""

    low: CellKey
    high: CellKey
    ratio: float
    claim: Claim
    n: int
    points: int
    order: str  # contrasts.same_order


@dataclass(frozen=True)
class Conclusions:
    points: Mapping[CellKey, PointResult]
    series: Mapping[SeriesKey, SeriesResult]
    extremes: Mapping[str, Extremes]  # panel key -> of its only series; empty if the page has several series
    sentences: int  # number of comparisons that were corrected together
    tested_points: int


class _Chart:
    """The comparisons of one chart."""

    def __init__(self, panel: str, grouped: Grouped, cells: Mapping[CellKey, Measured], baseline: str) -> None:
        self.pairs: dict[CellKey, Pair] = {}
        for series in grouped.series:
            keys = [(panel, series.key, x.key) for x in grouped.x]
            both = [(key, (panel, baseline, key[2])) for key in keys if series.key != baseline and key in cells]
            self.pairs |= {key: (cells[key], cells[other]) for key, other in both if other in cells}
        self.contrasts = {key: contrast([pair]) for key, pair in self.pairs.items() if _comparable(pair)}
        self.keys: dict[str, list[CellKey]] = {}
        for key in self.pairs:
            self.keys.setdefault(key[1], []).append(key)
        self.apart = {series: self._apart(keys) for series, keys in self.keys.items()}
        self.means = {series: self._mean(series) for series in self.keys}
        self._pool()

    def _apart(self, keys: Sequence[CellKey]) -> tuple[CellKey, ...]:
        """Zeros, points with too few repeats among others, and points far from the others if they are few."""
        known = {key: self.contrasts[key] for key in keys if key in self.contrasts}
        enough = [key for key, one in known.items() if one.n >= MIN_BLOCKS] or list(known)
        middle = median(known[key].value for key in enough) if enough else 0.0
        far = [key for key in enough if abs(known[key].value - middle) > _FAR]
        left = [key for key in enough if key not in far] if len(far) <= _FEW * len(enough) else enough
        return tuple(key for key in keys if key not in left)

    def inside(self, series: str) -> list[CellKey]:
        return [key for key in self.keys[series] if key not in self.apart[series]]

    def _mean(self, series: str) -> Contrast | None:
        inside = self.inside(series)
        if len(inside) == 1:
            return self.contrasts[inside[0]]
        return contrast([self.pairs[key] for key in inside]) if inside else None

    def _pool(self) -> None:
        """The mean variance of a block over all points, and its degrees of freedom."""
        self._variance, self._freedom = 0.0, 1.0
        repeated = {series: mean for series, mean in self.means.items() if mean and mean.n > 1}
        if repeated:
            inside = {series: self._inside_contrasts(series) for series in repeated}
            self._variance = fmean(one.variance * one.n for points in inside.values() for one in points)
            self._freedom = min(pooled_freedom(inside[series], mean) for series, mean in repeated.items())

    def _inside_contrasts(self, series: str) -> list[Contrast]:
        return [self.contrasts[key] for key in self.inside(series)]

    def point_test(self, key: CellKey) -> ContrastTest:
        shown = self.contrasts[key]
        return ContrastTest(shown, shown.at_least(self._variance / shown.n, self._freedom))

    def series_test(self, series: str, mean: Contrast) -> ContrastTest:
        inside = self.inside(series)
        if len(inside) == 1:
            return self.point_test(inside[0])
        floor = within_variance(self._inside_contrasts(series), mean) / len(inside)
        return ContrastTest(mean, replace(mean, variance=max(mean.variance, floor)))


def _comparable(pair: Pair) -> bool:
    """Of the same workloads and kinds, from different results, without a 0, which has no logarithm."""
    mine, theirs = pair
    alike = mine.same_kind(theirs) and mine.same_points(theirs) and mine.independent(theirs)
    return alike and all(one.balanced and one.positive for one in pair)


def conclusions(
    grouped: Grouped, cells: Mapping[CellKey, Measured], baselines: Mapping[str, Level], margin: float
) -> Conclusions:
    """`baselines`: panel key -> the series with which the others of its chart are compared."""
    charts = {panel.key: _Chart(panel.key, grouped, cells, baselines[panel.key].key) for panel in grouped.panels}
    series = {(panel, key): chart for panel, chart in charts.items() for key in chart.keys}
    means = {key: mean for key, chart in series.items() if (mean := chart.means[key[1]]) is not None}
    ranges = _ranges(grouped, cells) if len(grouped.series) == 1 else {}
    tests = [series[key].series_test(key[1], mean) for key, mean in means.items()]
    found = claims([*tests, *(test for *_, test in ranges.values())], margin)
    claimed = dict(zip(means, found, strict=False))
    results = {key: _series_result(chart, key[1], claimed.get(key, NOTHING)) for key, chart in series.items()}
    points, tested = _points(charts, results, margin)
    extremes = {
        panel: Extremes(
            low,
            high,
            test.shown.ratio.value,
            claim,
            test.shown.n,
            count,
            same_order([(cells[high], cells[low])]),
        )
        for (panel, (low, high, count, test)), claim in zip(ranges.items(), found[len(tests) :], strict=True)
    }
    return Conclusions(points, results, extremes, len(found), tested)


def _series_result(chart: _Chart, series: str, claim: Claim) -> SeriesResult:
    inside, mean = chart.inside(series), chart.means[series]
    return SeriesResult(
        ratio=mean.ratio if mean else None,
        claim=claim,
        n=mean.n if mean else 0,
        points=tuple(inside),
        apart=chart.apart[series],
        order=same_order([chart.pairs[key] for key in inside]),
    )


def _points(
    charts: Mapping[str, _Chart], results: Mapping[SeriesKey, SeriesResult], margin: float
) -> tuple[dict[CellKey, PointResult], int]:
    """The only point of a series is its sentence, which was tested before."""
    alone = {one.points[0]: one.claim for one in results.values() if len(one.points) == 1}
    tests = {key: chart.point_test(key) for chart in charts.values() for key in chart.contrasts if key not in alone}
    claimed = alone | dict(zip(tests, claims(list(tests.values()), margin), strict=True))
    found: dict[CellKey, PointResult] = {}
    for chart in charts.values():
        for key, one in chart.contrasts.items():
            found[key] = PointResult(one.ratio, claimed[key], one.n)
    return found, len(tests)


def _ranges(
    grouped: Grouped, cells: Mapping[CellKey, Measured]
) -> dict[str, tuple[CellKey, CellKey, int, ContrastTest]]:
    """Panel key -> lowest and highest cell, number of cells, and the test between both."""
    found = {}
    for panel in grouped.panels:
        keys = [key for key, cell in cells.items() if key[0] == panel.key and cell.positive and cell.balanced]
        if len(keys) > 1 and _alike([cells[key] for key in keys]):
            ordered = sorted(keys, key=lambda key: cells[key].mean)
            low, high = ordered[0], ordered[-1]
            others = [contrast([(cells[key], cells[low])]) for key in ordered[1:]]
            shown = others[-1]
            pooled = fmean(one.variance * one.n for one in others) / shown.n
            test = ContrastTest(shown, shown.at_least(pooled, shown.freedom), len(keys) * (len(keys) - 1) // 2)
            found[panel.key] = (low, high, len(keys), test)
    return found


def _alike(cells: Sequence[Measured]) -> bool:
    """Whether all are one kind of latency and means over the same levels."""
    return len(frozenset().union(*(cell.kinds for cell in cells))) < 2 and all(
        cell.same_points(cells[0]) for cell in cells
    )
