"""fio's histogram logs (write_hist_log): rows `time ms, direction, block size, counts of all bins`.

fio 3.x has 1,856 bins in ns, fio 2.x 1,216 in µs; log_hist_coarseness=n joins 2^n bins. The counts are of an interval,
so the sum of all rows is the histogram of the trial.
Source: fio's iolog.c (flush_hist_samples) and HOWTO, "log_hist_coarseness".
"""

from collections.abc import Iterable

import numpy as np

from webapp.imports.errors import ImportRefused
from webapp.imports.formats.fio_json.latency import bin_value
from webapp.imports.formats.fio_log.rows import DIRECTIONS, Integers, numbers
from webapp.imports.values import US
from worker.contract.histogram import Histogram
from worker.contract.items import Direction

_BINS = ((1856, 1.0), (1216, US))  # number of bins and their unit in ns
_MAX_COARSENESS = 6


def histograms(texts: Iterable[str]) -> dict[Direction, Histogram]:
    """The histogram of all I/Os of several logs, by direction. Raises ImportRefused."""
    totals: dict[int, Integers] = {}
    for text in texts:
        table = numbers(text)
        if table.shape[1] < 3 + 19 or table.min() < 0:
            raise ImportRefused("A row of the histogram log is too short or has a negative number.")
        for code in np.unique(table[:, 1]).tolist():
            if not 0 <= code <= 2:
                raise ImportRefused("A row of the histogram log has a direction other than 0, 1 and 2.")
            counts = table[table[:, 1] == code, 3:].sum(axis=0)
            if code in totals and totals[code].size != counts.size:
                raise ImportRefused("The histogram logs have different numbers of bins.")
            totals[code] = totals[code] + counts if code in totals else counts
    return {DIRECTIONS[code]: _histogram(counts) for code, counts in totals.items() if counts.any()}


def _histogram(counts: Integers) -> Histogram:
    joined, unit = _scale(counts.size)
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
