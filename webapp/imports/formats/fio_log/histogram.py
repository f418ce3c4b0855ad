"""fio's histogram logs (write_hist_log): rows `time ms, direction, block size, counts of all bins`.

fio 3.x has 1,856 bins in ns, fio 2.x 1,216 in µs; log_hist_coarseness=n joins 2^n bins. The latency is always that of
the completion. The counts are of an interval, so the sum of all rows is the histogram of the trial, without the last
interval: fio writes a row only at the end of a whole interval.
Sources: fio's stat.c (add_clat_sample), iolog.c (flush_hist_samples), tools/hist/fiologparser_hist.py
(plat_idx_to_val_coarse) and HOWTO, "log_hist_coarseness".
"""

from collections.abc import Mapping

import msgspec
import numpy as np

from webapp.imports.errors import ImportRefused
from webapp.imports.formats.fio_json.latency import bin_value
from webapp.imports.formats.fio_log.rows import DIRECTIONS, Integers, numbers
from webapp.imports.values import US
from worker.contract.histogram import Histogram
from worker.contract.items import Direction

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
        found = {DIRECTIONS[code]: _histogram(one, joined, unit) for code, one in self._totals.items() if one.any()}
        off_percent = max((_off_percent(one, joined, unit) for one in found.values()), default=0.0)
        if joined > 1 and off_percent > _MAX_OFF_PERCENT:
            raise ImportRefused(
                f"The histogram log joins {joined} of fio's bins, so its latencies are up to {off_percent:.2g} % off. "
                "Set log_hist_coarseness to a smaller number."
            )
        return Histograms(found, off_percent)


def _off_percent(histogram: Histogram, joined: int, unit: float) -> float:
    """fio's bins have a width of one unit up to 128 units, and then divide each power of two into 64."""
    median = max(unit, histogram.percentile(50) or 0)
    return 100 * max(joined / 128, joined * unit / 2 / median)


def _histogram(counts: Integers, joined: int, unit: float) -> Histogram:
    found: dict[int, int] = {}
    for place in np.flatnonzero(counts).tolist():
        first, last = bin_value(place * joined), bin_value((place + 1) * joined - 1)
        middle = round((first + last) / 2 * unit)
        found[middle] = found.get(middle, 0) + int(counts[place])
    ordered = sorted(found)
    return Histogram(latency_ns=tuple(ordered), counts=tuple(found[one] for one in ordered))


def _scale(size: int) -> tuple[int, float]:
    """How many of fio's bins one count is for, and the unit of the bins in ns."""
    for bins, unit in _BINS:
        for coarseness in range(_MAX_COARSENESS + 1):
            if size == bins >> coarseness:
                return 2**coarseness, unit
    raise ImportRefused(f"The histogram log has {size} bins, which no version of fio has.")
