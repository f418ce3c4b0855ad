"""Sparklines of trends as SVG. All of one list share a relative scale, so that flat means flat. Pure."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Self

from webapp.pictures import axes
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
        step=round(points[cut][0] - reach / 2, 1) if summary.step else None,
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
    return f"{runs}, a step of {100 * (summary.step.ratio - 1):+.0f} % at run {summary.step.run + 1}"
