"""Scaling over several targets or hosts at once: the ratio to one alone, and the share of linear scaling."""

from collections.abc import Iterator, Mapping

from webapp.compare.blocks import Measured
from webapp.compare.comparison import Level
from webapp.compare.contrasts import contrast
from webapp.compare.grouping import CellKey, Grouped
from webapp.compare.query import CompareQuery
from webapp.compare.sentences import RATIO, certainty
from webapp.core.formatting import ratio as as_ratio
from webapp.plans.factors import AT_ONCE, HOSTS_AT_ONCE
from webapp.results.metrics import Metric

_ONE = {AT_ONCE: "target", HOSTS_AT_ONCE: "host"}


def scaling(
    panel: Level, query: CompareQuery, metric: Metric, grouped: Grouped, cells: Mapping[CellKey, Measured]
) -> tuple[str, ...]:
    """A sentence for each series that was measured with one target and with several at once:
    `4 KiB: against the IOPS of one target alone, 2 at once reach ×1.91 (95 % CI …; 96 % of linear scaling).`"""
    if query.x not in _ONE or not metric.adds_up:
        return ()
    said = []
    for series in grouped.series:
        of_series = {x.number or 0.0: cells.get((panel.key, series.key, x.key)) for x in grouped.x}
        usable = {count: cell for count, cell in of_series.items() if cell and cell.positive and cell.balanced}
        if parts := list(_parts(usable)):
            name = f"{series.text}: a" if query.series else "A"
            said.append(f"{name}gainst the {metric.label} of one {_ONE[query.x]} alone, {', '.join(parts)}.")
    return tuple(said)


def _parts(cells: Mapping[float, Measured]) -> Iterator[str]:
    for count, cell in sorted(cells.items()):
        if count > 1 and 1.0 in cells and cell.same_points(cells[1.0]):
            found = contrast([(cell, cells[1.0])])
            ratio = found.ratio
            share = f"{100 * ratio.value / count:.0f} % of linear scaling"
            yield f"{count:g} at once reach {as_ratio(ratio.value)} ({certainty(ratio, found.n, RATIO)}; {share})"
