"""Latency distributions at one chart point: all I/Os of a series' repeats, from their stored histograms.

Merging is exact: fio uses the same buckets for every repeat, so counts add up. A bucket is at most 1/64 wide, so a
percentile is off by at most that much (worker.contract.histogram). The last bucket holds everything above 17 s: the
curve rises there at the largest latency.
"""

from collections.abc import Mapping

from msgspec.structs import replace

from webapp.compare.blocks import points_of, same_levels
from webapp.compare.chart_points import ChartPoint
from webapp.compare.comparison import Level, Struct
from webapp.results.reading.rows import ResultRow, read_histograms
from worker.contract.histogram import LAST_BUCKET_NS, Histogram, merge, supported_percentile
from worker.contract.packing import unpack

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
    same_levels: bool = True  # its workloads cover the same levels as those of the baseline


def distributions(point: ChartPoint) -> tuple[Distribution, ...]:
    """One for each series that has a histogram. One query."""
    stored = read_histograms(point.result_ids)
    points = {series.key: points_of(rows) for series, rows in point.series.items()}
    baseline = points.get(point.baseline)
    found = [_distribution(series, rows, stored, point.baseline) for series, rows in point.series.items()]
    alike = [baseline is None or same_levels(own, baseline) for own in points.values()]
    return tuple(replace(each, same_levels=same) for each, same in zip(found, alike, strict=True) if each.ios)


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
    kept = _thinned(len(shares))
    return tuple(whole.latency_ns[n] for n in kept), tuple(shares[n] for n in kept)


def _thinned(count: int) -> list[int]:
    if count <= MAX_POINTS:
        return list(range(count))
    return sorted({round(n * (count - 1) / (MAX_POINTS - 1)) for n in range(MAX_POINTS)})
