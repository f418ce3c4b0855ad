"""The pictures of trends: sparklines as SVG, and the chart of a page. Sparklines of one list share a relative scale, so
that flat means flat. Pure."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Self

from webapp.core.formatting import ShownAs
from webapp.pictures import axes
from webapp.pictures.axes import range_axis, time_axis
from webapp.pictures.charts import DOTTED, Chart, Line, Mark, Upright
from webapp.pictures.elements import MUTED
from webapp.results.metrics import FORMATTERS
from webapp.screens.payloads import Payload
from webapp.trends.summaries import Summary

LEAST, MOST = 0.78, 1.16  # ends of the scale, unless a value is beyond
FARTHEST = 2.0  # times the level: values beyond are drawn at the edge
BAND = 0.03  # the drawn band is ±3 % of the level
MARGIN = 4.0  # px


@dataclass(frozen=True)
class Scale:
    """Ratios to the level of each trend, on a logarithmic axis."""

    low: float
    high: float

    @classmethod
    def of(cls, summaries: Iterable[Summary]) -> Self:
        ratios = [ratio for summary in summaries for ratio in summary.ratios]
        low, high = min([LEAST, *ratios]), max([MOST, *ratios])
        return cls(max(low, 1 / FARTHEST), min(high, FARTHEST))

    def height(self, ratio: float, height: float) -> float:
        """Px from the top."""
        return round(axes.Scale(self.low, self.high, logarithmic=True).at(ratio, height - MARGIN, MARGIN), 1)

    @property
    def words(self) -> str:
        """−22 to +16 %."""
        return f"−{100 * (1 - self.low):.0f} to +{100 * (self.high - 1):.0f} %"


@dataclass(frozen=True)
class Sparkline:
    """`before` and `after` are points of polylines: up to the step, and from it on. `tone` is a class of CSS."""

    width: int
    height: int
    band: tuple[float, float]  # top and height
    before: str
    after: str
    step: float | None  # px from the left
    end: tuple[float, float]
    tone: str
    label: str


def sparkline(summary: Summary, scale: Scale, *, width: int, height: int, tone: str = "") -> Sparkline:
    """`tone`: of the last point, if something else than the trend decides it."""
    ratios = summary.ratios
    reach = (width - 2 * MARGIN) / max(1, len(ratios) - 1)
    points = [(round(MARGIN + place * reach, 1), scale.height(ratio, height)) for place, ratio in enumerate(ratios)]
    if len(points) == 1:
        points = [(round(width - MARGIN, 1), points[0][1])]
    cut = summary.step.run if summary.step else len(points)
    top, bottom = scale.height(1 + BAND, height), scale.height(1 - BAND, height)
    return Sparkline(
        width=width,
        height=height,
        band=(top, round(bottom - top, 1)),
        before=_text(points[:cut]),
        after=_text(points[max(0, cut - 1) :]) if summary.step else "",
        step=round(points[cut][0] - reach / 2, 1) if summary.step and not summary.step.over else None,
        end=points[-1],
        tone=tone or summary.state.tone,
        label=_label(summary),
    )


def _text(points: list[tuple[float, float]]) -> str:
    return " ".join(f"{x:g},{y:g}" for x, y in points)


def _label(summary: Summary) -> str:
    count = len(summary.values)
    runs = f"{count} run{'s' if count > 1 else ''}"
    if summary.step is None:
        return f"{runs}, no step"
    if summary.step.over:
        return f"{runs}, {100 * (summary.step.ratio - 1):+.0f} % gradually over {summary.step.over} runs"
    return f"{runs}, a step of {100 * (summary.step.ratio - 1):+.0f} % at run {summary.step.run + 1}"


# The chart of a trend: the payload of the page, and its picture.

STEP = "#e40c30"  # as in the page
FAILS = "Fails"
DAY_S = 86_400
TIME_STEPS = (3600, 7200, 14_400, 21_600, 43_200, *(DAY_S * days for days in (1, 2, 7, 14, 28, 56, 112, 182, 364)))
ROOM = 0.02  # of the time axis before the first and after the last run


class TrendPoint(Payload, frozen=True, kw_only=True):
    """One run. `low` and `high` are the 95 % interval, null without repeats."""

    run: int
    at_ms: int
    value: float
    low: float | None
    high: float | None
    verdict: str  # label of the outcome against the baseline run, "" without one


class TrendStep(Payload, frozen=True, kw_only=True):
    """Between two runs. `text` is the size: −12.3 %."""

    at_ms: int
    text: str


class TrendChart(Payload, frozen=True, kw_only=True):
    """`baseline` is the value of the baseline run, null without one. Levels are in the order of time, between steps."""

    label: str
    shown_as: ShownAs
    points: tuple[TrendPoint, ...]
    steps: tuple[TrendStep, ...]
    levels: tuple[float, ...]
    baseline: float | None


def trend_picture(chart: TrendChart) -> Chart:
    """A point for each run with its interval, the levels, the steps and the baseline run."""
    first, last = chart.points[0].at_ms / 1000, chart.points[-1].at_ms / 1000
    room = ROOM * (last - first) if last > first else DAY_S / 2
    x = time_axis("Start of the run, UTC", first - room, last + room, _date, TIME_STEPS)
    values = [value for point in chart.points for value in (point.low, point.value, point.high) if value is not None]
    values += [] if chart.baseline is None else [chart.baseline]
    runs = tuple(_mark(point) for point in chart.points)
    failing = tuple(_mark(point) for point in chart.points if point.verdict == FAILS)
    ends = [first, *(step.at_ms / 1000 for step in chart.steps), last]
    levels = [
        mark
        for y, begin, end in zip(chart.levels, ends, ends[1:], strict=False)
        for mark in (Mark(begin, y), Mark(end, y), Mark(end, None))
    ]
    extra = [Line("Level", STEP, tuple(levels), dash="none")] if levels else []
    if chart.baseline is not None:
        ends_of_axis = (Mark(first, chart.baseline), Mark(last, chart.baseline))
        extra.append(Line("Baseline run", MUTED, ends_of_axis, dash=DOTTED))
    return Chart(
        "",
        x,
        range_axis(chart.label, values, FORMATTERS[chart.shown_as]),
        (Line(chart.label, 0, runs, width=1), *([Line(FAILS, STEP, failing, width=0)] if failing else [])),
        extra=tuple(extra),
        uprights=tuple(Upright(step.at_ms / 1000, step.text, STEP) for step in chart.steps),
    )


def marks_drawn(chart: TrendChart) -> Iterator[str]:
    """What the marks of the chart mean: those that it has."""
    if any(point.low is not None for point in chart.points):
        yield "Bars: 95 % confidence interval over the repeats of a run."
    if chart.levels:
        yield "Red lines: means between steps."
    if chart.steps:
        yield "Dashed vertical lines: steps."
    if chart.baseline is not None:
        yield "Dotted grey line: baseline run."
    if any(point.verdict == FAILS for point in chart.points):
        yield "Red diamonds: runs that fail."


def _mark(point: TrendPoint) -> Mark:
    return Mark(point.at_ms / 1000, point.value, point.low, point.high)


def _date(at_s: float) -> str:
    at = datetime.fromtimestamp(at_s, UTC)
    return f"{at:%Y-%m-%d}" if at_s % DAY_S == 0 else f"{at:%Y-%m-%d %H:%M}"
