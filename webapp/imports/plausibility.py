"""Latencies of a file that contradict each other, and impossible dates: they are left out, and a note says so."""

from datetime import UTC, datetime, timedelta
from itertools import pairwise

from msgspec.structs import replace

from webapp.imports.measurement import Latency, Measurement

EARLIEST = datetime(1995, 1, 1, tzinfo=UTC)  # a clock that was never set shows 1970 or 1980
LATEST = timedelta(days=1)  # after the import: clocks are wrong, and time zones differ
ROUNDING = 1.1  # tools round to few digits, and a percentile of fio is the end of a bin of its histogram

_CONTRADICT = "The minimum, mean and maximum latency in the file contradict each other. They are left out."
_DO_NOT_ASCEND = "The latency percentiles in the file do not ascend. They are left out."
_OUTSIDE = "Latency percentiles in the file are outside its minimum and maximum. All latencies are left out."


def plausible(measured: Measurement, now: datetime) -> Measurement:
    """The measurement without values that cannot be true, and a note for each kind that is left out."""
    latency, notes = _latency(measured.latency)
    when = measured.measured_at
    if when is not None and not EARLIEST <= when <= now + LATEST:
        notes.append(f"The date {when:%Y-%m-%d} in the file is not possible. The date of the import is used.")
        when = None
    if not notes:
        return measured
    return replace(measured, latency=latency, measured_at=when, notes=(*measured.notes, *notes))


def _latency(stated: Latency) -> tuple[Latency, list[str]]:
    notes = []
    percentiles = [value for _, value in sorted(stated.percentiles.items())]
    if not _ascend(stated.min_ns, stated.mean_ns, stated.max_ns, factor=ROUNDING):
        notes.append(_CONTRADICT)
        stated = replace(stated, min_ns=None, mean_ns=None, max_ns=None, stddev_ns=None)
    if not _ascend(*percentiles):
        notes.append(_DO_NOT_ASCEND)
        stated = replace(stated, percentiles={})
    elif not _ascend(stated.min_ns, *percentiles, stated.max_ns, factor=ROUNDING):
        return Latency(kind=stated.kind), [_OUTSIDE]
    return stated, notes


def _ascend(*values: float | None, factor: float = 1.0) -> bool:
    known = [value for value in values if value is not None]
    return all(one <= next_one * factor for one, next_one in pairwise(known))
