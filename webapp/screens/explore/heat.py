"""A comparison as a heat map: series down, levels across, a colour and a number in each cell.

Values are coloured in steps of one hue, on a log scale if they span more than a factor of ten. Ratios to the baseline
go from worse (orange) through no difference (neutral) to better (blue); colour-blind readers can distinguish these
colours. Ratios that may be chance are neutral, corrected for the number of comparisons on the page. All maps of a page
share one scale. Maps of values have lines of equal value if both axes are numbers. Colours are in `heat.css`.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from webapp.analysis.answer import Cell, Comparison, Panel, Series
from webapp.analysis.dimensions import known_dimension
from webapp.analysis.trial_metrics import metric_named
from webapp.analysis.words import shown, unclear
from webapp.screens.explore.contours import CELL_HEIGHT, CELL_WIDTH, Contour, contours

Made = Callable[[Cell, Series], "HeatCell"]
NO_RATIO = "No ratio: the baseline has no value here, or the values are not comparable."
STEPS = 9
NEUTRAL = STEPS // 2
_WIDE = 10.0  # above this ratio of largest to smallest value, steps have equal ratios


@dataclass(frozen=True)
class HeatCell:
    text: str
    step: str  # class: s0 … s8 of values, d0 … d8 of ratios
    title: str
    doubts: tuple[str, ...]


@dataclass(frozen=True)
class HeatRow:
    series: str
    is_baseline: bool
    cells: tuple[HeatCell | None, ...]  # one for each level; None where nothing was measured


@dataclass(frozen=True)
class HeatMap:
    """One panel, with the levels that it has."""

    name: str
    levels: tuple[str, ...]
    rows: tuple[HeatRow, ...]
    contours: tuple[Contour, ...] = ()
    width: int = 0  # of the contours, in px
    height: int = 0


@dataclass(frozen=True)
class Heat:
    """`legend`: class and text of each step, from the lowest."""

    maps: tuple[HeatMap, ...]
    legend: tuple[tuple[str, str], ...]
    words: str

    @property
    def has_contours(self) -> bool:
        return any(map.contours for map in self.maps)


@dataclass(frozen=True)
class _Scale:
    """Steps of equal width between `low` and `high`, of their logarithms where `log`."""

    low: float
    high: float
    log: bool

    def step(self, value: float) -> int:
        low, high, at = self._at(self.low), self._at(self.high), self._at(value)
        return min(STEPS - 1, max(0, int((at - low) / (high - low) * STEPS))) if high > low else NEUTRAL

    def middle(self, step: int) -> float:
        low, high = self._at(self.low), self._at(self.high)
        at = low + (high - low) * (step + 0.5) / STEPS
        return math.exp(at) if self.log else at

    def _at(self, value: float) -> float:
        return math.log(value) if self.log else value


def heat_of(comparison: Comparison, *, ratios: bool) -> Heat:
    return _ratios(comparison) if ratios else _values(comparison)


def _cells(comparison: Comparison) -> list[Cell]:
    return [cell for panel in comparison.panels for series in panel.series for cell in series.cells]


# ---- values


def _values(comparison: Comparison) -> Heat:
    means = [cell.summary.mean for cell in _cells(comparison)] or [0.0]
    low, high = min(means), max(means)
    scale = _Scale(low, high, log=low > 0 and high / low > _WIDE)
    metric = metric_named(comparison.metric)

    def made(cell: Cell, _: Series) -> HeatCell:
        title = f"{cell.text}, {cell.spread_text}, n = {cell.summary.n}"
        return HeatCell(cell.text, f"s{scale.step(cell.summary.mean)}", title, cell.doubts)

    def with_contours(panel: Panel) -> HeatMap:
        found = _map(panel, comparison, made)
        if not _has_numbers(comparison):
            return found
        lines = contours(_grid(panel), log=scale.log, written=metric.format)
        size = len(found.levels) * CELL_WIDTH, len(found.rows) * CELL_HEIGHT
        return replace(found, contours=lines, width=size[0], height=size[1])

    steps = range(STEPS) if high > low else (NEUTRAL,)
    better = "lower" if comparison.lower_is_better else "higher"
    how = ", in steps of equal ratio" if scale.log else ""
    return Heat(
        tuple(map(with_contours, comparison.panels)),
        tuple((f"s{step}", metric.format(scale.middle(step))) for step in steps),
        f"{comparison.metric_label}{how}; {better} is better.",
    )


def _has_numbers(comparison: Comparison) -> bool:
    """Whether both axes are numbers: between names there is nothing to interpolate."""
    series = [known_dimension(name).numeric for name in comparison.series_by]
    return comparison.x_numeric and series == [True]


def _grid(panel: Panel) -> list[list[float | None]]:
    used = sorted({cell.level for series in panel.series for cell in series.cells})
    means = [{cell.level: cell.summary.mean for cell in series.cells} for series in panel.series]
    return [[own.get(level) for level in used] for own in means]


# ---- ratios


def _ratios(comparison: Comparison) -> Heat:
    values = [
        cell.against_baseline.ratio.value
        for cell in _cells(comparison)
        if cell.against_baseline and cell.against_baseline.ratio.value > 0
    ]
    reach = max((abs(math.log(value)) for value in values), default=0.0) or math.log(1.01)
    scale = _Scale(math.exp(-reach), math.exp(reach), log=True)

    def step_of(value: float) -> int:
        step = scale.step(value)
        return STEPS - 1 - step if comparison.lower_is_better else step

    def made(cell: Cell, series: Series) -> HeatCell:
        if series.is_baseline:
            return HeatCell("baseline", f"d{NEUTRAL}", cell.text, cell.doubts)
        against = cell.against_baseline
        if against is None:
            return HeatCell("–", f"d{NEUTRAL}", NO_RATIO, cell.doubts)
        if against.better is None:
            title = f"{against.interval_text or 'no interval'}: {unclear(against)}"
            return HeatCell(against.text, f"d{NEUTRAL}", title, cell.doubts)
        return HeatCell(against.text, f"d{step_of(against.ratio.value)}", against.interval_text, cell.doubts)

    steps = [(f"d{step_of(scale.middle(n))}", shown(scale.middle(n), comparison.ratio_as)) for n in range(STEPS)]
    return Heat(
        tuple(_map(panel, comparison, made) for panel in comparison.panels),
        tuple(steps),
        f"{comparison.metric_label} against the baseline: blue is better, orange is worse, neutral may be chance.",
    )


def _map(panel: Panel, comparison: Comparison, made: Made) -> HeatMap:
    used = sorted({cell.level for series in panel.series for cell in series.cells})
    levels = tuple(comparison.levels[level].text for level in used)
    return HeatMap(panel.name, levels, tuple(_row(series, used, made) for series in panel.series))


def _row(series: Series, used: Sequence[int], made: Made) -> HeatRow:
    cells = {cell.level: made(cell, series) for cell in series.cells}
    return HeatRow(series.name, series.is_baseline, tuple(cells.get(level) for level in used))
