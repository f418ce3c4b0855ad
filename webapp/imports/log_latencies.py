"""What histogram logs and submission logs of fio add to the measurements of their test."""

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from webapp.imports.formats.fio_log import Histograms
from webapp.imports.measurement import Measurement
from worker.contract.histogram import Histogram, merge
from worker.contract.items import Direction

SUBMISSION_METRIC = "slat_mean_ns"
_LEAST, _MOST = 0.5, 1.01  # share of the test's I/Os; fio counts a few I/Os that end after the test
_UNUSED = "Read, but not used: "

Measurements = tuple[Measurement, ...]


def with_histograms(measured: Sequence[Measurement], found: Histograms) -> tuple[Measurements, str]:
    """The measurements with histograms where they have none, and a sentence about what was done."""
    if not found.of:
        return tuple(measured), f"{_UNUSED}the histogram logs have no I/Os."
    chosen = {one.direction: _of(one.direction, found) for one in measured}
    problems = [problem for one in measured if (problem := _problem(one, chosen[one.direction]))]
    if problems:
        return tuple(measured), _UNUSED + problems[0]
    counts = ", ".join(_count(one, chosen[one.direction]) for one in measured)
    off = f" Latencies in it are up to {found.off_percent:.2g} % off." if found.off_percent > 1 else ""
    note = f"Latency histogram from logs, without the last interval, which fio does not log: {counts}.{off}"
    return tuple(
        replace(one, latency=replace(one.latency, histogram=chosen[one.direction]), notes=(*one.notes, note))
        for one in measured
    ), note


def _of(direction: Direction | None, found: Histograms) -> Histogram:
    return merge(found.of.values()) if direction is None else found.of.get(direction, Histogram())


def _problem(measured: Measurement, histogram: Histogram) -> str:
    """Why a measurement cannot have this histogram, "" if it can."""
    latency = measured.latency
    if latency.histogram.counts:
        return "the test already has a latency histogram."
    if latency.kind != "clat":
        return "the test does not state completion latency, and histogram logs have no other."
    share = histogram.total / measured.ios if measured.ios else 1.0
    if not histogram.counts or share < _LEAST:
        return f"the histogram logs have only {100 * share:.0f} % of the test's I/Os."
    return "" if share <= _MOST else "the histogram logs have more I/Os than the test, so they are of another test."


def _count(measured: Measurement, histogram: Histogram) -> str:
    of = f" of {measured.ios:,}" if measured.ios else ""
    return f"{histogram.total:,}{of} I/Os{f' ({measured.direction})' if measured.direction else ''}"


def with_submission(measured: Sequence[Measurement], means: Mapping[Direction, float]) -> tuple[Measurements, str]:
    """The measurements with the mean submission latency in ns where they have none, and a sentence about what was
    done."""
    if not means:
        return tuple(measured), f"{_UNUSED}a mean submission latency needs the IOPS logs of the same test."
    if any(SUBMISSION_METRIC in one.metrics for one in measured):
        return tuple(measured), f"{_UNUSED}the test already has a mean submission latency."
    added = tuple(
        replace(one, metrics={**one.metrics, SUBMISSION_METRIC: means[one.direction]})
        if one.direction is not None and one.direction in means
        else one
        for one in measured
    )
    return added, f"Mean of the submission latency: the metric {SUBMISSION_METRIC}."
