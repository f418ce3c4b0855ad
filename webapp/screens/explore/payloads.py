"""What the comparison sends to its scripts."""

from enum import StrEnum

from webapp.analysis.answer import Comparison
from webapp.analysis.latency import Distribution
from webapp.analysis.timeline import TimeLines
from webapp.core.formatting import ShownAs
from webapp.screens.payloads import ChartCeiling, Payload


class ChartKind(StrEnum):
    AUTO = "auto"
    LINE = "line"
    BAR = "bar"
    BOX = "box"


class SeriesName(Payload, frozen=True, kw_only=True):
    """One series of the comparison, with the number of its colour."""

    name: str
    is_baseline: bool
    colour: int


class ReferencePoint(Payload, frozen=True, kw_only=True):
    """`level` is an index into the levels of the comparison."""

    level: int
    value: float
    text: str  # with its unit


class ReferenceLine(Payload, frozen=True, kw_only=True):
    """Published values, or those of a baseline run. It is not a series: nothing is compared with it."""

    panel: int  # index
    name: str
    points: tuple[ReferencePoint, ...]


class MeansCharts(Payload, frozen=True, kw_only=True):
    comparison: Comparison
    kind: ChartKind
    logarithmic: bool  # the axis of values
    shared: bool  # all charts have the same axis of values
    ceilings: tuple[ChartCeiling, ...]
    references: tuple[ReferenceLine, ...]


class ScatterPoint(Payload, frozen=True, kw_only=True):
    level: str  # on x of the comparison
    x: float
    y: float
    x_text: str
    y_text: str


class ScatterSeries(Payload, frozen=True, kw_only=True):
    name: str
    is_baseline: bool
    points: tuple[ScatterPoint, ...]  # in the order of levels


class ScatterPanel(Payload, frozen=True, kw_only=True):
    name: str
    series: tuple[ScatterSeries, ...]


class ScatterCharts(Payload, frozen=True, kw_only=True):
    """Two metrics against each other."""

    x_label: str
    x_shown_as: ShownAs
    y_label: str
    y_shown_as: ShownAs
    logarithmic: bool  # both axes
    panels: tuple[ScatterPanel, ...]


class LatencyCharts(Payload, frozen=True, kw_only=True):
    percents: tuple[float, ...]
    nines: bool  # the axis of shares counts nines: 90, 99, 99.9 %
    series: tuple[Distribution, ...]


class TimeCharts(Payload, frozen=True, kw_only=True):
    lines: TimeLines
    logarithmic: bool
    ceilings: tuple[ChartCeiling, ...]
