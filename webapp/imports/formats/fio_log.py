"""fio's logs: bw, iops, lat and clat (`series`), slat (`submission`), and histograms (`HistogramSum`).

A log belongs to a trial and says neither which nor what it measures: its name does (`log_name`).

The time series of a trial come from the logs of its jobs.

fio writes a file for each job. Rates (bw, iops) are summed over the jobs. Latencies are averaged over the jobs,
weighted with each job's IOPS where there are logs of IOPS. Jobs do not log at the same moments, so each row counts as
constant over its interval, and the rows are averaged over a common grid of intervals. This keeps the totals.
Units: bw is KiB/s; latencies are ns in fio 3.x and µs in 2.x.
"""

import re
import warnings
from collections.abc import Collection, Iterable, Mapping
from enum import StrEnum
from pathlib import PurePosixPath

import msgspec
import numpy as np
from numpy.typing import NDArray

from webapp.imports.formats.fio_json_document import bin_value
from webapp.imports.measurement import Point
from webapp.imports.values import KIB, MAX_CHARACTERS, US, ImportRefused
from worker.contract.items import Direction
from worker.contract.packing import Histogram

# Rows of a fio log as arrays.
#
# A row is `time ms, value[, largest value], direction, block size[, offset][, priority][, issue time ns]`. With
# `log_avg_msec` a row is the average of an interval and has the block size 0; without it a row is one I/O.
# Source: fio's iolog.c (flush_samples) and HOWTO, "Log File Formats".

Integers = NDArray[np.int64]
DIRECTIONS = (Direction.READ, Direction.WRITE, Direction.TRIM)
_ROW = re.compile(r"\d{1,18}, ?\d{1,18}(?:, ?(?:\d{1,19}|0x[0-9a-f]{1,8})){1,6}\s*")
_HISTOGRAM_ROW = re.compile(r"\d{1,18}, ?[0-2], ?\d{1,18}(?:, ?\d{1,18}){19}")
_PRIORITY = re.compile(r", 0x[0-9a-f]{1,8}")
_MAX_MS = 366 * 86_400_000
_SINCE_1970_MS = (788_918_400_000, 4_102_444_800_000)  # 1995 to 2100: times of log_unix_epoch


class Rows:
    """The columns of a log; `blocks` are 0 for averages of intervals."""

    def __init__(self, times: Integers, values: Integers, directions: Integers, blocks: Integers) -> None:
        self.times, self.values, self.directions, self.blocks = times, values, directions, blocks

    @property
    def averaged(self) -> bool:
        return not self.blocks.any()

    @property
    def since_1970(self) -> bool:
        """With log_unix_epoch."""
        return _is_since_1970(int(self.times.min()))

    def from_begin(self, begin_ms: int) -> "Rows":
        return Rows(self.times - begin_ms, self.values, self.directions, self.blocks)

    def jobs(self) -> list["Rows"]:
        """With per_job_logs=0, fio appends the averages of one job to those of the other: the times of a direction
        begin anew."""
        number = np.zeros_like(self.times)
        for code in np.unique(self.directions).tolist():
            (places,) = np.nonzero(self.directions == code)
            number[places[1:]] = np.cumsum(np.diff(self.times[places]) <= 0)
        return [self._where(number == job) for job in range(int(number.max()) + 1)]

    def of(self, direction: int) -> "Rows":
        chosen = self.directions == direction
        if chosen.all():  # as in most logs: a copy of each log of a trial needs too much memory
            return self
        return self._where(chosen)

    def _where(self, chosen: NDArray[np.bool_]) -> "Rows":
        return Rows(self.times[chosen], self.values[chosen], self.directions[chosen], self.blocks[chosen])


def sniff(head: str) -> bool:
    """Whether a text looks like a log of fio, also of histograms."""
    first = head.split("\n", 1)[0]
    return bool(_ROW.fullmatch(first) or _HISTOGRAM_ROW.match(first))


def read(text: str) -> Rows:
    """Raises ImportRefused."""
    table = numbers(text)
    columns = table.shape[1]
    if columns < 4:
        raise ImportRefused(f"The log has {columns} columns: a log of fio has at least 4.")
    place = 2
    if columns > 4 and table[:, 2].max() > 2:  # log_window_value=both: the largest value comes before the direction
        place = 3
    directions = table[:, place]
    if directions.min() < 0 or directions.max() > 2:
        raise ImportRefused("A row of the log has a direction other than 0, 1 and 2: the log is damaged.")
    first, last = int(table[:, 0].min()), int(table[:, 0].max())
    begin = first if _is_since_1970(first) else 0
    if first < 0 or last - begin > _MAX_MS or table[:, 1].min() < 0:
        raise ImportRefused("A row of the log has an impossible time or value.")
    return Rows(table[:, 0], table[:, 1], directions, table[:, place + 1])


