"""Every series against the baseline: over all points of a chart, and at each point, with what may be claimed.

A point's variance is never taken smaller than the mean of its chart: with few repeats, one of many points is quiet by
luck. Likewise the mean over points is at least as uncertain as the differences between points inside blocks.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import fmean, median

from webapp.analysis.answer import Level
from webapp.analysis.cells import NOT_COMPARED, CellKey, Grouped, Measured
from webapp.analysis.claims import (
    MIN_BLOCKS,
    NOTHING,
    OF_POINTS,
    OF_SENTENCES,
    ONE_LOOK,
    Claim,
    Contrast,
    ContrastTest,
    Looks,
    Pair,
    claims,
    contrast,
    pooled_freedom,
    same_order,
    within_variance,
)
from webapp.analysis.dimensions import JOINER
from webapp.analysis.equals import OTHER_PLACES
from webapp.core.statistics import Ratio

# A point is set apart from the mean if its ratio is 0, if it has too few repeats, or if its ratio is twice or half the
# median (our convention), as long as such points are few: a geometric mean over 13 equal points and one of ×0.01
# describes none of them.
_FAR = math.log(2)
_FEW = 1 / 4
MOST_GROUPS = 8  # levels of a factor on which a difference may depend
SeriesKey = tuple[str, str]  # keys of panel and series


@dataclass(frozen=True)
class PointResult:
    """One point, unless there is a reason for `no_ratio`; or a group of points."""

    test: ContrastTest
    claim: Claim

    @property
    def ratio(self) -> Ratio:
        return self.test.shown.ratio

    @property
    def n(self) -> int:
        """Blocks on the smaller side."""
        return self.test.shown.n


@dataclass(frozen=True)
class PointGroup:
    """The points of a series with one level of one of the factors that are matched, such as `Queue depth 1`."""

    place: int  # of the factor among the parts of a level of x
    text: str
    keys: tuple[CellKey, ...]


@dataclass(frozen=True)
class SeriesResult:
    """All points of a chart that both series have."""

    test: ContrastTest | None  # of the geometric mean over `points`; None without points
    claim: Claim
    points: tuple[CellKey, ...]  # in the mean
    apart: tuple[CellKey, ...]  # not in the mean
    groups: tuple[tuple["PointGroup", PointResult], ...]  # on which the difference may depend
    order: str  # claims.same_order

    @property
    def ratio(self) -> Ratio | None:
        return self.test.shown.ratio if self.test else None

    @property
    def n(self) -> int:
        """Blocks at the point that has the fewest."""
        return self.test.shown.n if self.test else 0


@dataclass(frozen=True)
class Extremes:
    """The lowest and the highest mean of a chart with one series."""

    low: CellKey
    high: CellKey
    ratio: float
    claim: Claim
    n: int
    points: int
    order: str  # claims.same_order


@dataclass(frozen=True)
class Conclusions:
    points: Mapping[CellKey, PointResult]
    series: Mapping[SeriesKey, SeriesResult]
    extremes: Mapping[str, Extremes]  # panel key -> of its only series; empty if the page has several series
    sentences: int  # number of comparisons that were corrected together
    tested_points: int


@dataclass(frozen=True)
class GroupedCells:
    """The cells of one comparison."""

    grouped: Grouped
    cells: Mapping[CellKey, Measured]
    baselines: Mapping[str, Level]  # panel key -> the series with which the others of its chart are compared
    parted: Mapping[str, Level] = field(
        default_factory=dict
    )  # by key of x: `dimensions.matched_level`, if x is another


class _Chart:
    """The comparisons of one chart."""

    def __init__(self, panel: str, comparison: GroupedCells) -> None:
        grouped, cells, baseline = comparison.grouped, comparison.cells, comparison.baselines[panel].key
        self.pairs: dict[CellKey, Pair] = {}
        for series in grouped.series:
            keys = [(panel, series.key, x.key) for x in grouped.x]
            both = [(key, (panel, baseline, key[2])) for key in keys if series.key != baseline and key in cells]
            self.pairs |= {key: (cells[key], cells[other]) for key, other in both if other in cells}
        self.contrasts = {key: contrast([pair]) for key, pair in self.pairs.items() if not no_ratio(*pair)}
        self.keys: dict[str, list[CellKey]] = {}
        for key in self.pairs:
            self.keys.setdefault(key[1], []).append(key)
        self.apart = {series: self._apart(keys) for series, keys in self.keys.items()}
        self.means = {series: self._mean(series) for series in self.keys}
        levels = {x.key: comparison.parted.get(x.key, x) for x in grouped.x}
        self.groups = {series: _groups(self.inside(series), levels) for series in self.keys}
        self._pool()

    def _apart(self, keys: Sequence[CellKey]) -> tuple[CellKey, ...]:
        """Zeros, points with too few repeats among others, and points far from the others if they are few."""
        known = {key: self.contrasts[key] for key in keys if key in self.contrasts}
        enough = [key for key, ratio in known.items() if ratio.n >= MIN_BLOCKS] or list(known)
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
            self._variance = fmean(point.variance * point.n for points in inside.values() for point in points)
            self._freedom = min(pooled_freedom(inside[series], mean) for series, mean in repeated.items())

    def _inside_contrasts(self, series: str) -> list[Contrast]:
        return [self.contrasts[key] for key in self.inside(series)]

    def point_test(self, key: CellKey) -> ContrastTest:
        shown = self.contrasts[key]
        return ContrastTest(shown, shown.at_least(self._variance / shown.n, self._freedom))

    def series_test(self, series: str, mean: Contrast) -> ContrastTest:
        inside = self.inside(series)
        return self.point_test(inside[0]) if len(inside) == 1 else self._mean_test(inside, mean)

    def group_test(self, group: PointGroup) -> ContrastTest:
        return self._mean_test(group.keys, contrast([self.pairs[key] for key in group.keys]))

    def _mean_test(self, keys: Sequence[CellKey], mean: Contrast) -> ContrastTest:
        floor = within_variance([self.contrasts[key] for key in keys], mean) / len(keys)
        return ContrastTest(mean, replace(mean, variance=max(mean.variance, floor)))


def _groups(keys: Sequence[CellKey], levels: Mapping[str, Level]) -> tuple[PointGroup, ...]:
    """The points at each level of each factor in x, if it has a few levels and each of them several points."""
    parts = {
        key: list(zip(level.key.split(JOINER), level.text.split(JOINER), strict=False)) for key, level in levels.items()
    }
    groups: list[PointGroup] = []
    for place in range(min((len(parts[key[2]]) for key in keys), default=0)):
        by_level: dict[tuple[str, str], list[CellKey]] = {}
        for key in keys:
            by_level.setdefault(parts[key[2]][place], []).append(key)
        if 1 < len(by_level) <= MOST_GROUPS and all(len(of_level) > 1 for of_level in by_level.values()):
            groups += [PointGroup(place, text, tuple(of_level)) for (_, text), of_level in by_level.items()]
    return tuple(groups)


OTHER_WORKLOADS = "the values are means over different workloads or targets"
SAME_RESULTS = "both have the same results"
LACKING = "a repeat lacks some of the workloads or targets"
ZERO = "a value is 0"  # it has no logarithm


def no_ratio(mine: Measured, theirs: Measured) -> str:
    """Why two cells have no ratio; "" if they have one."""
    if not mine.same_kind(theirs):
        return NOT_COMPARED
    if not (mine.balanced and theirs.balanced):
        return LACKING
    if not mine.same_points(theirs):
        return OTHER_WORKLOADS
    if not mine.independent(theirs):
        return SAME_RESULTS
    if mine.places != theirs.places:
        return OTHER_PLACES
    return "" if mine.positive and theirs.positive else ZERO


def conclusions(comparison: GroupedCells, margin: float, *, questions: int = 1, looks: Looks = ONE_LOOK) -> Conclusions:
    """`questions`: of the run that this comparison answers one of (`claims.claims`)."""
    page = _Page(comparison)
    of_sentences = claims(page.sentence_tests, margin, OF_SENTENCES, questions=questions, looks=looks)
    of_points = claims(page.point_tests, margin, OF_POINTS, questions=questions, looks=looks)
    return page.concluded(of_sentences, of_points)


class _Page:
    """The tests of one comparison, before the correction."""

    def __init__(self, comparison: GroupedCells) -> None:
        grouped, self._cells = comparison.grouped, comparison.cells
        self._charts = {panel.key: _Chart(panel.key, comparison) for panel in grouped.panels}
        self._series = {(panel, key): chart for panel, chart in self._charts.items() for key in chart.keys}
        self._means = {
            key: chart.series_test(key[1], mean)
            for key, chart in self._series.items()
            if (mean := chart.means[key[1]]) is not None
        }
        self._ranges = _ranges(grouped, self._cells) if len(grouped.series) == 1 else {}
        self.sentence_tests = [*self._means.values(), *(test for *_, test in self._ranges.values())]
        # the only point of a series is its sentence
        inside = {key: chart.inside(key[1]) for key, chart in self._series.items()}
        self._alone = {keys[0]: key for key, keys in inside.items() if len(keys) == 1}
        self._all_points = {key: chart.point_test(key) for chart in self._charts.values() for key in chart.contrasts}
        self._points = {key: test for key, test in self._all_points.items() if key not in self._alone}
        self._groups = [(key, group) for key, chart in self._series.items() for group in chart.groups[key[1]]]
        self.point_tests = [*self._points.values(), *(self._group_test(*each) for each in self._groups)]

    def _group_test(self, key: SeriesKey, group: PointGroup) -> ContrastTest:
        return self._series[key].group_test(group)

    def concluded(self, of_sentences: Sequence[Claim], of_points: Sequence[Claim]) -> Conclusions:
        """The claims are in the order of the tests."""
        means = dict(zip(self._means, of_sentences, strict=False))
        extremes = {
            panel: self._extremes(*of_range, claim)
            for (panel, of_range), claim in zip(self._ranges.items(), of_sentences[len(means) :], strict=True)
        }
        claimed = dict(zip(self._points, of_points, strict=False))
        of_groups = of_points[len(claimed) :]
        claimed |= {key: means[series] for key, series in self._alone.items()}
        groups: dict[SeriesKey, list[tuple[PointGroup, PointResult]]] = {}
        for (key, group), claim in zip(self._groups, of_groups, strict=True):
            groups.setdefault(key, []).append((group, PointResult(self._group_test(key, group), claim)))
        results = {
            key: SeriesResult(
                test=self._means.get(key),
                claim=means.get(key, NOTHING),
                points=tuple(chart.inside(key[1])),
                apart=chart.apart[key[1]],
                groups=tuple(groups.get(key, ())),
                order=same_order([chart.pairs[point] for point in chart.inside(key[1])]),
            )
            for key, chart in self._series.items()
        }
        points = {key: PointResult(test, claimed[key]) for key, test in self._all_points.items()}
        return Conclusions(points, results, extremes, len(of_sentences), len(of_points))

    def _extremes(self, low: CellKey, high: CellKey, count: int, test: ContrastTest, claim: Claim) -> Extremes:
        order = same_order([(self._cells[high], self._cells[low])])
        return Extremes(low, high, test.shown.ratio.value, claim, test.shown.n, count, order)


def _ranges(
    grouped: Grouped, cells: Mapping[CellKey, Measured]
) -> dict[str, tuple[CellKey, CellKey, int, ContrastTest]]:
    """Panel key -> lowest and highest cell, number of cells, and the test between both."""
    ranges = {}
    for panel in grouped.panels:
        keys = [key for key, cell in cells.items() if key[0] == panel.key and cell.positive and cell.balanced]
        if len(keys) > 1 and _alike([cells[key] for key in keys]):
            ordered = sorted(keys, key=lambda key: cells[key].mean)
            low, high = ordered[0], ordered[-1]
            others = [contrast([(cells[key], cells[low])]) for key in ordered[1:]]
            shown = others[-1]
            pooled = fmean(each.variance * each.n for each in others) / shown.n
            test = ContrastTest(shown, shown.at_least(pooled, shown.freedom), len(keys) * (len(keys) - 1) // 2)
            ranges[panel.key] = (low, high, len(keys), test)
    return ranges


def _alike(cells: Sequence[Measured]) -> bool:
    """Whether all are one kind of latency and means over the same levels."""
    return len(frozenset().union(*(cell.kinds for cell in cells))) < 2 and all(
        cell.same_points(cells[0]) for cell in cells
    )
