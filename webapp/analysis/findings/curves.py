"""What findings look at: the curves of a comparison along an ordered axis, and how noisy their values are."""

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain, pairwise
from statistics import linear_regression, median

from webapp.analysis.answer import CeilingMatch, Comparison, Difference, Finding, FindingKind, Level, Mark, Sentence
from webapp.analysis.cells import is_clear
from webapp.analysis.claims import MIN_BLOCKS, listed
from webapp.analysis.question import MARGIN
from webapp.analysis.words import PERCENT, RATIO, in_sentence, label_in_sentence, shown
from webapp.core.statistics import Ratio, mean_of, ratio_of
from webapp.hosts.inventory.links import Link, shared
from webapp.results.metrics import METRICS, Metric

BLOCK_SIZE = "block_size"
LOADS = frozenset({BLOCK_SIZE, "numjobs", "iodepth"})  # axes along which rates change without news
_OF_BLOCKS = {"iops": "bytes_per_s", "bytes_per_s": "iops"}  # the other rate of one measurement
# Counts read better after their number: “from 8 jobs on”, but “from queue depth 8 on”.
COUNTED = {
    "numjobs": "jobs", "at_once": "targets at once", "hosts_at_once": "hosts at once", "fact.blades": "blades",
    "fact.clients": "clients", "fact.drives": "drives", "fact.hosts": "hosts", "fact.threads": "threads",
}  # fmt: skip
_NUMBER = re.compile(r"(\d+(?:\.\d+)?)(?: ?[^\d\s+(]{1,12})?(?: \([^)]*\))?", re.ASCII)  # with a unit, and a remark
FEWEST, OFF_LINE = 4, 0.03  # points of a straight line, and their largest distance from it, of the range of values
MIN_FREEDOM = 4  # degrees of freedom from which repeats say how noisy a page is
MIN_RESIDUALS = 8  # residuals from which the smoothness of curves says it
QUARTILE = 0.3186  # of the absolute value of a standard normal variable
ASSUMED = 0.10  # the standard deviation of ln(value) of a noisy drive, where repeats do not say it
NO_NOISE = 0.002  # a smaller standard deviation of ln(value) is not believed
SIGMAS = 4.0  # a difference of so many standard deviations is not chance, whichever of a page's points it is at

SMOOTH_SIGMAS = 4.5  # the same, if the noise is an upper bound from the curves themselves

ENOUGH = 24  # points of a chart; with fewer it is even more careful


@dataclass(frozen=True)
class Noise:
    """The standard deviation of ln(value) of one measurement, and whether repeats say it."""

    sigma: float
    of_repeats: bool
    sigmas: float = SIGMAS

    @property
    def is_known(self) -> bool:
        """From repeats, or from many points."""
        return self.of_repeats or self.sigmas == SMOOTH_SIGMAS

    def least(self, n: int = 1, other: int = 1) -> float:
        """The smallest difference of two ln(mean) over n and `other` values that is beyond chance on this page."""
        return self.sigmas * self.sigma * math.sqrt(1 / n + 1 / other)


@dataclass(frozen=True)
class Curve:
    """The points of one series in one chart, in the order of x. All values are above 0."""

    panel: int  # index
    series: int  # index in the panel
    levels: tuple[int, ...]  # indices of the comparison's levels
    xs: tuple[float, ...]  # their numbers
    values: tuple[float, ...]
    counts: tuple[int, ...]  # repeats

    def __len__(self) -> int:
        return len(self.values)

    @cached_property
    def places(self) -> tuple[float, ...]:
        """On the axis: logarithms if the levels span a factor of 4 or more, so that doublings have one distance."""
        if self.xs and self.xs[0] > 0 and self.xs[-1] >= 4 * self.xs[0]:
            return tuple(map(math.log2, self.xs))
        return self.xs

    @cached_property
    def logs(self) -> tuple[float, ...]:
        return tuple(map(math.log, self.values))

    @cached_property
    def points(self) -> Mapping[int, int]:
        """The index of the point at each level."""
        return {level: index for index, level in enumerate(self.levels)}

    def mark(self, first: int, last: int) -> Mark:
        """The points `first` to `last` of this curve as evidence."""
        return Mark(panel=self.panel, series=self.series, first=self.levels[first], last=self.levels[last])

    def mean(self, first: int, last: int) -> float:
        return mean_of(self.values[first : last + 1])


