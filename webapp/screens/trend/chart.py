"""The chart of a trend: the payload of the page, and its picture."""

from datetime import UTC, datetime

from webapp.core.formatting import ShownAs
from webapp.pictures.axes import range_axis, time_axis
from webapp.pictures.charts import DOTTED, Chart, Line, Mark, Upright
from webapp.pictures.elements import MUTED
from webapp.results.metrics import FORMATTERS
from webapp.screens.payloads import Payload

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


def _mark(point: TrendPoint) -> Mark:
    return Mark(point.at_ms / 1000, point.value, point.low, point.high)


def _date(at_s: float) -> str:
    at = datetime.fromtimestamp(at_s, UTC)
    return f"{at:%Y-%m-%d}" if at_s % DAY_S == 0 else f"{at:%Y-%m-%d %H:%M}"
