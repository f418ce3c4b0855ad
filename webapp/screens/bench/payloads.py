"""What Bench and the pages of products send to their charts; `frontend/src/payloads/bench.ts` checks the same."""

from webapp.screens.payloads import ChartCeiling, Payload


class BenchPoint(Payload, frozen=True, kw_only=True):
    """`level` is an index into the levels of the chart; the texts are those of the table."""

    level: int
    mean: float
    low: float | None
    high: float | None
    text: str
    spread_text: str


class BenchSeries(Payload, frozen=True, kw_only=True):
    colour: int  # its number
    name: str
    points: tuple[BenchPoint, ...]


class BenchLevel(Payload, frozen=True, kw_only=True):
    text: str
    number: float | None


class BenchChart(Payload, frozen=True, kw_only=True):
    """A curve, a latency ladder, or values over time."""

    x_label: str
    y_label: str
    shown_as: str
    logarithmic: bool  # the axis of values
    levels: tuple[BenchLevel, ...]
    series: tuple[BenchSeries, ...]
    ceilings: tuple[ChartCeiling, ...]  # in charts of bandwidth, if they are switched on


class BenchCharts(Payload, frozen=True, kw_only=True):
    charts: tuple[BenchChart, ...]  # in the order of the canvases
