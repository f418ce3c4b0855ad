"""A JSON object in fio's output, decoded into the used fields.

fio 2.x names latencies `clat` and means µs, fio 3.x names them `clat_ns`. fio 2.x prints `io_bytes` in KiB
(stat.c: `io_bytes >> 10`), fio 3.x in bytes with `io_kbytes` beside it. `bw` is always KiB/s.
"""

import math
from collections.abc import Sequence

import msgspec

from webapp.imports.measurement import Latency
from webapp.imports.values import US, ImportRefused
from worker.contract.packing import Histogram, merge


class Printed(msgspec.Struct, frozen=True):
    """A latency as fio printed it. `percentile` and `bins` have texts as keys; fio 2.x prints unused percentiles as
    "0.00": 0."""

    min: float | None = None
    max: float | None = None
    mean: float | None = None
    stddev: float | None = None
    N: int | None = None
    percentile: dict[str, float | None] = {}
    bins: dict[str, int] = {}


class Flow(msgspec.Struct, frozen=True):
    """One direction of one job, or of a group of jobs."""

    io_bytes: int = 0
    io_kbytes: int | None = None
    bw_bytes: int | None = None
    bw: float | None = None
    iops: float | None = None
    runtime: int = 0  # ms
    total_ios: int | None = None
    slat_ns: Printed | None = None
    clat_ns: Printed | None = None
    lat_ns: Printed | None = None
    slat: Printed | None = None
    clat: Printed | None = None
    lat: Printed | None = None

    @property
    def active(self) -> bool:
        return bool(self.io_bytes or self.total_ios)


class Job(msgspec.Struct, frozen=True):
    """An entry of `jobs` or `client_stats`."""

    jobname: str = ""
    groupid: int | None = None  # jobs of one group run at the same time
    error: int = 0
    hostname: str = ""
    elapsed: int | None = None  # s since fio began, at the time of the object
    options: dict[str, str] = msgspec.field(name="job options", default={})
    read: Flow = Flow()
    write: Flow = Flow()
    trim: Flow = Flow()
    mixed: Flow = Flow()  # unified_rw_reporting
    usr_cpu: float | None = None  # percent of `job_runtime`
    sys_cpu: float | None = None
    job_runtime: int | None = None  # ms, the sum over the processes


class Document(msgspec.Struct, frozen=True):
    """One object of fio: the state at its time, cumulative since the start."""

    version: str = msgspec.field(name="fio version", default="")
    timestamp: int | None = None
    timestamp_ms: int | None = None
    global_options: dict[str, str] = msgspec.field(name="global options", default={})
    jobs: list[Job] = []
    client_stats: list[Job] = []  # of `fio --client`

    @property
    def is_result(self) -> bool:
        return bool(self.jobs or self.client_stats)


def decode(text: str) -> Document:
    """One JSON object, also one that is not of fio. Raises ImportRefused and MsgspecError."""
    try:
        return msgspec.json.decode(text, type=Document)
    except RecursionError as error:
        raise ImportRefused("The JSON is nested too deeply.") from error
    except UnicodeEncodeError as error:
        raise ImportRefused("The text has characters that are not Unicode.") from error


# Latencies of fio's jobs, combined as fio combines them in a group, and its tables of bins.

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
