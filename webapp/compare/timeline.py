"""Samples of several trials over one time axis, from the start of the measured part (ramps are not recorded).

The axis has seconds. A sample counts in each second by the share of its length that lies in it; a second that no sample
covers has no value. A second of a trial with several targets covers all its streams, each from its own start: rates are
added up, and percentiles are those of all I/Os of the samples that end in the second. Rates of a mix's directions are
added up too.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import ceil
from statistics import fmean
from typing import Any
from uuid import UUID

from webapp.compare.chart_points import ChartPoint
from webapp.compare.comparison import Struct
from webapp.compare.query import CompareRefused
from webapp.results.metrics import METRICS
from webapp.results.models import Result, Sample
from worker.contract.histogram import Histogram, merge, supported_percentile
from worker.contract.packing import unpack

MAX_SAMPLES = 60_000
MAX_POINTS = 600  # of a line; a longer line is binned
MIN_COVERED_MS = 500  # of a second, or it has no rate: the end of a trial
Line = tuple[float | None, ...]
_Row = tuple[Any, ...]  # result id or None, attempt id, stream, direction, offset_ms, length_ms, the quantity


class SeriesLines(Struct, frozen=True, kw_only=True):
    """Each repeat and their mean, one value per bin; None without data or with too few I/Os for a percentile."""

    name: str
    is_baseline: bool
    repeats: tuple[Line, ...]
    mean: Line


class TimeLines(Struct, frozen=True, kw_only=True):
    """`metric` is the closest metric that samples have; it may differ from the comparison's metric."""

    metric: str
    label: str
    shown_as: str
    bin_s: int
    bin_text: str  # the value of a bin in words, "" for single seconds
    series: tuple[SeriesLines, ...]


@dataclass(frozen=True)
class _Quantity:
    metric: str
    column: str  # of Sample
    is_rate: bool
    percent: float = 0.0  # of a percentile


# The sample column for each metric: rates, and three percentiles.
_IOPS = _Quantity("iops", "ios", True)
_BYTES = _Quantity("bytes_per_s", "bytes", True)
_P50 = _Quantity("latency_p50", "p50_ns", False, 50.0)
_P99 = _Quantity("latency_p99", "p99_ns", False, 99.0)
_P999 = _Quantity("latency_p999", "p999_ns", False, 99.9)
_OF_METRIC = {
    "iops": _IOPS, "bytes_per_s": _BYTES, "latency_mean": _P50, "latency_min": _P50, "latency_p50": _P50,
    "latency_p999": _P999,
}  # fmt: skip


def time_lines(point: ChartPoint, metric: str) -> TimeLines:
    """Two queries, plus one for each trial with several streams if the metric is a percentile.

    Raises CompareRefused if there are too many seconds to draw.
    """
    quantity = _OF_METRIC.get(metric, _P99)
    seconds = _seconds(point, quantity)
    longest = max((len(line) for line in seconds.values()), default=0)
    bin_s = max(1, ceil(longest / MAX_POINTS))
    binned = {id_: _binned(line, bin_s, quantity) for id_, line in seconds.items()}
    made = []
    for series, rows in point.series.items():
        repeats = tuple(binned[row.id] for row in rows if row.id in binned)
        made.append(
            SeriesLines(
                name=series.text, is_baseline=series.key == point.baseline, repeats=repeats, mean=_mean(repeats)
            )
        )
    known = METRICS[quantity.metric]
    return TimeLines(
        metric=known.key, label=known.label, shown_as=known.shown_as, bin_s=bin_s, bin_text=_bin_text(bin_s, quantity),
        series=tuple(made),
    )  # fmt: skip


def _bin_text(bin_s: int, quantity: _Quantity) -> str:
    if bin_s == 1:
        return ""
    return f"{'the mean' if quantity.is_rate else 'the worst second'} of each {bin_s} s"