def _is_since_1970(first_ms: int) -> bool:
    return _SINCE_1970_MS[0] <= first_ms < _SINCE_1970_MS[1]


def numbers(text: str) -> Integers:
    """All numbers of a log, rows x columns. Raises ImportRefused."""
    if len(text) > MAX_CHARACTERS:
        raise ImportRefused(f"The log has {len(text):,} characters, more than {MAX_CHARACTERS:,}. Use log_avg_msec.")
    body = text.strip()
    if not body:
        raise ImportRefused("The log is empty.")
    if "0x" in body:
        body = _PRIORITY.sub(", 0", body)
    if not body.isascii():
        raise ImportRefused("The log has characters that are not digits.")
    first = body.split("\n", 1)[0]
    columns, rows = first.count(",") + 1, body.count("\n") + 1
    with warnings.catch_warnings():
        warnings.simplefilter("error", DeprecationWarning)  # numpy's way to say that it stopped at a wrong character
        try:
            values = np.fromstring(body.replace("\n", ","), dtype=np.int64, sep=",")
        except (ValueError, DeprecationWarning) as error:
            raise ImportRefused("The log has a field that is not a whole number: it is damaged.") from error
    if values.size != rows * columns or body.count(",") != rows * (columns - 1):
        raise ImportRefused("The rows of the log differ in length: the log is truncated or damaged.")
    return values.reshape(rows, columns)


_BINS = ((1856, 1.0), (1216, US))  # number of bins and their unit in ns
_MAX_COARSENESS = 6
_MAX_OFF_PERCENT = 5.0  # of joined bins; log_hist_coarseness=2 has 3.1, 3 has 6.3
_MAX_COUNT = 2**40  # I/Os of a bin in an interval; the difference of counters that were reset is close to 2**64


# fio's histogram logs (write_hist_log): rows `time ms, direction, block size, counts of all bins`.
#
# fio 3.x has 1,856 bins in ns, fio 2.x 1,216 in µs; log_hist_coarseness=n joins 2^n bins. The latency is always that of
# the completion. The counts are of an interval, so the sum of all rows is the histogram of the trial, without the last
# interval: fio writes a row only at the end of a whole interval.
# Sources: fio's stat.c (add_clat_sample), iolog.c (flush_hist_samples), tools/hist/fiologparser_hist.py
# (plat_idx_to_val_coarse) and HOWTO, "log_hist_coarseness".


class Histograms(msgspec.Struct, frozen=True):
    """`off_percent`: half the width of a bin relative to its latency, at most, from the median upwards."""

    of: Mapping[Direction, Histogram] = {}
    off_percent: float = 0.0


class HistogramSum:
    """The sum of all rows of the histogram logs of a trial, whose texts are too large to be kept."""

    def __init__(self) -> None:
        self._totals: dict[int, Integers] = {}

    def add(self, text: str) -> None:
        """Raises ImportRefused."""
        table = numbers(text)
        if table.shape[1] < 3 + 19 or table.min() < 0:
            raise ImportRefused("A row of the histogram log is too short or has a negative number.")
        if table[:, 3:].max() > _MAX_COUNT:
            raise ImportRefused("A row of the histogram log has an impossible number of I/Os.")
        for code in np.unique(table[:, 1]).tolist():
            if not 0 <= code <= 2:
                raise ImportRefused("A row of the histogram log has a direction other than 0, 1 and 2.")
            counts = table[table[:, 1] == code, 3:].sum(axis=0)
            if any(total.size != counts.size for total in self._totals.values()):
                raise ImportRefused("The histogram logs have different numbers of bins.")
            self._totals[code] = self._totals[code] + counts if code in self._totals else counts

    def histograms(self) -> Histograms:
        """The histogram of all I/Os, by direction. Raises ImportRefused for bins so wide that percentiles would be
        wrong."""
        if not self._totals:
            return Histograms()
        joined, unit = _scale(next(iter(self._totals.values())).size)
        histograms = {
            DIRECTIONS[code]: _histogram(counts, joined, unit) for code, counts in self._totals.items() if counts.any()
        }
        off_percent = max((_off_percent(histogram, joined, unit) for histogram in histograms.values()), default=0.0)
        if joined > 1 and off_percent > _MAX_OFF_PERCENT:
            raise ImportRefused(
                f"The histogram log joins {joined} of fio's bins, so its latencies are up to {off_percent:.2g} % off. "
                "Set log_hist_coarseness to a smaller number."
            )
        return Histograms(histograms, off_percent)