Stretch = tuple[Curve, int, int]  # the points from the first to the last index


BlockSizes = Mapping[str, frozenset[object]]  # of each pattern's results; empty if unknown
Links = Mapping[str, Sequence[Link]]  # known ceilings of each series, by its key
Equipment = Mapping[str, Mapping[str, str]]  # facts that all results of a series share, by its key
Between = Callable[[frozenset[str]], Sequence[Difference]]  # what else differs between the series with these keys


@dataclass(frozen=True)
class Charts:
    """All curves of a comparison with a metric, and their words."""

    comparison: Comparison
    metric: Metric
    curves: tuple[Curve, ...]
    noises: tuple[Noise | None, ...]  # of each chart; None if neither repeats nor smooth curves say it
    block_sizes: BlockSizes
    links: Links
    equipment: Equipment
    between: Between | None  # None: what differs between all series

    @cached_property
    def once(self) -> bool:
        """Whether every value was measured once, also those that are on no curve."""
        panels = self.comparison.panels
        return all(cell.summary.n == 1 for panel in panels for series in panel.series for cell in series.cells)

    def differ(self, keys: frozenset[str]) -> Sequence[Difference]:
        """What else differs between the series with these keys; of all series if there are none."""
        differs = self.comparison.differs
        return self.between(keys) if self.between and keys and differs else differs

    def noise(self, curve: Curve) -> Noise | None:
        return self.noises[curve.panel]

    def sigma(self, panel: int) -> float:
        """The standard deviation of ln(value) of one measurement that a difference of two values must be beyond: of the
        repeats, else that of a noisy drive."""
        noise = self.noises[panel]
        return noise.sigma if noise and noise.of_repeats else ASSUMED

    def least(self, curve: Curve, first: int, second: int, of: Curve | None = None) -> float:
        """The smallest believed difference of ln(value) between two points, the second one of the curve `of`, of the
        same chart, if given; 0 if the noise is unknown."""
        noise = self.noise(curve)
        return noise.least(curve.counts[first], (of or curve).counts[second]) if noise else 0.0

    def step(self, curve: Curve, first: int, second: int, compared: int) -> Ratio | None:
        """The value at the second point by that at the first. With repeats at both, it has an interval, and is None if
        its interval, corrected for so many compared steps (Bonferroni), does not exclude 1 by more than the margin;
        also None if only one of them has repeats."""
        cells = {cell.level: cell for cell in self.comparison.panels[curve.panel].series[curve.series].cells}
        values = [cells[curve.levels[place]].summary.values for place in (second, first)]
        total = curve.logs[second] - curve.logs[first]
        if max(map(len, values)) == 1:
            return Ratio(math.exp(total), None, None)
        if min(map(len, values)) == 1 or min(map(min, values)) <= 0:
            return None
        ratio = ratio_of(*values)
        wide = ratio_of(*values, compared=compared)
        is_beyond = wide.low > 1 + MARGIN or wide.high < 1 / (1 + MARGIN) if wide.low and wide.high else False
        return ratio if is_beyond else None

    def finding(
        self,
        kind: FindingKind,
        sentence: str,
        stretches: Sequence[Stretch],
        *,
        size: float,
        value: float | None = None,
        level: int | None = None,
        names: str | None = None,
        matches: tuple[CeilingMatch, ...] = (),
    ) -> Finding:
        """`sentence`: without the names of the curves. `names`: other names in their place. `stretches`: the
        evidence."""
        names = self.names([curve for curve, *_ in stretches]) if names is None else names
        counts = [count for curve, *_ in stretches for count in curve.counts]
        marks = tuple(curve.mark(first, last) for curve, first, last in stretches)
        return self.stated(
            kind, led(names, sentence), counts, marks, size=size, value=value, level=level, matches=matches
        )

    def stated(
        self,
        kind: FindingKind,
        sentence: str,
        counts: Sequence[int],
        marks: tuple[Mark, ...],
        *,
        size: float,
        value: float | None = None,
        level: int | None = None,
        about: str = "",
        matches: tuple[CeilingMatch, ...] = (),
    ) -> Finding:
        """`counts`: repeats of the values that it is about. Too few are said. `about`: the metric by default."""
        fewest, most = min(counts), max(counts)
        is_few = most > 1 and fewest < MIN_BLOCKS
        repeats = (f"n = {few(fewest, most)}: too few repeats",) if is_few else ()
        return Finding(
            kind=kind, **Sentence((sentence.removesuffix("."), *repeats)).texts, single=most == 1, size=size,
            value=value, level=level, marks=marks, about=about or self.metric.key, matches=matches,
        )  # fmt: skip

    def level_name(self, level: str) -> str:
        """The text of a level of a factor of the series, from the name of a series that has only it."""
        if len(self.comparison.series_by) > 1:
            return level
        known = {series.key: series.name for panel in self.comparison.panels for series in panel.series}
        return known.get(level, level)

    @property
    def x_subject(self) -> str:
        """`queue depth`, `jobs`"""
        return COUNTED.get(self.comparison.x, label_in_sentence(self.comparison.x, self.comparison.x_label))

    def at(self, level: int) -> str:
        """`8 jobs`, `queue depth 8`, `64 KiB`, `fill level 20 %`"""
        shown_level = self.comparison.levels[level]
        if self.comparison.x in COUNTED:
            return counted(self.comparison.x, shown_level.text)
        if is_clear(shown_level) and not shown_level.text.endswith("%"):
            return shown_level.text
        return f"{label_in_sentence(self.comparison.x, self.comparison.x_label)} {shown_level.text}"

    def value(self, value: float) -> str:
        """With its unit: the sentence names the metric."""
        return self.metric.format(value)

    @property
    def verb_s(self) -> str:
        """The ending of a verb after the metric: IOPS are many."""
        return "" if self.metric.label == "IOPS" else "s"

    @property
    def label(self) -> str:
        """The metric at the start of a sentence."""
        return self.metric.label

    @property
    def are(self) -> str:
        return "are" if self.metric.label == "IOPS" else "is"

    @property
    def subject(self) -> str:
        """The metric inside a sentence; a name that a person typed stays as it is."""
        return self.metric.label if self.metric.shown_as == "entered" else in_sentence(self.metric.label)

    @property
    def value_bytes(self) -> float | None:
        """What one unit of the metric carries, in bytes/s; None for other metrics, and IOPS of several block sizes."""
        if self.metric.key == "bytes_per_s":
            return 1.0
        sizes = frozenset[object]().union(*self.block_sizes.values())
        size = next(iter(sizes)) if len(sizes) == 1 else None
        return float(size) if self.metric.key == "iops" and isinstance(size, int) else None

    def links_of(self, curves: Iterable[Curve]) -> list[Link]:
        """The known ceilings that all of the curves have."""
        return shared([self.links.get(self.comparison.panels[c.panel].series[c.series].key, ()) for c in curves])

    def beside(self, curve: Curve) -> list[float]:
        """The values above 0 of its series at levels that have no place on the axis."""
        cells = self.comparison.panels[curve.panel].series[curve.series].cells
        return [cell.summary.mean for cell in cells if cell.level not in curve.levels and cell.summary.mean > 0]

    def curves_of(self, panel: int) -> list[Curve]:
        """Those with a point on the axis."""
        return [curve for curve in self.curves if curve.panel == panel and len(curve)]

    def panel_name(self, panel: int) -> str:
        return self.comparison.panels[panel].name

    def series_name(self, curve: Curve) -> str:
        """ "" if the chart has one series."""
        series = self.comparison.panels[curve.panel].series
        return series[curve.series].name if len(series) > 1 else ""

    def names(self, curves: Sequence[Curve]) -> str:
        """`randread and randwrite: Jobs 10 and Jobs 40`; "" for the only curve of the only chart."""
        by_panel: dict[int, list[str]] = {}
        for curve in curves:
            by_panel.setdefault(curve.panel, []).append(self.series_name(curve))
        panels: dict[str, list[str]] = {}  # by the names of their series
        for panel, series in by_panel.items():
            count = len(self.comparison.panels[panel].series)
            names = f"all {count} series" if len(series) == count > 2 else listed(series) if series[0] else ""
            panels.setdefault(names, []).append(self.panel_name(panel))
        parts = [": ".join(filter(None, (listed(charts), names))) for names, charts in panels.items()]
        return "; ".join(filter(None, parts))


