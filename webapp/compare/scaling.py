"""Scaling over several targets at once: the ratio to one target alone, and the share of linear scaling."""

from collections.abc import Iterator

from webapp.compare.comparison import Cell, Comparison, Series
from webapp.compare.sentences import RATIO, interval
from webapp.compare.statistics import ratio
from webapp.core.formatting import ratio as as_ratio
from webapp.plans.factors import AT_ONCE
from webapp.results.metrics import METRICS


def scaling(comparison: Comparison) -> list[tuple[str, str]]:
    """(name of the chart, sentence) for each series that was measured with one target and with several at once."""
    if comparison.x != AT_ONCE or not METRICS[comparison.metric].adds_up:
        return []
    said = [(panel.name, _sentence(comparison, series)) for panel in comparison.panels for series in panel.series]
    return [(panel, sentence) for panel, sentence in said if sentence]


def _sentence(comparison: Comparison, series: Series) -> str:
    """`4 KiB: against the IOPS of one target alone, 2 at once reach ×1.91 (95 % CI …; 96 % of linear scaling).`"""
    cells = {comparison.levels[cell.level].number or 0.0: cell for cell in series.cells}
    alone = cells.get(1.0)
    parts = list(_parts(cells, alone)) if alone and alone.summary.mean > 0 else []
    name = f"{series.name}: " if comparison.series_by else ""
    against = f"against the {comparison.metric_label} of one target alone, {', '.join(parts)}." if parts else ""
    return f"{name}{against if name else against[:1].upper() + against[1:]}" if against else ""


def _parts(cells: dict[float, Cell], alone: Cell) -> Iterator[str]:
    for count, cell in sorted(cells.items()):
        found = ratio(cell.summary, alone.summary)
        if count > 1 and found:
            sure = f"95 % CI {known}; " if (known := interval(found, RATIO)) else ""
            share = f"{100 * found.value / count:.0f} % of linear scaling"
            yield f"{count:g} at once reach {as_ratio(found.value)} ({sure}{share})"