def _off_percent(histogram: Histogram, joined: int, unit: float) -> float:
    """fio's bins have a width of one unit up to 128 units, and then divide each power of two into 64."""
    median = max(unit, histogram.percentile(50) or 0)
    return 100 * max(joined / 128, joined * unit / 2 / median)


def _histogram(counts: Integers, joined: int, unit: float) -> Histogram:
    counts_by_latency: dict[int, int] = {}
    for place in np.flatnonzero(counts).tolist():
        first, last = bin_value(place * joined), bin_value((place + 1) * joined - 1)
        middle = round((first + last) / 2 * unit)
        counts_by_latency[middle] = counts_by_latency.get(middle, 0) + int(counts[place])
    ordered = sorted(counts_by_latency)
    return Histogram(latency_ns=tuple(ordered), counts=tuple(counts_by_latency[latency_ns] for latency_ns in ordered))


def _scale(size: int) -> tuple[int, float]:
    """How many of fio's bins one count is for, and the unit of the bins in ns."""
    for bins, unit in _BINS:
        for coarseness in range(_MAX_COARSENESS + 1):
            if size == bins >> coarseness:
                return 2**coarseness, unit
    raise ImportRefused(f"The histogram log has {size} bins, which no version of fio has.")


# What the name of a fio log says: `<prefix>_<kind>.<job>.log`, with `per_job_logs=0` without the job.


class Kind(StrEnum):
    BANDWIDTH = "bw"
    IOPS = "iops"
    LATENCY = "lat"
    COMPLETION = "clat"
    SUBMISSION = "slat"
    HISTOGRAM = "clat_hist"


class LogName(msgspec.Struct, frozen=True):
    """Logs with the same folder and prefix are of one trial."""

    folder: str
    prefix: str
    kind: Kind
    job: int  # from 1; 0 if the name has none

    @property
    def trial(self) -> str:
        return f"{self.folder}/{self.prefix}"


_NAME = re.compile(r"(.{0,400})_(bw|iops|lat|clat|slat|clat_hist)(?:\.(\d{1,6}))?\.log(?:\.[\w.-]{1,100})?")


def log_name(path: str) -> LogName | None:
    """None if the path is not that of a fio log. A client's host may follow: `a_bw.1.log.host7`."""
    file = PurePosixPath(path)
    match = _NAME.fullmatch(file.name)
    if match is None:
        return None
    kind = Kind.HISTOGRAM if match[2] == "hist" else Kind(match[2])
    return LogName(str(file.parent), match[1], kind, int(match[3] or 0))


Floats = NDArray[np.float64]
SINGLE_IOS_MS = 1000  # grid of logs without log_avg_msec
MAX_POINTS = 1_000_000
_OFTEN, _NEARLY, _NEARLY_ALL = 0.25, 0.15, 0.9  # of all distances, of an interval, of all distances
_ENOUGH = 100_000  # distances; more of them need too much memory
_TWO_INTERVALS = 1.75  # intervals; a shorter distance is one that ended late
_RATES = (Kind.IOPS, Kind.BANDWIDTH)
_LATENCIES = (Kind.LATENCY, Kind.COMPLETION)


class Log(msgspec.Struct, frozen=True):
    kind: Kind
    job: int
    text: str


class _Job:
    """The rows of one job, by kind. fio repeats bandwidth, IOPS and latency in files of their own."""

    def __init__(self) -> None:
        self.rows: dict[Kind, Rows] = {}


def series(logs: Iterable[Log], *, latency_unit_ns: float = 1) -> dict[Direction, tuple[Point, ...]]:
    """Points by direction; `latency_unit_ns` is 1000 for fio 2.x. Raises ImportRefused."""
    jobs: dict[tuple[int, int, int], _Job] = {}
    seen: dict[tuple[int, Kind], int] = {}
    for log in logs:
        if log.kind in (Kind.SUBMISSION, Kind.HISTOGRAM):
            continue
        same = seen[log.job, log.kind] = seen.get((log.job, log.kind), 0) + 1  # of several clients
        rows = read(log.text)
        for place, part in enumerate(rows.jobs() if not log.job and rows.averaged else [rows]):
            jobs.setdefault((same, log.job, place), _Job()).rows[log.kind] = part
    if not jobs:
        return {}
    _from_begin(jobs.values())
    points_by_direction = {
        name: _points(list(jobs.values()), code, latency_unit_ns) for code, name in enumerate(DIRECTIONS)
    }
    return {direction: points for direction, points in points_by_direction.items() if points}


