"""Whether the time series of logs can be that of a test: their sums must be those of the test.

They are not if a log of a job is missing, if the logs are of another test with the same name, or if fio appended the
logs of several runs to one file.
"""

from collections.abc import Mapping, Sequence

import msgspec

from webapp.imports.errors import ImportRefused
from webapp.imports.formats.fio_log import Kind
from webapp.imports.measurement import Measurement, Point
from webapp.imports.values import KIB
from worker.contract.items import Direction

_MOST = 1.15  # share of the test's I/Os or bytes. fio counts a few I/Os that end after the test
_MISSING = 0.15  # of the test, beside the last interval, which fio does not log
_OTHER_LATENCY, _LEAST_NS = 1.5, 1000.0  # factor between the means; fio 2.x logs whole µs

_TOO_MANY = (
    ": they belong to another test or to several runs, one of them is a copy, or most of their intervals have no I/O. "
    "In the last case, use a larger log_avg_msec."
)
_TOO_FEW = (
    ": logs of some jobs are missing or came in another request, or they belong to another test. Send all logs of a "
    "test in one request."
)


class Totals(msgspec.Struct, frozen=True):
    """Sums of a series. `latency_mean_ns` is weighted with the I/Os, and in the unit of the log."""

    end_ms: int
    ios: float | None
    bytes: float | None
    latency_mean_ns: float | None


def totals(points: Sequence[Point], latency_mean_ns: float | None) -> Totals:
    return Totals(points[-1].offset_ms, _total(points, "iops"), _total(points, "bytes_per_s"), latency_mean_ns)


def _total(points: Sequence[Point], name: str) -> float | None:
    values = [(getattr(point, name), point.length_ms) for point in points]
    return None if any(value is None for value, _ in values) else sum(value * ms for value, ms in values) / 1000


def problem(
    of: Mapping[Direction, Totals], stated: Sequence[Measurement], jobs: Mapping[Kind, int]
) -> ImportRefused | None:
    """Why the series cannot be that of the test with these measurements. `jobs`: numbers of logs."""
    ways = [one.direction for one in stated]
    others = [way for way, found in of.items() if way not in ways and (found.ios or found.bytes)]
    if others and None not in ways:
        return ImportRefused(
            f"The logs have I/Os of the direction {others[0]}, but the test has none: they belong to another test."
        )
    found = (_problem_of(of, one, jobs) for one in stated)
    return next(filter(None, found), None)


def _problem_of(of: Mapping[Direction, Totals], one: Measurement, jobs: Mapping[Kind, int]) -> ImportRefused | None:
    found = [totals for way, totals in of.items() if one.direction in (way, None)]
    if not found or not one.runtime_ms:
        return None
    covered = min(1.0, max(totals.end_ms for totals in found) / one.runtime_ms)
    for rate, sums, step, kind, unit in (
        (one.iops, [totals.ios for totals in found], 1, Kind.IOPS, "I/Os"),
        (one.bytes_per_s, [totals.bytes for totals in found], KIB, Kind.BANDWIDTH, "bytes"),
    ):
        known = [value for value in sums if value is not None]
        if not rate or len(known) < len(sums):
            continue
        share = sum(known) * 1000 / (rate * one.runtime_ms)
        if share > _MOST:
            return ImportRefused(f"The logs have more {unit} than the test{_TOO_MANY}", _share(share, unit))
        if share < covered - _MISSING - jobs.get(kind, 0) * step / rate:  # fio logs whole I/Os and KiB per second
            return ImportRefused(f"The logs have fewer {unit} than the test{_TOO_FEW}", _share(share, unit))
    return None


def _share(share: float, unit: str) -> str:
    return f"They have {100 * share:.0f} % of its {unit}."


def latency_problem(of: Mapping[Direction, Totals], stated: Sequence[Measurement], metric: str, unit_ns: float) -> str:
    """Why the latencies of the series cannot be those of the test, "" if they can."""
    for one in stated:
        mean_ns = one.metrics.get(metric)
        found = of.get(one.direction) if one.direction is not None else None
        if mean_ns is None or found is None or found.latency_mean_ns is None:
            continue
        logged = found.latency_mean_ns
        low, high = sorted((mean_ns, logged * unit_ns))
        if high > _OTHER_LATENCY * low + _LEAST_NS:
            return (
                f"Read, but not used: the mean latency of the logs is {_in_us(logged * unit_ns)} and that of the test "
                f"{_in_us(mean_ns)}. With log_max_value, logs have the largest latency of each interval."
            )
    return ""


def _in_us(ns: float) -> str:
    return f"{ns / 1000:,.4g} µs"
