"""Results over one time axis, from the start of the measured part (ramps are not recorded).

A long span is drawn in bins. Each bin keeps its lowest and highest second, so no peak and no stall disappears.
"""

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import ceil, isnan

import numpy as np

from webapp.compare.blocks import points_of
from webapp.compare.chart_points import ChartPoint
from webapp.compare.comparison import Level, Struct
from webapp.compare.seconds import Quantity, Seconds, Span, check_length, seconds_of
from webapp.results.metrics import METRICS
from webapp.results.reading.rows import ResultRow

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
    shown_as: str
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
_IOPS = Quantity("iops", "ios", "iops", True)
_BYTES = Quantity("bytes_per_s", "bytes", "bytes_per_s", True)
_P50 = Quantity("latency_p50", "p50_ns", "", False, 50.0)
_P99 = Quantity("latency_p99", "p99_ns", "", False, 99.0)
_P999 = Quantity("latency_p999", "p999_ns", "", False, 99.9)
_LOGGED_LATENCY = Quantity("latency_mean", "", "latency_mean_ns", True)  # its mean over a second is a mean
_OF_METRIC = {
    "iops": _IOPS, "bytes_per_s": _BYTES, "latency_mean": _P50, "latency_min": _P50, "latency_p50": _P50,
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
