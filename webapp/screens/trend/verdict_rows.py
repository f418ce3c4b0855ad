"""The rows of a verdict in words, for cards and the page Acceptance test."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from webapp.analysis.verdicts import Row
from webapp.core import formatting
from webapp.results.metrics import Metric
from webapp.results.reading.content import Point
from webapp.screens import points as words

MAX_DIGITS = 8


@dataclass(frozen=True)
class ShownRow:
    """`change` and `interval` are in percent; `ratio` is the same as ×0.950."""

    row: Row
    target: str
    levels: list[str]
    direction: str
    baseline: str
    value: str
    ratio: str
    change: str
    interval: str
    limit: str


def shown_row(row: Row, points: Mapping[str, Point], names: Sequence[str], target: str = "") -> ShownRow:
    """`points` has the point of each cell; `names` are the factors that are shown."""
    key, direction = row.cell or ("", "")
    ratio = row.ratio
    interval = ""
    if ratio and ratio.low is not None and ratio.high is not None:
        interval = f"{percent_change(ratio.low)} to {percent_change(ratio.high)}"
    return ShownRow(
        row,
        target,
        words.levels(points[key], names) if key else [],
        direction,
        row.metric.format(row.baseline),
        row.metric.format(row.value),
        _ratio_text(ratio.value, row.limit) if ratio else "–",
        _change_text(ratio.value, row.limit) if ratio else "–",
        interval or "–",
        limit_text(row.metric, row.tolerance),
    )


def _ratio_text(ratio: float, limit: float) -> str:
    """×0.947: a decimal more than elsewhere, because a row fails at ×0.949 and passes at ×0.950. ×0.94996 has as many
    as tell it from the limit."""
    if ratio >= 10:
        return formatting.ratio(ratio)
    digits = next((n for n in range(3, MAX_DIGITS) if round(ratio, n) != round(limit, n)), 3)
    return f"×{ratio:.{digits}f}"


def _change_text(ratio: float, limit: float) -> str:
    """−25.04 %, if the limit is −25 %: else as many digits as elsewhere."""
    if percent_change(ratio) != percent_change(limit):
        return percent_change(ratio)
    texts = [tuple(f"{100 * (value - 1):+.{n}f}" for value in (ratio, limit)) for n in range(1, MAX_DIGITS)]
    longer = next((own for own, other in texts if own != other), "")
    return f"{longer.replace('-', '−')} %" if longer else percent_change(ratio)


def limit_text(metric: Metric, tolerance: float) -> str:
    """The tolerance with the sign of a change for the worse: −5 %."""
    return f"{'+' if metric.lower_is_better else '−'}{tolerance:g} %"


def percent_change(ratio: float) -> str:
    """−12.3 %, +4.00 %."""
    return f"{'+' if ratio > 1 else ''}{formatting.percent(100 * (ratio - 1))}"
