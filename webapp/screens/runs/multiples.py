"""Small charts of what a run found: the ratio of each level of a factor to the baseline, at all points of the plan.

A row is a pattern and target, a column the levels of the other factors, and x the axis of load with the most levels.
The claims are those of the run's answer. All charts of a row share a scale.
"""

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from typing import NamedTuple

import msgspec

from webapp.analysis.answer import BaselineRatio, Comparison, Conclusion, Level
from webapp.analysis.default_questions import Chosen
from webapp.analysis.dimensions import JOINER, MATCHED, label_of
from webapp.analysis.run_answer import factor_comparisons
from webapp.analysis.seals import scopes_of_run
from webapp.analysis.words import in_sentence, label_in_sentence
from webapp.core.answers import Question, answered
from webapp.pictures.axes import Scale
from webapp.plans.factors import CHANGE, FACTORS
from webapp.plans.points import follow_from, varying
from webapp.results.reading.filter import ResultFilter
from webapp.results.reading.query import ResultQuery, target_points
from webapp.runs.models import Run

MOST_FACTORS, MOST_ROWS, MOST_COLUMNS, MOST_LINES, MOST_TICKS = 2, 6, 4, 4, 5
FEWEST = 3  # points, for charts
FULL = 0.75  # share of rows times columns that have a chart, for a table of charts

# In pixels. Values are drawn between LEFT and RIGHT, and ABOVE and BELOW.
WIDTH, HEIGHT = 270.0, 132.0
LEFT, RIGHT, ABOVE, BELOW = 42.0, 258.0, 10.0, 110.0
INSIDE = 10.0  # between the axis and the first and last point
ASIDE = 3.0  # between lines, so that whiskers do not cover each other
LINE = 13.0  # between texts of the axis
LEAST = math.log(1.05)  # of a scale, on each side of 1
BEYOND = math.log(1.5)  # so much further than values, whiskers are cut
_BELOW_1 = (0.001, 0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 0.8, 0.9, 0.95)
_TICKS = (*_BELOW_1, 1.05, 1.1, 1.2, 1.4, 2, 3, 5, 10, 20, 50, 100, 1000)
_LOADS = frozenset({"iodepth", "numjobs"})
_PARTS = re.compile(re.escape(JOINER))


