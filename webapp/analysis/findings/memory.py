"""Writes that stay in memory: buffered writes that had not reached the drive at the end of the trial.

Dirty memory and memory under writeback (/proc/meminfo) grow during the trial by at least `LEAST` of the bytes that it
wrote (our convention). Each trial of the point has to show it. Other programs can write, too: a host at rest has little
dirty memory, and what is there before the trial does not count.
"""

from collections.abc import Sequence
from math import log
from statistics import fmean

import numpy as np

from webapp.analysis.answer import FindingKind
from webapp.analysis.findings.recorded import RecordedPoint, RecordedTrial, TimedFinding, timed
from worker.contract.items import SensorKind

LEAST = 0.10
MIN_SECONDS = 3


def find(points: Sequence[RecordedPoint]) -> Sequence[TimedFinding]:
    cached = [
        (point, shares)
        for point in points
        if point.buffered and point.block_bytes
        if min(shares := [_in_memory(trial, point.block_bytes) for trial in point.trials]) >= LEAST
    ]
    if not cached:
        return []
    point, shares = max(cached, key=lambda each: fmean(each[1]))
    share = min(fmean(shares), 1.0)
    sentence = f"{100 * share:.0f} % of the written data was still in memory at the end, so the drive was slower"
    size, points = -log(max(1 - share, 0.01)), [point for point, _ in cached]
    return timed(FindingKind.IN_MEMORY, sentence, point, points, size=size, value=100 * share)


def _in_memory(trial: RecordedTrial, block_bytes: int) -> float:
    """The growth of memory that waits to be written, as a share of the bytes written in the same seconds; 0 if it was
    not recorded."""
    waiting = np.add.reduce(list(trial.of_kind(SensorKind.MEMORY).values()) or [np.full(1, np.nan)])
    places = np.flatnonzero(~np.isnan(waiting))
    if len(places) < MIN_SECONDS:
        return 0.0
    first, last = int(places[0]), int(places[-1])
    written = block_bytes * float(np.nansum(trial.iops[first + 1 : last + 1]))
    return float(waiting[last] - waiting[first]) / written if written else 0.0
