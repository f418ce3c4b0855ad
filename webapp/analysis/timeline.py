"""Results over one time axis, from the start of the measured part (ramps are not recorded).

A long span is drawn in bins. Each bin keeps its lowest and highest second, so no peak and no stall disappears.
"""

import warnings
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import ceil, isnan
from typing import Any
from uuid import UUID

import numpy as np
from django.contrib.postgres.aggregates import ArrayAgg
from django.db.models import F, QuerySet
from numpy.typing import NDArray

from webapp.analysis.answer import Level, Struct
from webapp.analysis.cells import points_of
from webapp.analysis.latency import ChartPoint
from webapp.analysis.question import CompareRefused
from webapp.core.formatting import ShownAs
from webapp.plans.factors import HOSTS_AT_ONCE, STREAM
from webapp.results.metrics import METRICS
from webapp.results.models import Origin, Result, Sample
from webapp.results.reading.rows import ResultRow
from webapp.results.selectors import series_of
from worker.contract.packing import Histogram, merge, supported_percentile, unpack

# What each second of a result measured, from its samples or from the logs of an import.
#
# A sample counts in each second by the share of its length that lies in it; a second that no sample covers has no
# value. A second of a trial with several targets covers all its streams, each from its own start: rates are added up,
# and percentiles are those of all I/Os of the samples that end in the second. Rates of a mix's directions are added
# up too.

MIN_COVERED_MS = 500  # of a second, or it has no rate: the end of a trial
MAX_SECONDS = 300_000  # of all trials that are read at once
Seconds = NDArray[np.float64]  # a value for each second from the start of the span; nan without one


@dataclass(frozen=True)
class Quantity:
    metric: str
    column: str  # of Sample, "" if samples do not have it
    logged: str  # of imports.measurement.Point, "" if logs do not have it
    is_rate: bool
    percent: float = 0.0  # of a percentile


@dataclass(frozen=True)
class Span:
    """Seconds since the measured part began; without `to_s` up to the end."""

    from_s: int = 0
    to_s: int | None = None

    def length_s(self, runtime_s: float) -> float:
        """The part of a trial of this length that lies in the span."""
        return max(0.0, min(runtime_s, self.to_s or runtime_s) - self.from_s)


def seconds_of(row_of: Mapping[int, int], quantity: Quantity, span: Span) -> dict[int, Seconds]:
    """Row id -> seconds. `row_of`: result id -> the id of its row, the same for results that are added up.

    Two queries for results of runs, plus one for each trial with several streams if the quantity is a percentile; two
    for imported results. No line is longer than what was measured, whatever the span. Raises CompareRefused if there
    are too many seconds.
    """
    point = (f"point__{STREAM}", f"point__{HOSTS_AT_ONCE}")
    columns = ("stream_run__attempt_id", "stream_run__stream", *point, "origin_id", "direction", "id")
    stored = list(Result.objects.filter(id__in=row_of).order_by().values_list(*columns))
    of_trial = {
        (attempt, number if name else None, direction): row_of[id_]
        for attempt, number, name, _, _, direction, id_ in stored
        if attempt
    }
    of_trial |= _on_other_hosts({id_: row_of[id_] for *_, hosts, _, _, id_ in stored if hosts and hosts > 1})
    logs = {(origin, direction): row_of[id_] for *_, origin, direction, id_ in stored if origin}
    measured = {
        **(_measured(of_trial, quantity, span) if of_trial and quantity.column else {}),
        **(_logged(logs, quantity, span) if logs and quantity.logged else {}),
    }
    known = {id_: _trimmed(line) for id_, line in measured.items()}
    return {id_: line for id_, line in known.items() if len(line)}


def _on_other_hosts(row_of: Mapping[int, int]) -> "dict[Measured, int]":
    """All attempts of results of trials on several hosts. One query, or none."""
    if not row_of:
        return {}
    results = Result.objects.filter(id__in=row_of, trial__attempts__number=F("stream_run__attempt__number")).order_by()
    others = results.values_list("trial__attempts__id", "direction", "id")
    return {(attempt, None, direction): row_of[id_] for attempt, direction, id_ in others}


def _trimmed(line: Seconds) -> Seconds:
    """Without the seconds at the end that have no value."""
    (known,) = np.nonzero(~np.isnan(line))
    return line[: known[-1] + 1] if len(known) else line[:0]