class Drawn(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Base of the parts of a chart. Coordinates are texts, as SVG wants them."""


class Point(Drawn, frozen=True, kw_only=True):
    x: str
    y: str
    low: str  # end of the whisker; "" without an interval
    high: str
    mark: str  # faster | slower | equal | unclear
    words: str


class Line(Drawn, frozen=True, kw_only=True):
    name: str
    shape: int  # of its markers and dashes, from 0
    path: str
    points: tuple[Point, ...]


class Tick(Drawn, frozen=True, kw_only=True):
    at: str
    text: str


class Chart(Drawn, frozen=True, kw_only=True):
    lines: tuple[Line, ...]
    x_ticks: tuple[Tick, ...]
    y_ticks: tuple[Tick, ...]
    baseline: str  # y of the ratio 1
    words: str


class Column(Drawn, frozen=True, kw_only=True):
    title: str
    chart: Chart | None  # None where nothing is compared


class Row(Drawn, frozen=True, kw_only=True):
    title: str
    columns: tuple[Column, ...]


class Multiples(Drawn, frozen=True, kw_only=True):
    """All charts of one factor."""

    metric: str
    baseline: str
    x_label: str
    names: tuple[tuple[str, int], ...]  # of the lines, with their shapes
    rows: tuple[Row, ...]
    left_out: bool  # there are more lines, rows or columns


class AllMultiples(Drawn, frozen=True, kw_only=True):
    factors: tuple[Multiples, ...]


def multiples_of(run: Run) -> tuple[Multiples, ...]:
    """Of the first factors. Stored until what the answer of the run depends on changes."""
    question = Question((str(run.number),), scopes_of_run(run), AllMultiples, partial(_all_multiples, run))
    return answered(question).factors


def _all_multiples(run: Run) -> AllMultiples:
    points = [each.point for each in target_points(ResultQuery.of(ResultFilter(runs=(run.number,))))]
    drawn = (_multiples(chosen, compared, points) for chosen, compared in factor_comparisons(run)[:MOST_FACTORS])
    return AllMultiples(factors=tuple(each for each in drawn if each))


Texts = tuple[str, ...]


class _Compared(NamedTuple):
    """One point of one line."""

    line: str
    row: Texts
    column: Texts
    x: Level
    ratio: BaselineRatio


class _Axes(NamedTuple):
    """The factors whose levels are the last parts of matched levels, and which of them is x."""

    names: Sequence[str] = ()
    x: int | None = None

    def divide(self, level: Level) -> tuple[Texts, Texts, Level]:
        """Row, column and x of a matched level. Without factors it is x as a whole."""
        parts = _PARTS.split(level.text)
        if self.x is None or len(parts) < len(self.names):
            return (), (), level
        before = len(parts) - len(self.names)
        at = before + self.x
        return tuple(parts[:before]), (*parts[before:at], *parts[at + 1 :]), Level(parts[at], parts[at], None)

    @property
    def label(self) -> str:
        return "" if self.x is None else in_sentence(label_of(self.names[self.x]))


def _multiples(chosen: Chosen, made: Comparison, points: Sequence[Mapping[str, object]]) -> Multiples | None:
    """None with too few points for charts."""
    names = _names(chosen, points) if chosen.x == MATCHED else []
    axes = _Axes(names, _axis(names, made))
    compared = _without_constants(list(_compared(made, axes)))
    if len(compared) < FEWEST:
        return None
    lines = list(dict.fromkeys(point.line for point in compared))
    rows = list(dict.fromkeys(point.row for point in compared))
    columns = sorted({point.column for point in compared}, key=_order)
    shown = [point for point in compared if point.line in lines[:MOST_LINES]]
    is_one_row = len(columns) == 1 or _is_sparse(shown, len(rows) * len(columns))
    most_rows = MOST_ROWS * MOST_COLUMNS if is_one_row else MOST_ROWS
    return Multiples(
        metric=made.metric_label,
        baseline=next((each.name for panel in made.panels for each in panel.series if each.is_baseline), ""),
        x_label=axes.label if chosen.x == MATCHED else label_in_sentence(made.x, made.x_label),
        names=tuple((name, shape) for shape, name in enumerate(lines[:MOST_LINES])),
        rows=(_in_one_row(lines, shown),)
        if is_one_row
        else tuple(_row(row, columns[:MOST_COLUMNS], lines, shown) for row in rows[:most_rows]),
        left_out=len(lines) > MOST_LINES or len(rows) > most_rows or len(columns) > MOST_COLUMNS,
    )


def _is_sparse(points: Sequence[_Compared], places: int) -> bool:
    return len({(point.row, point.column) for point in points}) <= FULL * places


def _names(chosen: Chosen, points: Sequence[Mapping[str, object]]) -> list[str]:
    """The factors whose levels are the last parts of matched levels."""
    used = {*chosen.series.split(","), chosen.panel}
    used |= follow_from(CHANGE, points) if CHANGE in used else set()
    return [name for name in varying(points) if name in FACTORS and name not in used]


def _axis(names: Sequence[str], made: Comparison) -> int | None:
    """The place of the factor that has the most levels in one chart, of those that are numbers; of equal ones, queue
    depth or jobs."""
    levels: dict[int, dict[tuple[object, ...], set[str]]] = {}
    for number, panel in enumerate(made.panels):
        for cell in (cell for series in panel.series for cell in series.cells if cell.against_baseline):
            parts = _PARTS.split(made.levels[cell.level].text)
            factor_levels = parts[len(parts) - len(names) :]
            for place, name in enumerate(names):
                if FACTORS[name].numeric and len(parts) >= len(names):
                    before = parts[: len(parts) - len(names)]
                    others = (number, *before, *factor_levels[:place], *factor_levels[place + 1 :])
                    levels.setdefault(place, {}).setdefault(others, set()).add(factor_levels[place])
    counts = {
        place: (max(map(len, levels_by_chart.values())), names[place] in _LOADS)
        for place, levels_by_chart in levels.items()
    }
    return max(counts, key=lambda place: counts[place], default=None)


def _without_constants(points: Sequence[_Compared]) -> list[_Compared]:
    """Without the parts of titles that all charts have."""
    rows, columns = _varying_places([point.row for point in points]), _varying_places([p.column for p in points])
    return [
        point._replace(
            row=tuple(text for place, text in enumerate(point.row) if place in rows),
            column=tuple(text for place, text in enumerate(point.column) if place in columns),
        )
        for point in points
    ]


def _varying_places(titles: Sequence[Texts]) -> set[int]:
    longest = max(map(len, titles), default=0)
    return {place for place in range(longest) if len({title[place : place + 1] for title in titles}) > 1}


def _compared(made: Comparison, axes: _Axes) -> Iterator[_Compared]:
    for panel in made.panels:
        for series in panel.series:
            for cell in series.cells:
                if cell.against_baseline and cell.against_baseline.ratio.value > 0:
                    row, column, x = axes.divide(made.levels[cell.level])
                    names = (panel.name, *row) if panel.name else row
                    yield _Compared(series.name, names, column, x, cell.against_baseline)


def _order(texts: Texts) -> tuple[object, ...]:
    return tuple(Level(text, text, None).order for text in texts)


# ---- drawing


class _Scale(NamedTuple):
    """Of ln(ratio), for a whole row."""

    low: float
    high: float

    def y(self, ratio: float) -> float:
        return Scale(self.low, self.high).at(math.log(ratio), BELOW, ABOVE)

    @property
    def ticks(self) -> tuple[Tick, ...]:
        baseline = self.y(1.0)
        fitting = (tick for tick in _TICKS if self.low <= math.log(tick) <= self.high)
        inside = [tick for tick in fitting if abs(self.y(tick) - baseline) >= LINE]
        below, above = [tick for tick in inside if tick < 1], [tick for tick in inside if tick > 1]
        return tuple(Tick(at=_px(self.y(tick)), text=f"×{tick:g}") for tick in (*below[:1], 1.0, *above[-1:]))


def _scale(points: Sequence[_Compared]) -> _Scale:
    """It contains all values, and whiskers as far as they do not flatten the chart."""
    logs = [math.log(point.ratio.ratio.value) for point in points]
    lows = [math.log(point.ratio.ratio.low) for point in points if point.ratio.ratio.low]
    highs = [math.log(point.ratio.ratio.high) for point in points if point.ratio.ratio.high]
    low = max(min([*lows, *logs]), min(logs) - BEYOND)
    high = min(max([*highs, *logs]), max(logs) + BEYOND)
    return _Scale(1.1 * min(low, -LEAST), 1.1 * max(high, LEAST))


def _row(row: Texts, columns: Sequence[Texts], lines: Sequence[str], points: Sequence[_Compared]) -> Row:
    points = [point for point in points if point.row == row]
    levels = sorted({point.x for point in points}, key=lambda level: level.order)
    scale = _scale(points)
    charts = {column: [point for point in points if point.column == column] for column in columns}
    return Row(
        title=JOINER.join(row),
        columns=tuple(
            Column(title=JOINER.join(column), chart=_chart(of_column, levels, lines, scale))
            for column, of_column in charts.items()
        ),
    )


def _in_one_row(lines: Sequence[str], points: Sequence[_Compared]) -> Row:
    """Charts side by side, if rows and columns would have few or gaps."""
    levels = sorted({point.x for point in points}, key=lambda level: level.order)
    scale = _scale(points)
    charts: dict[Texts, list[_Compared]] = {}
    for point in points:
        charts.setdefault((*point.row, *point.column), []).append(point)
    return Row(
        title="",
        columns=tuple(
            Column(title=JOINER.join(title), chart=_chart(of_column, levels, lines, scale))
            for title, of_column in islice(charts.items(), MOST_ROWS * MOST_COLUMNS)
        ),
    )


def _chart(points: Sequence[_Compared], levels: Sequence[Level], lines: Sequence[str], scale: _Scale) -> Chart | None:
    if not points:
        return None
    step = (RIGHT - LEFT - 2 * INSIDE) / max(len(levels) - 1, 1)
    xs = {level: LEFT + INSIDE + step * place for place, level in enumerate(levels)}
    drawn = [
        _line(name, shape, sorted((point for point in points if point.line == name), key=lambda p: xs[p.x]), xs, scale)
        for shape, name in enumerate(lines[:MOST_LINES])
    ]
    return Chart(
        lines=tuple(line for line in drawn if line.points),
        x_ticks=tuple(Tick(at=_px(xs[level]), text=_bare(level.text)) for level in _few(levels)),
        y_ticks=scale.ticks,
        baseline=_px(scale.y(1.0)),
        words="; ".join(f"{point.line}, {point.x.text}: {_words(point.ratio)}" for point in points),
    )


def _line(name: str, shape: int, points: Sequence[_Compared], xs: Mapping[Level, float], scale: _Scale) -> Line:
    drawn = tuple(_point(point, xs[point.x] + shape * ASIDE, scale) for point in points)
    return Line(name=name, shape=shape, path=" ".join(f"{point.x},{point.y}" for point in drawn), points=drawn)


def _point(point: _Compared, x: float, scale: _Scale) -> Point:
    ratio = point.ratio.ratio
    has_interval = ratio.low is not None and ratio.high is not None
    return Point(
        x=_px(x), y=_px(scale.y(ratio.value)),
        low=_px(scale.y(ratio.low)) if has_interval and ratio.low else "",
        high=_px(scale.y(ratio.high)) if has_interval and ratio.high else "",
        mark=_mark(point.ratio), words=f"{point.line}, {point.x.text}: {_words(point.ratio)}",
    )  # fmt: skip


def _mark(against: BaselineRatio) -> str:
    if against.better is not None:
        return "faster" if against.better else "slower"
    return "equal" if against.conclusion is Conclusion.EQUAL else "unclear"


def _words(against: BaselineRatio) -> str:
    return f"{against.text} ({against.interval_text})" if against.interval_text else f"{against.text}, measured once"


def _few(levels: Sequence[Level]) -> Sequence[Level]:
    """As many as fit below a chart, with the first and the last one."""
    if len(levels) <= MOST_TICKS:
        return levels
    step = (len(levels) - 1) / (MOST_TICKS - 1)
    return [levels[round(place * step)] for place in range(MOST_TICKS)]


def _bare(text: str) -> str:
    """`32` of `Queue depth 32`: the axis has the name."""
    last = text.rpartition(" ")[2]
    return last if last.isdecimal() else text


def _px(value: float) -> str:
    return f"{value:.1f}"
