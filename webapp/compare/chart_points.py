"""A chart point: one level on x in one chart. Latency distributions and time lines belong to one chart point."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from webapp.compare.baseline import baseline_of
from webapp.compare.comparison import Level
from webapp.compare.dimensions import known_dimension, label_of
from webapp.compare.grouping import Grouped
from webapp.compare.query import CompareQuery, CompareRefused
from webapp.compare.selectors import Selected
from webapp.results.reading.rows import ResultRow


@dataclass(frozen=True)
class ChartPoint:
    """The results of each series at one chart point."""

    key: str
    text: str
    series: Mapping[Level, tuple[ResultRow, ...]]
    baseline: str  # key of a series

    @property
    def result_ids(self) -> list[int]:
        return [id_ for rows in self.series.values() for row in rows for id_ in row.ids]


def chart_points(selected: Selected) -> dict[str, str]:
    """Key -> text of every chart point, in the order of panels and levels."""
    return {_key(panel, x): _text(panel, x, selected.query) for panel, x in _all(selected.grouped)}


def _all(grouped: Grouped) -> Iterator[tuple[Level, Level]]:
    measured = {(panel, x) for panel, _, x in grouped.cells}
    for panel in grouped.panels:
        yield from ((panel, x) for x in grouped.x if (panel.key, x.key) in measured)


def _key(panel: Level, x: Level) -> str:
    return f"{panel.key}|{x.key}"


def _text(panel: Level, x: Level, query: CompareQuery) -> str:
    level = x.text if not known_dimension(query.x).numeric else f"{label_of(query.x)} {x.text}"
    return f"{panel.text} · {level}" if panel.text else level


def chart_point(selected: Selected, key: str = "") -> ChartPoint:
    """The chart point with this key. Without a key, the last one with the most series in the first chart.

    Raises CompareRefused if the key is unknown, or if no results match.
    """
    grouped, known = selected.grouped, list(_all(selected.grouped))
    if not known:
        raise CompareRefused("compare_no_results", "No results match. Change the filters.")
    chosen = next(((panel, x) for panel, x in known if _key(panel, x) == key), None)
    if key and chosen is None:
        message = f"chart_point={key}: nothing was measured at this chart point. Choose another one."
        raise CompareRefused("compare_chart_point_unknown", message)
    panel, x = chosen or _fullest(grouped, known)
    rows = {series: grouped.cells.get((panel.key, series.key, x.key)) for series in grouped.series}
    return ChartPoint(
        _key(panel, x),
        _text(panel, x, selected.query),
        {series: tuple(found) for series, found in rows.items() if found},
        baseline_of(selected.query, grouped).key,
    )


def _fullest(grouped: Grouped, known: list[tuple[Level, Level]]) -> tuple[Level, Level]:
    def count(point: tuple[Level, Level]) -> int:
        return sum((point[0].key, series.key, point[1].key) in grouped.cells for series in grouped.series)

    first = [point for point in known if point[0] == known[0][0]]
    most = max(map(count, first))
    return [point for point in first if count(point) == most][-1]
