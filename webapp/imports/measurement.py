"""What a parser returns: one measurement for each direction that a file contains, in stored units.

Stored units are I/Os per second, bytes per second, bytes and nanoseconds, whatever the tool prints. A value that the
tool does not print is None. Nothing is computed from rounded values, with two exceptions: bytes/s = IOPS x block size
if the tool prints only one of both, and rates of exact counts and a time with at least four digits (see the notes of
such a measurement).
"""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Set
from datetime import datetime

import msgspec
from msgspec.structs import force_setattr

from webapp.imports.values import ImportRefused, Printed
from webapp.plans.values import Value
from worker.contract.items import Direction
from worker.contract.packing import Histogram

MAX_IOPS = 1e10
MAX_BYTES_PER_S = 1e14
MAX_NS = 1e15  # 11 days
MAX_RUNTIME_MS = 366 * 86_400_000
MAX_COUNT = 2**63 - 1
MAX_METRIC = 1e18
MAX_TEXT = 1000
MAX_MEASUREMENTS = 60_000  # of a file


def _check(what: str, value: float | None, limit: float) -> None:
    if value is None:
        return
    if not math.isfinite(value) or not 0 <= value <= limit:
        raise ImportRefused(f"A {what} of {value:.6g} is not possible.")


class Latency(msgspec.Struct, frozen=True, kw_only=True):
    """`kind` is "lat" (total) or "clat" (completion), "" if the tool does not say."""

    kind: str = ""
    min_ns: float | None = None
    mean_ns: float | None = None
    max_ns: float | None = None
    stddev_ns: float | None = None
    percentiles: Mapping[float, float] = {}  # percent -> ns
    step_ns: float = 0  # between the values that the tool can print; 0 if it is fine, or unknown
    percentile_step_ns: float = 0  # of percentiles, if theirs is coarser
    histogram: Histogram = Histogram()

    def __post_init__(self) -> None:
        for value in (self.min_ns, self.mean_ns, self.max_ns, self.stddev_ns, *self.percentiles.values()):
            _check("latency", value, MAX_NS)
        for percent in self.percentiles:
            _check("percentile", percent, 100)
        for count in self.histogram.counts:
            _check("number of I/Os in a histogram", count, MAX_COUNT)
        _check("latency in a histogram", max(self.histogram.latency_ns, default=0), MAX_NS)
        for name in ("min_ns", "mean_ns", "max_ns", "stddev_ns"):
            if isinstance(value := getattr(self, name), Printed):
                force_setattr(self, name, float(value))
        force_setattr(self, "percentiles", {percent: float(value) for percent, value in self.percentiles.items()})


class Point(msgspec.Struct, frozen=True, kw_only=True):
    """One value of a time series: the interval that ends `offset_ms` after the start."""

    offset_ms: int
    length_ms: int
    iops: float | None = None
    bytes_per_s: float | None = None
    latency_mean_ns: float | None = None

    def __post_init__(self) -> None:
        _check("offset", self.offset_ms, MAX_RUNTIME_MS)
        _check("interval", self.length_ms, MAX_RUNTIME_MS)
        _check("number of I/Os per second", self.iops, MAX_IOPS)
        _check("number of bytes per second", self.bytes_per_s, MAX_BYTES_PER_S)
        _check("latency", self.latency_mean_ns, MAX_NS)


class Measurement(msgspec.Struct, frozen=True, kw_only=True):
    """One direction of one test of a tool. Raises ImportRefused for impossible values."""

    tool: str  # "fio", "bm-flash"
    tool_version: str = ""
    name: str = ""  # the tool's name of the test: "random-read", "Initial write"
    direction: Direction | None  # None: reads and writes together, because the tool prints only their sum
    is_io: bool = True  # if not, it has only metrics, such as the minutes of a job
    factors: Mapping[str, Value]  # of plans.factors, in their units: {"block_size": 4096, "pattern": "randread"}
    assumed: Set[str] = (
        frozenset()
    )  # names of factors that are the tool's defaults and not stated: labels overrule them
    other: Mapping[str, str] = {}  # stated by the tool, without a factor of ours: {"record size": "1024 kB"}
    repeat: int = 1  # of the same test in the same file
    iops: float | None = None
    bytes_per_s: float | None = None
    iops_step: float = 0.0  # between the values that the tool can print; 0 if unknown. `Printed` rates set it.
    bytes_per_s_step: float = 0.0
    ios: int | None = None
    bytes: int | None = None
    runtime_ms: int | None = None
    latency: Latency = Latency()
    metrics: Mapping[str, float] = {}  # of the tool's own, by name with unit: {"usr_cpu_percent": 12.5}
    measured_at: datetime | None = None
    series: tuple[Point, ...] = ()
    log_names: tuple[str, ...] = ()  # prefixes of the paths of its logs, as its options state them
    notes: tuple[str, ...] = ()  # what was assumed, as sentences: "IOPS as printed: three digits."

    def __post_init__(self) -> None:
        _check("number of I/Os per second", self.iops, MAX_IOPS)
        _check("number of bytes per second", self.bytes_per_s, MAX_BYTES_PER_S)
        _check("number of I/Os", self.ios, MAX_COUNT)
        _check("number of bytes", self.bytes, MAX_COUNT)
        _check("runtime in ms", self.runtime_ms, MAX_RUNTIME_MS)
        for name, value in self.metrics.items():
            _check(name, value, MAX_METRIC)
        for name in ("iops", "bytes_per_s"):
            if isinstance(rate := getattr(self, name), Printed):
                force_setattr(self, f"{name}_step", rate.step)
                force_setattr(self, name, float(rate))
        force_setattr(self, "metrics", {name: float(value) for name, value in self.metrics.items()})
        for text in (self.tool_version, self.name, *self.other, *self.other.values()):
            if len(text) > MAX_TEXT:
                raise ImportRefused(f"A text has {len(text):,} characters, more than {MAX_TEXT:,}: `{text[:40]}…`.")


def with_repeats(measurements: Iterable[Measurement]) -> list[Measurement]:
    """Number the measurements of the same test in the order of the file, from 1. Raises ImportRefused."""
    seen: Counter[object] = Counter()
    numbered: list[Measurement] = []
    for measured in measurements:
        test = (
            measured.name,
            measured.direction,
            frozenset(measured.factors.items()),
            frozenset(measured.other.items()),
        )
        seen[test] += 1
        if len(numbered) >= MAX_MEASUREMENTS:
            raise ImportRefused(f"The file has more than {MAX_MEASUREMENTS:,} results. Split it.")
        numbered.append(msgspec.structs.replace(measured, repeat=seen[test]) if seen[test] > 1 else measured)
    return numbered