# ---- samples


Measured = tuple[UUID, int | None, str]  # attempt, number of a stream with results of its own (else None), direction


def _measured(results: Mapping[Measured, int], quantity: Quantity, span: Span) -> dict[int, Seconds]:
    lines: dict[int, list[Seconds]] = defaultdict(list)
    several: set[UUID] = set()
    for attempt, stream, direction, *series in _seconds_series({attempt for attempt, _, _ in results}, quantity, span):
        several |= {attempt} if stream else set()
        result = results.get((attempt, stream, direction))
        id_ = results.get((attempt, None, direction)) if result is None else result
        if id_ is not None and (quantity.is_rate or stream == 0 or result is not None):
            offsets, lengths, values = (np.array(each, dtype=np.float64) for each in series)
            line = rates(offsets, lengths, values, span) if quantity.is_rate else _worst(offsets, values, span)
            lines[id_].append(line)
    made = {id_: added(each) for id_, each in lines.items()}
    if not quantity.is_rate:
        attempts: dict[tuple[int, str], list[UUID]] = defaultdict(list)
        for (attempt, stream, direction), id_ in results.items():
            if stream is None:
                attempts[id_, direction].append(attempt)
        over_streams = (key for key, each in attempts.items() if several.intersection(each))
        made |= {key[0]: _percentiles(attempts[key], key[1], quantity, span) for key in over_streams}
    return made


def _seconds_series(attempts: set[UUID], quantity: Quantity, span: Span) -> "QuerySet[Sample, tuple[Any, ...]]":
    """One row for each stream and direction: offsets, lengths and values in the order of time."""
    return (
        _samples(span)
        .filter(attempt_id__in=attempts)
        .values_list("attempt_id", "stream", "direction")
        .annotate(
            offsets=ArrayAgg("offset_ms", order_by="offset_ms"),
            lengths=ArrayAgg("length_ms", order_by="offset_ms"),
            values=ArrayAgg(quantity.column, order_by="offset_ms"),
        )
    )


def _samples(span: Span) -> QuerySet[Sample]:
    samples = Sample.objects.filter(offset_ms__gt=1000 * span.from_s).order_by()
    return samples if span.to_s is None else samples.filter(offset_ms__lt=1000 * span.to_s + F("length_ms"))


def rates(offsets: Seconds, lengths: Seconds, counts: Seconds, span: Span) -> Seconds:
    """Of samples of one stream and direction in the order of time, which end at `offsets` (ms).

    Raises CompareRefused if they are too long.
    """
    check_length(span.length_s(_last_s(offsets)))
    last_s = min(_last_s(offsets), _last_s(offsets) if span.to_s is None else span.to_s)
    edges_ms = np.maximum.accumulate(np.stack([offsets - lengths, offsets], axis=1).ravel())
    grid_ms = 1000 * np.arange(span.from_s, max(last_s, span.from_s) + 1)
    counted, covered_ms = (
        np.diff(np.interp(grid_ms, edges_ms, np.stack([each.cumsum() - each, each.cumsum()], axis=1).ravel()))
        for each in (counts, lengths)
    )
    enough = covered_ms >= MIN_COVERED_MS
    return np.where(enough, 1000 * counted / np.where(enough, covered_ms, 1), np.nan)


def check_length(seconds: float) -> None:
    """Raise CompareRefused if these are too many seconds to read at once."""
    if seconds > MAX_SECONDS:
        raise CompareRefused(
            "compare_too_many", f"More than {MAX_SECONDS:,} seconds of samples. Choose fewer repeats, runs or series."
        )


def _last_s(offsets: Seconds) -> int:
    return int(np.ceil(offsets.max() / 1000))


def _worst(offsets: Seconds, values: Seconds, span: Span) -> Seconds:
    """The greatest value of the samples that end in a second."""
    check_length(span.length_s(_last_s(offsets)))
    ends, inside = _ends(offsets, span)
    line = np.full(int(ends[inside].max(initial=-1)) + 1, np.nan)
    np.fmax.at(line, ends[inside], values[inside])
    return line


