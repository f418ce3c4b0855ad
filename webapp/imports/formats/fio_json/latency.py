"""Latencies of fio's jobs, combined as fio combines them in a group, and its tables of bins."""

import math
from collections.abc import Sequence

from webapp.imports.errors import ImportRefused
from webapp.imports.formats.fio_json.document import Flow
from webapp.imports.formats.fio_json.document import Latency as Printed
from webapp.imports.measurement import Latency
from webapp.imports.values import US
from worker.contract.packing import Histogram, merge

_KINDS = ("lat", "clat")
_MAX_BINS = 64 * 40 + 3  # and three sizes of fio 2.x
_BITS_KEY = "FIO_IO_U_PLAT_BITS"


def latency(flows: Sequence[Flow]) -> tuple[Latency, tuple[str, ...]]:
    """Total latency if it has percentiles, otherwise completion latency if that has some, otherwise what there is."""
    for wanted in (_has_distribution, has_mean):
        for kind in _KINDS:
            parts = [printed(flow, kind) for flow in flows]
            if any(wanted(part) for part, _ in parts):
                return _combined(kind, parts, [flow.total_ios or 1 for flow in flows])
    return Latency(), ()


def printed(flow: Flow, kind: str) -> tuple[Printed | None, float]:
    """The latency and its unit in ns."""
    in_ns: Printed | None = getattr(flow, f"{kind}_ns")
    return (in_ns, 1) if in_ns is not None else (getattr(flow, kind), US)


def _has_distribution(part: Printed | None) -> bool:
    return has_mean(part) and part is not None and bool(part.bins or any(part.percentile.values()))


def has_mean(part: Printed | None) -> bool:
    return part is not None and bool(part.max or part.mean)


def _combined(
    kind: str, parts: Sequence[tuple[Printed | None, float]], ios: Sequence[int]
) -> tuple[Latency, tuple[str, ...]]:
    known = [(part, unit, part.N or n) for (part, unit), n in zip(parts, ios, strict=True) if part and has_mean(part)]
    histograms = [_histogram(part, unit) for part, unit, _ in known]
    histogram = merge(histograms) if all(histogram.counts for histogram in histograms) else Histogram()
    mean, stddev = _mean_and_stddev(
        [((part.mean or 0) * unit, (part.stddev or 0) * unit, n) for part, unit, n in known]
    )
    first, unit, _ = known[0]
    notes: tuple[str, ...] = ()
    if len(known) == 1:
        percentiles = _percentiles(first, unit)
    else:
        percentiles, notes = _merged_percentiles(first, histogram)
    latency = Latency(
        kind=kind,
        min_ns=min(((part.min or 0) * unit for part, unit, _ in known), default=None),
        mean_ns=mean,
        max_ns=max(((part.max or 0) * unit for part, unit, _ in known), default=None),
        stddev_ns=stddev,
        percentiles=percentiles,
        percentile_step_ns=unit if unit > 1 else 0,
        histogram=histogram,
    )
    return latency, notes


def _percentiles(part: Printed, unit: float) -> dict[float, float]:
    values: dict[float, float] = {}
    for text, value in part.percentile.items():
        try:
            percent = float(text)
        except ValueError:
            continue
        if 0 < percent <= 100 and value is not None:  # fio 2.x fills its list with 0.00
            values[percent] = value * unit
    return values


def _merged_percentiles(first: Printed, histogram: Histogram) -> tuple[dict[float, float], tuple[str, ...]]:
    if not histogram.counts:
        return {}, ("The jobs were reported one by one without histograms, so there are no percentiles of the whole.",)
    wanted = _percentiles(first, 1)
    return {percent: float(histogram.percentile(percent) or 0) for percent in wanted}, ()


def _mean_and_stddev(parts: Sequence[tuple[float, float, int]]) -> tuple[float, float]:
    """Of the I/Os of all parts, each (mean, standard deviation, number of I/Os)."""
    if len(parts) == 1:
        return parts[0][:2]
    total = sum(n for _, _, n in parts)
    mean = sum(mean * n for mean, _, n in parts) / total
    squares = sum(stddev**2 * max(0, n - 1) + n * (part_mean - mean) ** 2 for part_mean, stddev, n in parts)
    return mean, math.sqrt(squares / (total - 1)) if total > 1 else 0.0


def _histogram(part: Printed, unit: float) -> Histogram:
    """json+ of fio 3.x has a latency in ns for each bin, json+ of fio 2.x the number of the bin in fio's table."""
    if len(part.bins) > _MAX_BINS:
        raise ImportRefused(f"A histogram has {len(part.bins):,} bins, more than fio has.")
    numbered = _BITS_KEY in part.bins
    counts: dict[int, int] = {}
    for text, count in part.bins.items():
        if not text.isascii() or not text.isdigit() or len(text) > 18 or not count:
            continue
        if numbered and int(text) >= 64 * 40:
            raise ImportRefused(f"A histogram has a bin {int(text):,}, more than fio has.")
        latency = round(bin_value(int(text)) * unit) if numbered else int(text)
        counts[latency] = counts.get(latency, 0) + count
    ordered = sorted(counts)
    return Histogram(latency_ns=tuple(ordered), counts=tuple(counts[latency_ns] for latency_ns in ordered))


def bin_value(index: int) -> float:
    """The middle of a bin of fio's table (stat.c, plat_idx_to_val with FIO_IO_U_PLAT_BITS = 6)."""
    if index < 128:
        return float(index)
    shift = (index >> 6) - 1
    return float((1 << (shift + 6)) + (index % 64 + 0.5) * (1 << shift))
