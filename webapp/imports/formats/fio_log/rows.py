"""fio's histogram logs (write_hist_log): rows `time ms, direction, block size, counts of all bins`.

fio 3.x has 1,856 bins in ns, fio 2.x 1,216 in µs; log_hist_coarseness=n joins 2^n bins. The latency is always that of
the completion. The counts are of an interval, so the sum of all rows is the histogram of the trial, without the last
interval: fio writes a row only at the end of a whole interval.
Sources: fio's stat.c (add_clat_sample), iolog.c (flush_hist_samples), tools/hist/fiologparser_hist.py
(plat_idx_to_val_coarse) and HOWTO, "log_hist_coarseness".
"""

import re
import warnings
from collections.abc import Mapping

import msgspec
import numpy as np
from numpy.typing import NDArray

from webapp.imports.errors import ImportRefused
from webapp.imports.formats.fio_json.latency import bin_value
from webapp.imports.values import MAX_CHARACTERS, US
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