def _ends(offsets: Seconds, span: Span) -> tuple[NDArray[np.int_], NDArray[np.bool_]]:
    """The second of the span in which each sample ends, to the nearest end of a second, and whether it has one."""
    ends = np.maximum(0, np.rint(offsets / 1000).astype(int) - 1) - span.from_s
    return ends, (ends >= 0) if span.to_s is None else (ends >= 0) & (ends < span.to_s - span.from_s)


def _percentiles(attempts: Sequence[UUID], direction: str, quantity: Quantity, span: Span) -> Seconds:
    """Over all streams, for each second, from their histograms."""
    intervals = list(
        _samples(span).filter(attempt_id__in=attempts, direction=direction).values_list("offset_ms", "latency")
    )
    ends, inside = _ends(np.array([offset_ms for offset_ms, _ in intervals], dtype=np.float64), span)
    histograms: dict[int, list[Histogram]] = defaultdict(list)
    for second, is_inside, (_, packed) in zip(ends.tolist(), inside.tolist(), intervals, strict=True):
        if is_inside:
            histograms[second].append(unpack(bytes(packed)))
    line = np.full(max(histograms, default=-1) + 1, np.nan)
    for second, each in histograms.items():
        line[second] = supported_percentile(merge(each), quantity.percent) or np.nan
    return line


def added(lines: Sequence[Seconds]) -> Seconds:
    """The sum of what is known in each second."""
    longest = max(map(len, lines))
    table = np.stack([np.pad(line, (0, longest - len(line)), constant_values=np.nan) for line in lines])
    return np.where(np.isnan(table).all(axis=0), np.nan, np.nansum(table, axis=0))


# ---- logs of imports


def _logged(results: Mapping[tuple[int, str], int], quantity: Quantity, span: Span) -> dict[int, Seconds]:
    lines: dict[int, list[Seconds]] = defaultdict(list)
    length_s = 0.0  # a log may be longer than the runtime that its tool states
    origins = Origin.objects.filter(pk__in={origin for origin, _ in results}, series__isnull=False)
    for origin in origins.only("series"):
        for direction, points in series_of(origin).items():
            id_, known = results.get((origin.pk, direction)), [p for p in points if p[quantity.logged] is not None]
            if id_ is not None and known:
                length_s += span.length_s(max(point["offset_ms"] or 0 for point in known) / 1000)
                check_length(length_s)
                lines[id_].append(_of_points(known, quantity, span))
    return {id_: added(each) for id_, each in lines.items()}


def _of_points(points: Sequence[Mapping[str, float | None]], quantity: Quantity, span: Span) -> Seconds:
    """A mean of an interval counts in each of its seconds."""
    offsets, lengths, values = (
        np.array([point[name] for point in points], dtype=np.float64)
        for name in ("offset_ms", "length_ms", quantity.logged)
    )
    return rates(offsets, lengths, values * lengths / 1000, span)


MAX_POINTS = 600  # of a line; a longer line is binned
WHOLE = Span()
Line = tuple[float | None, ...]


class SeriesLines(Struct, frozen=True, kw_only=True):
    """Each repeat and their mean, one value per bin; None without data or with too few I/Os for a percentile. The mean
    is empty for several workloads. `low` and `high` are the extremes of all seconds of all repeats; they are empty if a
    bin is one second."""

    name: str
    is_baseline: bool
    repeats: tuple[Line, ...]
    mean: Line
    low: Line
    high: Line


class TimeLines(Struct, frozen=True, kw_only=True):
    """`metric` is the closest metric that samples have; it may differ from the comparison's metric."""

    metric: str
    label: str
    shown_as: ShownAs
    from_s: int  # the beginning of the first bin
    bin_s: int
    bin_text: str  # the value of a bin in words, "" for single seconds
    series: tuple[SeriesLines, ...]


