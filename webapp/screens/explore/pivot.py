"""The tables of a comparison: levels of x down, series across, each with its ratio to the baseline."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from msgspec.structs import replace

from webapp.analysis.answer import Cell, Comparison, Panel, Series
from webapp.analysis.trial_metrics import metric_named
from webapp.analysis.words import unclear
from webapp.core.formatting import Scale
from worker.contract.histogram import BEYOND, LAST_BUCKET_NS


@dataclass(frozen=True)
class PivotCell:
    """One series at one level. `value` and `ratio` sort the table."""

    value: float
    text: str
    spread: str  # the interval in the same unit, and n
    doubts: tuple[str, ...]
    ratio: float | None
    ratio_text: str  # "" for the baseline and without a ratio
    interval_text: str
    mark: str  # better | worse | muted
    why_unclear: str


@dataclass(frozen=True)
class PivotRow:
    order: int  # place of the level on x
    level: str
    cells: tuple[tuple["PivotSeries", PivotCell | None], ...]


@dataclass(frozen=True)
class PivotSeries:
    """Head of one or two columns."""

    name: str
    is_baseline: bool
    column: int  # index of its first column in the table


@dataclass(frozen=True)
class Pivot:
    """One chart as a table."""

    name: str  # "" if it is the only one
    value_label: str  # the metric and its unit
    series: tuple[PivotSeries, ...]
    rows: tuple[PivotRow, ...]


@dataclass(frozen=True)
class Doubted:
    """A number with reasons not to trust it."""

    place: str  # panel, level and series
    reasons: tuple[str, ...]


def pivots_of(comparison: Comparison, most: int = 0) -> tuple[Pivot, ...]:
    """One for each panel, all in the same unit; with `most`, one for each `most` series of a panel."""
    metric = metric_named(comparison.metric)
    scale = metric.scale([cell.summary.mean for cell in _cells(comparison)])
    name, unit = comparison.metric_label, metric.unit_text(scale)
    label = unit if unit.endswith(name) else f"{name}, {unit}" if unit else name
    parts = (part for panel in comparison.panels for part in _parts(panel, most))
    return tuple(_pivot(part, comparison, scale, label) for part in parts)


def _parts(panel: Panel, most: int) -> Iterator[Panel]:
    if not most or len(panel.series) <= most:
        yield panel
        return
    for first in range(0, len(panel.series), most):
        series = panel.series[first : first + most]
        words = f"series {first + 1} to {first + len(series)} of {len(panel.series)}"
        yield replace(panel, name=", ".join(filter(None, (panel.name, words))), series=series)


def doubted_of(comparison: Comparison) -> tuple[Doubted, ...]:
    return tuple(
        Doubted(", ".join(filter(None, (panel.name, comparison.levels[cell.level].text, series.name))), cell.doubts)
        for panel in comparison.panels
        for series in panel.series
        for cell in series.cells
        if cell.doubts
    )


def _cells(comparison: Comparison) -> Iterator[Cell]:
    return (cell for panel in comparison.panels for series in panel.series for cell in series.cells)


def _pivot(panel: Panel, comparison: Comparison, scale: Scale, label: str) -> Pivot:
    by_level = [{cell.level: cell for cell in series.cells} for series in panel.series]
    used = sorted({level for cells in by_level for level in cells})
    heads = tuple(_heads(panel.series))

    def row(level: int) -> PivotRow:
        cells = [_cell(own[level], scale) if level in own else None for own in by_level]
        return PivotRow(level, comparison.levels[level].text, tuple(zip(heads, cells, strict=True)))

    return Pivot(panel.name, label, heads, tuple(map(row, used)))


def _heads(series: Sequence[Series]) -> Iterator[PivotSeries]:
    column = 1
    for one in series:
        yield PivotSeries(one.name, one.is_baseline, column)
        column += 1 if one.is_baseline else 2


def _cell(cell: Cell, scale: Scale) -> PivotCell:
    summary, against = cell.summary, cell.against_baseline
    unsure = against is None or against.better is None
    return PivotCell(
        value=summary.mean,
        text=_text(summary.mean, scale),
        spread=f"{_interval(summary.low, summary.high, scale)}n = {summary.n}",
        doubts=cell.doubts,
        ratio=against.ratio.value if against else None,
        ratio_text=against.text if against else "",
        interval_text=against.interval_text if against else "",
        mark="muted" if against is None or unsure else "better" if against.better else "worse",
        why_unclear=unclear(against) if against and unsure else "",
    )


def _interval(low: float | None, high: float | None, scale: Scale) -> str:
    return "" if low is None or high is None else f"{_text(low, scale)} to {_text(high, scale)}, "


def _text(value: float, scale: Scale) -> str:
    """fio's last bucket holds everything above 17 s."""
    return BEYOND if scale.unit.endswith("s") and round(value) == LAST_BUCKET_NS else scale.text(value)
