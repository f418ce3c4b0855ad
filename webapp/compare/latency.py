"""Distributions of latency at one place: all I/Os of a series' repeats taken together, from their stored histograms.

Merging is exact: fio counts every repeat into the same buckets, so counts add up. A bucket is at most 1/64 wide,
which is how far a percentile may be off (worker.contract.histogram).
"""

import math
from collections.abc import Mapping

from webapp.compare.dimensions import Level, Row
from webapp.compare.places import PlaceRows
from webapp.compare.structs import Struct
from webapp.results.models import Result
from worker.contract.histogram import LEAST_COUNT, Histogram, merge
from worker.contract.packing import unpack

PERCENTS = (50.0, 90.0, 95.0, 99.0, 99.9, 99.99, 99.999)
MOST_POINTS = 240


class Distribution(Struct, frozen=True, kw_only=True):
    """Of one series. `steps` go with PERCENTS; None where there are too few I/Os for that percentile."""

    name: str
    is_baseline: bool
    repeats: int
    ios: int
    steps_ns: tuple[int | None, ...]
    cdf_ns: tuple[int, ...]
    cdf_shares: tuple[float, ...]  # of the I/Os that took at most as long


def least_count(percent: float) -> int:
    """How many I/Os a percentile takes: ten beyond it, 10 / (1 - q)."""
    return LEAST_COUNT.get(percent, math.ceil(round(10 / (1 - percent / 100), 6)))


def distributions(place: PlaceRows) -> tuple[Distribution, ...]:
    """Of each series at the place that has a histogram. One query."""
    stored = dict(Result.objects.filter(id__in=place.ids).values_list("id", "latency"))
    made = [_distribution(series, rows, stored, place.baseline) for series, rows in place.series.items()]
    return tuple(one for one in made if one.ios)


def _distribution(
    series: Level, rows: tuple[Row, ...], stored: Mapping[int, bytes | memoryview], baseline: str
) -> Distribution:
    whole = merge(unpack(stored[row.id]) for row in rows if row.id in stored)
    latencies, shares = _cumulative(whole)
    return Distribution(
        name=series.text,
        is_baseline=series.key == baseline,
        repeats=len(rows),
        ios=whole.total,
        steps_ns=tuple(_step(whole, percent) for percent in PERCENTS),
        cdf_ns=latencies,
        cdf_shares=shares,
    )


def _step(whole: Histogram, percent: float) -> int | None:
    return whole.percentile(percent) if whole.total >= least_count(percent) else None


def _cumulative(whole: Histogram) -> tuple[tuple[int, ...], tuple[float, ...]]:
    """The distribution at its buckets; of very many every n-th, each still exact, and the last."""
    total, seen, shares = whole.total, 0, []
    for count in whole.counts:
        seen += count
        shares.append(seen / total)
    kept = _thinned(len(shares))
    return tuple(whole.latency_ns[n] for n in kept), tuple(shares[n] for n in kept)


def _thinned(count: int) -> list[int]:
    if count <= MOST_POINTS:
        return list(range(count))
    return sorted({round(n * (count - 1) / (MOST_POINTS - 1)) for n in range(MOST_POINTS)})