@dataclass(frozen=True)
class _Bins:
    """Seconds from `from_s` on, `width_s` at a time."""

    width_s: int
    is_rate: bool

    def values(self, line: Seconds) -> Seconds:
        """The mean of rates, the maximum of percentiles: a mean of percentiles is not a percentile."""
        return self._each(line, np.nanmean if self.is_rate else np.nanmax)

    def _each(self, line: Seconds, combine: Callable[..., Seconds]) -> Seconds:
        if self.width_s == 1:
            return line
        full = np.pad(line, (0, -len(line) % self.width_s), constant_values=np.nan)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # a bin without any value is nan
            return combine(full.reshape(-1, self.width_s), axis=1)

    def extremes(self, lines: Sequence[Seconds]) -> tuple[Line, Line]:
        """The lowest and the highest second of all lines."""
        if self.width_s == 1 or not lines:
            return (), ()
        low = _together([self._each(line, np.nanmin) for line in lines], np.nanmin)
        return _as_line(low), _as_line(_together([self._each(line, np.nanmax) for line in lines], np.nanmax))

    @property
    def text(self) -> str:
        if self.width_s == 1:
            return ""
        return f"{'the mean' if self.is_rate else 'the worst second'} of each {self.width_s} s"


# What samples and logs have for each metric: rates, and three percentiles.
IOPS_OF_SECONDS = Quantity("iops", "ios", "iops", True)
_BYTES = Quantity("bytes_per_s", "bytes", "bytes_per_s", True)
_P50 = Quantity("latency_p50", "p50_ns", "", False, 50.0)
_P99 = Quantity("latency_p99", "p99_ns", "", False, 99.0)
_P999 = Quantity("latency_p999", "p999_ns", "", False, 99.9)
_LOGGED_LATENCY = Quantity("latency_mean", "", "latency_mean_ns", True)  # its mean over a second is a mean
_OF_METRIC = {
    "iops": IOPS_OF_SECONDS, "bytes_per_s": _BYTES, "latency_mean": _P50, "latency_min": _P50, "latency_p50": _P50,
    "latency_p999": _P999,
}  # fmt: skip


def time_lines(point: ChartPoint, metric: str, span: Span = WHOLE) -> TimeLines:
    """Two to four queries, plus one for each trial with several streams if the metric is a percentile.

    Raises CompareRefused if there are too many seconds to read.
    """
    rows = [row for each in point.series.values() for row in each]
    check_length(sum(span.length_s((row.runtime_ms or 0) / 1000) for row in rows))
    quantity = _quantity(rows, metric)
    seconds = seconds_of({id_: row.id for row in rows for id_ in row.ids}, quantity, span)
    longest = max(map(len, seconds.values()), default=0)
    bins = _Bins(max(1, ceil(longest / MAX_POINTS)), quantity.is_rate)
    known = METRICS[quantity.metric]
    return TimeLines(
        metric=known.key, label=known.label, shown_as=known.shown_as, from_s=span.from_s, bin_s=bins.width_s,
        bin_text=bins.text,
        series=tuple(
            _series(series, rows, [seconds[row.id] for row in rows if row.id in seconds], bins, point.baseline)
            for series, rows in point.series.items()
        ),
    )  # fmt: skip


def has_seconds(lines: TimeLines) -> bool:
    return any(value is not None for series in lines.series for line in series.repeats for value in line)


def _quantity(rows: Sequence[ResultRow], metric: str) -> Quantity:
    """Logs have mean latencies only, samples only percentiles."""
    quantity = _OF_METRIC.get(metric, _P99)
    return _LOGGED_LATENCY if not quantity.is_rate and rows and all(row.imported for row in rows) else quantity


def _series(
    series: Level, rows: Sequence[ResultRow], lines: Sequence[Seconds], bins: _Bins, baseline: str
) -> SeriesLines:
    """Trials of several workloads have no mean: no workload ran at that rate."""
    binned = [bins.values(line) for line in lines]
    low, high = bins.extremes(lines)
    are_repeats = binned and len(points_of(rows)) == 1
    return SeriesLines(
        name=series.text,
        is_baseline=series.key == baseline,
        repeats=tuple(map(_as_line, binned)),
        mean=_as_line(_together(binned, np.nanmean)) if are_repeats else (),
        low=low,
        high=high,
    )


def _together(lines: Sequence[Seconds], combine: Callable[..., Seconds]) -> Seconds:
    """Of the repeats that have a value, for each bin."""
    longest = max(map(len, lines))
    table = np.stack([np.pad(line, (0, longest - len(line)), constant_values=np.nan) for line in lines])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # a bin without any value is nan
        return combine(table, axis=0)


def _as_line(values: Seconds) -> Line:
    return tuple(None if isnan(value) else value for value in values.tolist())