def _seconds(point: ChartPoint, quantity: _Quantity) -> Mapping[int, Line]:
    """Result id -> a value for each second."""
    columns = ("stream_run__attempt_id", "direction", "id")
    row_of = {id_: row.id for each in point.series.values() for row in each for id_ in row.ids}
    results = {tuple(key): row_of[id_] for *key, id_ in Result.objects.filter(id__in=row_of).values_list(*columns)}
    found = Sample.objects.filter(attempt_id__in={key[0] for key in results}).order_by("offset_ms")
    names = ("attempt_id", "stream", "direction", "offset_ms", "length_ms", quantity.column)
    rows = list(found.values_list(*names)[: MAX_SAMPLES + 1])
    if len(rows) > MAX_SAMPLES:
        raise CompareRefused(
            "compare_too_many", f"More than {MAX_SAMPLES:,} seconds of samples. Choose fewer repeats, runs or series."
        )
    if quantity.is_rate:
        values = _rates((results.get((row[0], row[2])), *row) for row in rows)
    else:
        values = _worst((results.get((row[0], row[2])), *row) for row in rows if row[1] == 0)
        several = {row[0] for row in rows if row[1] > 0}
        for (attempt, direction), id_ in results.items():
            if attempt in several:
                values[id_] = _percentiles(attempt, direction, quantity)
    return {id_: _as_line(line) for id_, line in values.items() if line}


def _rates(samples: Iterable[_Row]) -> dict[int, dict[int, float | None]]:
    """Result id -> second -> rate, summed over streams and directions."""
    counted: dict[tuple[Any, ...], dict[int, tuple[float, int]]] = defaultdict(dict)
    for id_, _attempt, stream, direction, offset_ms, length_ms, count in samples:
        if id_ is not None:
            line = counted[id_, stream, direction]
            for second, covered_ms in _seconds_under(offset_ms, length_ms):
                before, covered_before_ms = line.get(second, (0.0, 0))
                line[second] = (before + count * covered_ms / length_ms, covered_before_ms + covered_ms)
    values: dict[int, dict[int, float | None]] = defaultdict(dict)
    for (id_, *_), line in counted.items():
        for second, (count, covered_ms) in line.items():
            if covered_ms >= MIN_COVERED_MS:
                values[id_][second] = (values[id_].get(second) or 0.0) + count * 1000 / covered_ms
    return values


def _seconds_under(offset_ms: int, length_ms: int) -> Iterator[tuple[int, int]]:
    """The seconds that a sample overlaps, and for how many ms."""
    begin_ms = offset_ms - length_ms
    for second in range(begin_ms // 1000, -(-offset_ms // 1000)):
        yield second, min(offset_ms, 1000 * (second + 1)) - max(begin_ms, 1000 * second)


def _worst(samples: Iterable[_Row]) -> dict[int, dict[int, float | None]]:
    """Result id -> second -> the greatest value of the samples that end in it."""
    values: dict[int, dict[int, float | None]] = defaultdict(dict)
    for id_, _attempt, _stream, _direction, offset_ms, _length_ms, value in samples:
        if id_ is not None:
            line, second = values[id_], _second_of(offset_ms)
            known = [each for each in (line.get(second), value) if each is not None]
            line[second] = max(known, default=None)
    return values


def _second_of(offset_ms: int) -> int:
    """The second that holds the end of a sample. One that ends a little late still belongs to the second before."""
    return max(0, round(offset_ms / 1000) - 1)


def _percentiles(attempt: UUID, direction: str, quantity: _Quantity) -> dict[int, float | None]:
    """Percentiles over all streams, for each second, from their histograms."""
    histograms: dict[int, list[Histogram]] = defaultdict(list)
    found = Sample.objects.filter(attempt=attempt, direction=direction)
    for offset_ms, packed in found.values_list("offset_ms", "latency"):
        histograms[_second_of(offset_ms)].append(unpack(bytes(packed)))
    return {second: supported_percentile(merge(each), quantity.percent) for second, each in histograms.items()}


def _as_line(line: Mapping[int, float | None]) -> Line:
    return tuple(line.get(second) for second in range(max(line) + 1))


def _binned(line: Line, bin_s: int, quantity: _Quantity) -> Line:
    """The mean of rates, the maximum of percentiles: a mean of percentiles is not a percentile."""
    if bin_s == 1:
        return line
    combine = fmean if quantity.is_rate else max
    made: list[float | None] = []
    for start in range(0, len(line), bin_s):
        known = [value for value in line[start : start + bin_s] if value is not None]
        made.append(combine(known) if known else None)
    return tuple(made)


def _mean(repeats: Sequence[Line]) -> Line:
    """The mean of the repeats that have a value, for each bin."""
    longest = max((len(line) for line in repeats), default=0)
    made: list[float | None] = []
    for n in range(longest):
        known = [value for line in repeats if n < len(line) and (value := line[n]) is not None]
        made.append(fmean(known) if known else None)
    return tuple(made)