def charts_of(
    comparison: Comparison,
    metric: Metric,
    learned: Noise | None = None,
    block_sizes: BlockSizes | None = None,
    links: Links | None = None,
    equipment: Equipment | None = None,
    between: Between | None = None,
) -> Charts:
    """Without levels that have no place on the axis, such as “not set”, and without zeros. No curves if two levels have
    one place."""
    places = {index: place for index, level in enumerate(comparison.levels) if (place := place_of(level)) is not None}
    if len({*places.values()}) < len(places):
        places = {}  # such as `1 MB` and `1000 kB`: labels, not places on an axis
    order = sorted(places, key=lambda index: places[index])
    curves = tuple(_curves(comparison, order, places))
    noises = [noise_of(comparison, index, curves) for index in range(len(comparison.panels))]
    known = (noise if noise and noise.of_repeats else learned or noise for noise in noises)
    return Charts(comparison, metric, curves, tuple(known), block_sizes or {}, links or {}, equipment or {}, between)


def place_of(level: Level) -> float | None:
    """The number of a level, also of one that begins with a number such as `20 %` or `64 kB`; None for words."""
    if level.number is not None:
        return level.number
    _, _, size, _ = level.order
    if math.isfinite(size) and "/" not in level.text:
        return size
    number = _NUMBER.fullmatch(level.text)
    return float(number[1]) if number else None