def _from_begin(jobs: Collection[_Job]) -> None:
    """Times since 1970 as times since the begin of the first interval. Raises ImportRefused."""
    all_rows = [rows for job in jobs for rows in job.rows.values()]
    if not any(rows.since_1970 for rows in all_rows):
        return
    if not all(rows.since_1970 for rows in all_rows):
        raise ImportRefused("Only some logs of this test have times since 1970 (log_unix_epoch).")
    first = min(int(rows.times.min()) for rows in all_rows)
    begin = first - (_interval(all_rows) if all_rows[0].averaged else 0)
    for job in jobs:
        job.rows = {kind: rows.from_begin(begin) for kind, rows in job.rows.items()}


def submission(logs: Iterable[Log]) -> dict[Direction, tuple[Point, ...]]:
    """Points whose latency is the submission latency, weighted like other latencies. Raises ImportRefused."""
    chosen = [log for log in logs if log.kind in (Kind.SUBMISSION, Kind.IOPS)]
    if not any(log.kind is Kind.SUBMISSION for log in chosen):
        return {}
    return series(log if log.kind is Kind.IOPS else msgspec.structs.replace(log, kind=Kind.LATENCY) for log in chosen)


def _points(jobs: list[_Job], code: int, latency_unit_ns: float) -> tuple[Point, ...]:
    of_direction = [
        {kind: part for kind, rows in job.rows.items() if (part := rows.of(code)).times.size} for job in jobs
    ]
    all_rows = [rows for job in of_direction for rows in job.values()]
    if not all_rows:
        return ()
    rates = [rows for job in of_direction for kind, rows in job.items() if kind in _RATES and rows.times.size > 1]
    length = _interval(rates or all_rows)
    edges = _edges(_end(of_direction, length), length)
    iops = [_rate(job.get(Kind.IOPS), edges, length, per_io=None) for job in of_direction]
    moved = [_rate(job.get(Kind.BANDWIDTH), edges, length, per_io="block") for job in of_direction]
    latencies = [_latency(job, edges, length) for job in of_direction]
    return _assemble(edges, _total(iops), _total(moved), _weighted(latencies, iops), latency_unit_ns)


def _end(jobs: list[dict[Kind, Rows]], length: int) -> int:
    """The last moment in ms at which all rates are known, or all latencies if there are no rates.

    fio writes no last row if a job ends before its interval does: the rate is then unknown, not 0. A job that ended
    much earlier than the others has the rate 0.
    """
    logs = [(kind, int(rows.times.max())) for job in jobs for kind, rows in job.items()]
    ends = [end for kind, end in logs if kind in _RATES] or [end for _, end in logs]
    return min(end for end in ends if end > max(ends) - 1.5 * length)


def _edges(end: int, length: int) -> Floats:
    """The ends of the intervals in ms, from 0. The last one ends with the logs: it has 0.5 to 1.5 times the length."""
    count = max(1, round(end / length))
    if count > MAX_POINTS:
        raise ImportRefused(f"The logs have {count:,} intervals of {length} ms, more than {MAX_POINTS:,}.")
    return np.concatenate((np.arange(count, dtype=np.float64) * length, [max(1.0, end)]))


def _interval(all_rows: list[Rows]) -> int:
    """The usual distance between rows, in ms."""
    steps = [np.diff(rows.times) for rows in all_rows if rows.averaged and rows.times.size > 1]
    steps = [step[step > 0] for step in steps]
    together = np.concatenate(steps) if steps else np.empty(0)
    if together.size:
        return max(1, round(_usual(together)))
    return SINGLE_IOS_MS if not all_rows[0].averaged else max(1, int(all_rows[0].times.max()))


def _usual(distances: Floats) -> float:
    """The median distance. If many intervals have no row, it is one of the shortest distances, of which nearly all are
    multiples."""
    distances = distances[:_ENOUGH]
    shortest = distances[distances <= 1.5 * np.percentile(distances, 10, method="lower")]
    interval = float(np.median(shortest))
    off = np.abs(distances / interval - np.rint(distances / interval))
    is_multiple = shortest.size >= _OFTEN * distances.size and (off <= _NEARLY).mean() >= _NEARLY_ALL
    return interval if is_multiple else float(np.median(distances))


