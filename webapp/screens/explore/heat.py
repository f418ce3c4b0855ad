"""A comparison as a heat map: series down, levels across, a colour and a number in each cell.

Values are coloured in steps of one hue, on a log scale if they span more than a factor of ten. Ratios to the baseline
go from worse (orange) through no difference (neutral) to better (blue); colour-blind readers can distinguish these
colours. Ratios that may be chance are neutral, corrected for the number of comparisons on the page. All maps of a page
share one scale. Maps of values have lines of equal value if both axes are numbers. Colours are in `heat.css`.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from webapp.analysis.answer import Cell, Comparison, Panel, Series
from webapp.analysis.dimensions import known_dimension
from webapp.analysis.trial_metrics import metric_named
from webapp.analysis.words import shown, unclear
from webapp.pictures.axes import round_step, round_values

# Lines of equal value over a heat map, with labels.
#
# Values lie at the centres of cells and are interpolated linearly between them; on a log scale, their logarithms.
# Where a cell has no value, the lines end ("marching squares": C. Maple: Geometric design and space planning using
# the marching squares and marching cube algorithms, 2003). Coordinates are in px of the map's cells, whose size is
# also in `heat.css`.

CELL_WIDTH, CELL_HEIGHT = 92, 44
MIN_ROWS = 3  # also columns
MAX_LINES = 6
NUMBER_WIDTH, NUMBER_HEIGHT = 40, 16  # of the text in a cell, and of a label
# Places of a label from its line: on it, then beside it, the nearest first.
_OFFSETS = (((0, 0),), ((0, 9), (0, -9), (22, 0), (-22, 0)), ((30, 0), (-30, 0)), ((38, 0), (-38, 0)))
Grid = Sequence[Sequence[float | None]]  # rows of values
Place = tuple[float, float]
Segment = tuple[Place, Place]


@dataclass(frozen=True)
class Contour:
    text: str  # the value with its unit
    segments: tuple[Segment, ...]
    label: Place | None  # None without room beside the line


def contours(grid: Grid, *, log: bool, written: Callable[[float], str]) -> tuple[Contour, ...]:
    """None for less than MIN_ROWS rows or columns, and for values that do not differ. Every round value between the
    lowest and the highest has its line, if cells around it have values."""
    if len(grid) < MIN_ROWS or min(map(len, grid)) < MIN_ROWS:
        return ()
    known = [value for row in grid for value in row if value is not None]
    if not known:
        return ()
    at = math.log if log else float
    scaled = [[None if value is None else at(value) for value in row] for row in grid]
    made, taken = list[Contour](), list[Place]()
    for level in levels_between(min(known), max(known), log=log):
        segments = tuple(_segments(scaled, at(level)))
        place = _label_place(segments, taken)
        taken += [place] if place else []
        if segments:
            made.append(Contour(written(level), segments, place))
    return tuple(made)


def levels_between(low: float, high: float, *, log: bool) -> list[float]:
    """At most MAX_LINES round values: 1, 2 or 5 times powers of ten, on a linear scale multiples of such a step."""
    if not high > low:
        return []
    if log:
        return round_values(low * (1 + 1e-9), high * (1 - 1e-9), MAX_LINES)
    step = round_step((high - low) / MAX_LINES)
    numbers = range(math.floor(low / step), math.ceil(high / step) + 1)
    return [number * step for number in numbers if low < number * step < high]


def _segments(grid: Grid, level: float) -> Iterator[Segment]:
    for row in range(len(grid) - 1):
        for column in range(len(grid[row]) - 1):
            places = [(row, column), (row, column + 1), (row + 1, column + 1), (row + 1, column)]
            values = [value for r, c in places if (value := grid[r][c]) is not None]
            if len(values) == len(places):
                yield from _through(values, [_centre(*place) for place in places], level)


def _through(values: Sequence[float], centres: Sequence[Place], level: float) -> Iterator[Segment]:
    """The segments between four neighbouring centres, which are in order around the square."""
    crossings = [
        _between(centres[n], centres[(n + 1) % 4], (level - values[n]) / (values[(n + 1) % 4] - values[n]))
        for n in range(4)
        if (values[n] >= level) is not (values[(n + 1) % 4] >= level)
    ]
    if len(crossings) == 2:
        yield crossings[0], crossings[1]
    elif crossings:  # a saddle: the middle decides which corners are joined
        joined = (sum(values) / 4 >= level) is (values[0] >= level)
        turned = crossings if joined else [crossings[3], *crossings[:3]]
        yield turned[0], turned[1]
        yield turned[2], turned[3]


def _centre(row: int, column: int) -> Place:
    return (column + 0.5) * CELL_WIDTH, (row + 0.5) * CELL_HEIGHT


def _between(first: Place, second: Place, share: float) -> Place:
    return first[0] + share * (second[0] - first[0]), first[1] + share * (second[1] - first[1])


def _label_place(segments: Sequence[Segment], taken: Sequence[Place]) -> Place | None:
    """The place on the line with the most room between the numbers in cells and other labels, or beside the line if
    there is no room on it; None without room."""
    line = [_between(*segment, share) for segment in segments for share in (0, 0.25, 0.5, 0.75, 1)]

    def room(place: Place) -> float:
        row, column = int(place[1] / CELL_HEIGHT - 0.5), int(place[0] / CELL_WIDTH - 0.5)
        numbers = [_centre(row + down, column + right) for down in (0, 1) for right in (0, 1)]
        return min(_apart(place, other) for other in (*numbers, *taken))

    for offsets in _OFFSETS if line else ():
        best = max(((x + right, y + down) for x, y in line for right, down in offsets), key=room)
        if room(best) >= 1:
            return best
    return None


def _apart(first: Place, second: Place) -> float:
    """Below 1, the texts at both places overlap; more than 2 is as good as 2."""
    return min(2.0, max(abs(first[0] - second[0]) / NUMBER_WIDTH, abs(first[1] - second[1]) / NUMBER_HEIGHT))


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
        heat_map = _map(panel, comparison, made)
        if not _has_numbers(comparison):
            return heat_map
        lines = contours(_grid(panel), log=scale.log, written=metric.format)
        size = len(heat_map.levels) * CELL_WIDTH, len(heat_map.rows) * CELL_HEIGHT
        return replace(heat_map, contours=lines, width=size[0], height=size[1])

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
    return [[series_means.get(level) for level in used] for series_means in means]


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