def _curves(comparison: Comparison, order: Sequence[int], places: Mapping[int, float]) -> Iterator[Curve]:
    for panel_index, panel in enumerate(comparison.panels):
        for series_index, series in enumerate(panel.series):
            cells = {cell.level: cell.summary for cell in series.cells if cell.summary.mean > 0}
            levels = tuple(index for index in order if index in cells)
            values, counts = (cells[index].mean for index in levels), (cells[index].n for index in levels)
            xs = tuple(places[index] for index in levels)
            yield Curve(panel_index, series_index, levels, xs, tuple(values), tuple(counts))


def noise_of(comparison: Comparison, panel: int, curves: Sequence[Curve]) -> Noise | None:
    """Of one chart: from its repeats if there are enough, else from those of the page, else from how smooth its curves
    are. Third differences, (1, -3, 3, -1) / sqrt(20) of ln(value), see no line and no parabola (after T. Gasser,
    L. Sroka, C. Jennen-Steinmetz: Residual variance and residual pattern in nonlinear regression, Biometrika 73, 1986).
    A break spoils four of them, but only one step: so steps are taken as well, around the median step of their curve,
    and around none for curves that stay at a limit. Of each the lower quartile counts, because knees and breaks are no
    noise, raised by three of its own standard errors, 1.8 / sqrt(m) for m independent residuals; and of the three the
    smallest, since whatever is no noise makes them larger. Repeats that are too few to say the noise say at least that
    it is not smaller than theirs."""
    lower_bound = NO_NOISE
    for panels in ([panel], range(len(comparison.panels))):
        squares, freedom = _inside(comparison, panels)
        if freedom >= MIN_FREEDOM:
            raised = 1 + 1 / math.sqrt(2 * freedom)
            return Noise(max(raised * math.sqrt(squares / freedom), NO_NOISE), of_repeats=True)
        if freedom:
            lower_bound = max(math.sqrt(squares / freedom), NO_NOISE)
    return smoothness([curve.logs for curve in curves if curve.panel == panel], lower_bound)