def _rate(rows: Rows | None, edges: Floats, length: int, *, per_io: str | None) -> Floats | None:
    """The mean value of each interval, 0 without rows. Of single I/Os their number, or KiB, per second."""
    if rows is None:
        return None
    if rows.averaged:
        return _integrated(rows, edges, length)[1] / np.diff(edges)
    sums = _sums(rows, edges, rows.blocks / KIB if per_io else np.ones(rows.times.size))
    return sums * 1000 / np.diff(edges)


def _sums(rows: Rows, edges: Floats, weights: Floats) -> Floats:
    """The sum of the rows of each interval."""
    count = edges.size - 1
    place = np.clip(np.searchsorted(edges, rows.times, side="left") - 1, 0, count - 1)
    return np.bincount(place, weights=weights, minlength=count).astype(np.float64)


def _integrated(rows: Rows, edges: Floats, length: int) -> tuple[Floats, Floats]:
    """Milliseconds that rows cover in each interval, and the values times milliseconds."""
    order = np.argsort(rows.times, kind="stable")
    ends = rows.times[order].astype(np.float64)
    widths = _widths(np.diff(ends, prepend=0.0), length)
    values = rows.values[order].astype(np.float64)
    knots = np.column_stack((ends - widths, ends)).ravel()
    results = []
    for heights in (np.ones_like(values), values):
        areas = np.cumsum(heights * widths)
        areas_at_knots = np.column_stack((areas - heights * widths, areas)).ravel()
        results.append(np.diff(np.interp(edges, knots, areas_at_knots)))
    return results[0], results[1]


def _widths(distances: Floats, length: int) -> Floats:
    """The time that each row is of. fio writes no row for an interval without I/O (stat.c, __add_samples)."""
    if distances.size == 1:
        return distances
    empty = np.where(distances < _TWO_INTERVALS * length, 0.0, np.rint(distances / length) - 1)
    widths: Floats = np.minimum(distances - empty * length, 1.5 * length)
    return widths


def _latency(job: Mapping[Kind, Rows], edges: Floats, length: int) -> Floats | None:
    """The mean latency of each interval, NaN in intervals without rows. Total latency, otherwise completion latency."""
    rows = next((job[kind] for kind in _LATENCIES if kind in job), None)
    if rows is None:
        return None
    if rows.averaged:
        covered, total = _integrated(rows, edges, length)
    else:
        covered = _sums(rows, edges, np.ones(rows.times.size))
        total = _sums(rows, edges, rows.values.astype(np.float64))
    return _divided(total, covered)


def _total(parts: list[Floats | None]) -> Floats | None:
    """The sum over the jobs; None if no job has this log."""
    known = [part for part in parts if part is not None]
    return np.sum(known, axis=0) if known else None


def _weighted(latencies: list[Floats | None], iops: list[Floats | None]) -> Floats | None:
    known = [(latency, rate) for latency, rate in zip(latencies, iops, strict=True) if latency is not None]
    if not known:
        return None
    values = np.array([latency for latency, _ in known])
    equal = any(rate is None for _, rate in known)
    weights = np.ones_like(values) if equal else np.array([rate for _, rate in known])
    weights = np.where(np.isnan(values), 0.0, weights)
    total = weights.sum(axis=0)
    sums = (np.nan_to_num(values) * weights).sum(axis=0)
    return _divided(sums, total)


def _divided(values: Floats, weights: Floats) -> Floats:
    """NaN without weight."""
    means = np.full(values.size, np.nan)
    np.divide(values, weights, out=means, where=weights > 0)
    return means


def _assemble(
    edges: Floats, iops: Floats | None, moved: Floats | None, latency: Floats | None, unit_ns: float
) -> tuple[Point, ...]:
    ends, lengths = edges[1:], np.diff(edges)
    columns = [
        [None] * ends.size if part is None else (part * scale).tolist()
        for part, scale in ((iops, 1), (moved, KIB), (latency, unit_ns))
    ]
    return tuple(
        Point(
            offset_ms=round(end),
            length_ms=round(length),
            iops=rate,
            bytes_per_s=bytes_per_s,
            latency_mean_ns=None if mean is None or mean != mean else mean,
        )
        for end, length, rate, bytes_per_s, mean in zip(ends.tolist(), lengths.tolist(), *columns, strict=True)
    )
