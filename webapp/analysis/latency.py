"""Chart points, and the latency distributions at one of them: all I/Os of a series' repeats, from stored histograms.

Merging is exact: fio uses the same buckets for every repeat, so counts add up. A bucket is at most 1/64 wide, so a
percentile is off by at most that much (worker.contract.packing). The last bucket holds everything above 17 s: the
curve rises there at the largest latency.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from webapp.analysis.answer import Level, Struct
from webapp.analysis.cells import Grouped
from webapp.analysis.comparing import Selected, baseline_of
from webapp.analysis.dimensions import joined, known_dimension, label_of
from webapp.analysis.question import CompareQuery, CompareRefused
from webapp.results.reading.rows import ResultRow, read_histograms
from worker.contract.packing import LAST_BUCKET_NS, Histogram, merge, supported_percentile, unpack

# A chart point: one level on x in one chart. Latency distributions and time lines belong to one chart point.


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
    return joined((panel.key, x.key), "|")


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
        {series: tuple(series_rows) for series, series_rows in rows.items() if series_rows},
        baseline_of(selected.query, grouped).key,
    )


def _fullest(grouped: Grouped, known: list[tuple[Level, Level]]) -> tuple[Level, Level]:
    def count(point: tuple[Level, Level]) -> int:
        return sum((point[0].key, series.key, point[1].key) in grouped.cells for series in grouped.series)

    first = [point for point in known if point[0] == known[0][0]]
    most = max(map(count, first))
    return [point for point in first if count(point) == most][-1]


PERCENTS = (50.0, 90.0, 95.0, 99.0, 99.9, 99.99, 99.999)
MAX_POINTS = 240


class Distribution(Struct, frozen=True, kw_only=True):
    """One series. `percentiles_ns` are those of PERCENTS; None if there are too few I/Os for that percentile."""

    name: str
    is_baseline: bool
    repeats: int
    ios: int
    kinds: tuple[str, ...]  # of latency: lat, clat
    percentiles_ns: tuple[int | None, ...]
    cdf_ns: tuple[int, ...]
    cdf_shares: tuple[float, ...]  # share of the I/Os that took at most `cdf_ns`


def distributions(point: ChartPoint) -> tuple[Distribution, ...]:
    """One for each series that has a histogram. One query."""
    stored = read_histograms(point.result_ids)
    made = (_distribution(series, rows, stored, point.baseline) for series, rows in point.series.items())
    return tuple(each for each in made if each.ios)


def _distribution(
    series: Level, rows: tuple[ResultRow, ...], stored: Mapping[int, bytes], baseline: str
) -> Distribution:
    histograms = [(row, unpack(stored[row.id])) for row in rows if row.id in stored]
    measured = [row for row, histogram in histograms if histogram.counts]
    whole = merge(histogram for _, histogram in histograms)
    latencies, shares = _cumulative(whole)
    if latencies[-1:] == (LAST_BUCKET_NS,):
        latencies = (*latencies[:-1], round(max(row.latency_max_ns or 0 for row in rows)))
    return Distribution(
        name=series.text,
        is_baseline=series.key == baseline,
        repeats=len(measured),
        ios=whole.total,
        kinds=tuple(sorted({row.latency_kind for row in measured} - {""})),
        percentiles_ns=tuple(supported_percentile(whole, percent) for percent in PERCENTS),
        cdf_ns=latencies,
        cdf_shares=shares,
    )


def _cumulative(whole: Histogram) -> tuple[tuple[int, ...], tuple[float, ...]]:
    """Latencies and shares at the buckets; at most MAX_POINTS of them, each exact, including the last."""
    total, seen, shares = whole.total, 0, []
    for count in whole.counts:
        seen += count
        shares.append(seen / total)
    places = _thinned(len(shares))
    return tuple(whole.latency_ns[n] for n in places), tuple(shares[n] for n in places)


def _thinned(count: int) -> list[int]:
    if count <= MAX_POINTS:
        return list(range(count))
    return sorted({round(n * (count - 1) / (MAX_POINTS - 1)) for n in range(MAX_POINTS)})