def smoothness(logs: Sequence[Sequence[float]], lower_bound: float = NO_NOISE) -> Noise | None:
    """From ln(value) along curves whose values were measured once; the method is that of `noise_of`. `lower_bound`:
    what a few repeats say."""
    estimates = [
        (1 + 3 * 1.8 / math.sqrt(len(residuals))) * sorted(residuals)[len(residuals) // 4] / QUARTILE
        for residuals in (list(map(abs, chain(*map(residuals_of, logs)))) for residuals_of in (_thirds, _steps, _level))
        if len(residuals) >= MIN_RESIDUALS
    ]
    missing = max(ENOUGH - sum(map(len, logs)), 0) / ENOUGH
    sigmas = SMOOTH_SIGMAS * (1 + missing)
    if not estimates and lower_bound == NO_NOISE:
        return None
    return Noise(max(min(estimates, default=0.0), lower_bound), of_repeats=False, sigmas=sigmas)


def _inside(comparison: Comparison, panels: Iterable[int]) -> tuple[float, int]:
    """The squares of ln(value) around the means of cells, and their degrees of freedom."""
    squares, freedom = 0.0, 0
    for summary in (c.summary for panel in panels for series in comparison.panels[panel].series for c in series.cells):
        if summary.n > 1 and min(summary.values) > 0:
            logs = [math.log(value) for value in summary.values]
            middle = math.fsum(logs) / len(logs)
            squares += math.fsum((each - middle) ** 2 for each in logs)
            freedom += len(logs) - 1
    return squares, freedom


def _steps(logs: Sequence[float]) -> Iterator[float]:
    steps = [after - before for before, after in pairwise(logs)]
    return ((step - median(steps)) / math.sqrt(2) for step in steps) if len(steps) > 2 else iter(())


def _level(logs: Sequence[float]) -> Iterator[float]:
    return ((after - before) / math.sqrt(2) for before, after in pairwise(logs))


def _thirds(logs: Sequence[float]) -> Iterator[float]:
    for first, second, third, fourth in zip(logs, logs[1:], logs[2:], logs[3:], strict=False):
        yield (first - 3 * second + 3 * third - fourth) / math.sqrt(20)


def is_straight(curve: Curve) -> bool:
    """Whether each unit of x adds the same amount, along counts from 0 or 1 on: then a first value that is small is not
    out of line."""
    xs, values = curve.xs, curve.values
    if len(curve) < FEWEST or xs[0] not in (0.0, 1.0) or any(b - a != 1 for a, b in pairwise(xs)):
        return False
    slope, start = linear_regression(xs, values)
    span, off = max(values) - min(values), max(abs(start + slope * x - y) for x, y in zip(xs, values, strict=True))
    return off <= OFF_LINE * span and span > 0.1 * min(values)


def counted(name: str, text: str) -> str:
    """`1 job`, `8 jobs`"""
    word, _, rest = COUNTED[name].partition(" ")
    return " ".join(filter(None, (text, word.removesuffix("s") if text == "1" else word, rest)))


def change(total: float) -> str:
    """ln(ratio) as `×2.60` or `−38 %`."""
    return shown(math.exp(total), PERCENT if abs(total) < math.log(2) else RATIO)


def few(fewest: int, most: int) -> str:
    """`1 to 2`"""
    return f"{fewest}" if fewest == most else f"{fewest} to {most}"


def span(low: float, high: float) -> str:
    """Two ln(ratio) in one form: `×0.35 to ×0.61`, `−8.2 % to +3.0 %`."""
    form = PERCENT if max(abs(low), abs(high)) < math.log(2) else RATIO
    return " to ".join(dict.fromkeys(shown(math.exp(each), form) for each in (low, high)))


def led(names: str, sentence: str) -> str:
    """A sentence after the names of its curves, if they have any. Names stay as people typed them."""
    return f"{names}: {sentence}" if names else sentence


def twin_of(charts: Charts) -> Charts | None:
    """The same measurements in the other rate: bandwidth is IOPS times the block size. None along other axes."""
    other = _OF_BLOCKS.get(charts.metric.key)
    if charts.comparison.x != BLOCK_SIZE or other is None:
        return None
    sizes = [level.number or 0.0 for level in charts.comparison.levels]
    curves = tuple(
        replace(curve, values=tuple(
            value * sizes[level] if other == "bytes_per_s" else value / sizes[level]
            for level, value in zip(curve.levels, curve.values, strict=True)
        ))
        for curve in charts.curves
    )  # fmt: skip
    return replace(charts, metric=METRICS[other], curves=curves)
