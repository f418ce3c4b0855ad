"""The table of metrics: label, stored unit, column, formatter, and whether lower is better.

Stored units are I/Os per second, bytes per second and nanoseconds. Engines add their own metrics, also in seconds.
`shown_as` names the formatter on both sides: `core.formatting` here, `lib/format.ts` in the browser.
`frontend/src/lib/labels.ts` repeats the labels; a test compares both.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from webapp.core import formatting
from webapp.plans.engines import engine_of
from worker.contract.items import Metric as EngineMetric
from worker.contract.items import Unit
from worker.recipes import ENGINES

FORMATTERS: Mapping[formatting.ShownAs, Callable[[float | None], str]] = {
    "iops": formatting.iops,
    "bytes_per_s": formatting.bytes_per_s,
    "latency": formatting.latency,
    "seconds": formatting.seconds,
    "number": formatting.number,
    "percent": formatting.percent,
    "celsius": formatting.celsius,
    "watts": formatting.watts,
    "entered": formatting.entered,  # with the unit of the metric
}
_MULTIPLES = {1: "", 10**3: "thousands", 10**6: "millions", 10**9: "billions"}
_SHOWN_AS: Mapping[Unit, formatting.ShownAs] = {
    Unit.SECONDS: "seconds", Unit.BYTES_PER_S: "bytes_per_s", Unit.PER_S: "iops", Unit.PERCENT: "percent",
    Unit.COUNT: "number",
}  # fmt: skip


class Missing(StrEnum):
    """Why a number is missing, in the words that pages, files and the API use."""

    NOT_MEASURED = "not measured"  # there is no valid result of this test point
    NO_VALUE = "no value"  # there is a valid result, but it does not have the metric


class Measured(Protocol):
    """A result: an attribute for each column, and the engine's own metrics by name."""

    @property
    def metrics(self) -> Mapping[str, float]: ...


@dataclass(frozen=True)
class Metric:
    key: str
    label: str
    short: str  # label in a table of latencies
    unit: str  # of the stored value
    column: str  # of results.Result; "" for a metric of one engine, which is in Result.metrics
    shown_as: formatting.ShownAs
    lower_is_better: bool = False

    @property
    def adds_up(self) -> bool:
        """Whether the value of a trial is the sum over its streams and directions."""
        return self.column in ("iops", "bytes_per_s")

    @property
    def is_speed(self) -> bool:
        """False for IOPS per watt, for example: a slower drive may have a higher value."""
        return not self.lower_is_better and self.shown_as in ("iops", "bytes_per_s")

    def of(self, result: Measured) -> float | None:
        """The value of a result; None if it has none."""
        value: float | None = getattr(result, self.column) if self.column else result.metrics.get(self.key)
        return value

    def scale(self, values: Iterable[float]) -> formatting.Scale:
        """One unit for a column of values."""
        return formatting.common_scale(values, self.shown_as)

    def unit_text(self, scale: formatting.Scale) -> str:
        """The unit for the head of a column: kIOPS, MB/s, µs; "" for a plain number. A label that ends with "per
        second" is followed by a multiple only: thousands."""
        if self.label.endswith("per second"):
            return _MULTIPLES[scale.factor]
        if self.shown_as == "iops":
            return f"{scale.unit}IOPS" if self.key == "iops" else f"{scale.unit}/s".lstrip()
        if self.shown_as == "entered":
            return self.unit
        return f"{scale.unit}/s" if self.shown_as == "bytes_per_s" else scale.unit

    def format(self, value: float | None) -> str:
        """Three significant digits, with the unit that fits."""
        text = FORMATTERS[self.shown_as](value)
        return f"{text} {self.unit}".rstrip() if self.shown_as == "entered" and value is not None else text


def _latency(key: str, label: str, short: str, column: str) -> Metric:
    return Metric(key, label, short, "ns", column, "latency", lower_is_better=True)


def in_unit(unit: str, value: float | None) -> str:
    """Format a value in a unit of an engine's own metrics."""
    return FORMATTERS[_SHOWN_AS[Unit(unit)]](value)


def _own(metric: EngineMetric) -> Metric:
    shown_as = _SHOWN_AS[metric.unit]
    return Metric(metric.name, metric.label, metric.label, metric.unit, "", shown_as, metric.lower_is_better)


_TABLE = (
    Metric("iops", "IOPS", "IOPS", "1/s", "iops", "iops"),
    Metric("bytes_per_s", "Bandwidth", "Bandwidth", "B/s", "bytes_per_s", "bytes_per_s"),
    _latency("latency_mean", "Mean latency", "Mean", "latency_mean_ns"),
    _latency("latency_p50", "Median latency", "p50", "p50_ns"),
    _latency("latency_p95", "p95 latency", "p95", "p95_ns"),
    _latency("latency_p99", "p99 latency", "p99", "p99_ns"),
    _latency("latency_p999", "p99.9 latency", "p99.9", "p999_ns"),
    _latency("latency_min", "Minimum latency", "Minimum", "latency_min_ns"),
    _latency("latency_max", "Maximum latency", "Maximum", "latency_max_ns"),
    _latency("latency_stddev", "Latency std. dev.", "Std. dev.", "latency_stddev_ns"),
    *(_own(metric) for engine in ENGINES.values() for metric in engine.METRICS),
)

# In the metrics of an imported result: the step between the values that its tool can print, in ns, 1/s and B/s
LATENCY_STEP, PERCENTILE_STEP = "latency_step_ns", "percentile_step_ns"
IOPS_STEP, BANDWIDTH_STEP = "iops_step", "bytes_per_s_step"

# In the metrics of a result at a share of the load: asked IOPS, percent of them reached, and percent of the I/Os that
# were issued late, over all directions
LOAD_ASKED, LOAD_REACHED, LOAD_DELAYED = "load_asked_iops", "load_reached_percent", "load_delayed_percent"
# In the metrics of a result beside a stream that could not keep up: the percent that this one reached of its asked IOPS
LOAD_BESIDE = "load_reached_beside_percent"

CPU_PER_IO = "cpu_ns_per_io"  # of imported tests: CPU time of the tool's processes per I/O of all directions
METRICS: Mapping[str, Metric] = {metric.key: metric for metric in _TABLE}
IOPS = METRICS["iops"]


# The name of a value that a person entered contains its unit: "Nightly job [min] lower is better".
_ENTERED = re.compile(r"(?P<name>[^\[\]]+) \[(?P<unit>[^\[\]]*)\] (?P<better>lower|higher) is better")


def entered_key(label: str, unit: str, *, lower_is_better: bool) -> str:
    """The key of a metric whose values are entered by hand. Neither text may contain square brackets."""
    return f"{label} [{unit}] {'lower' if lower_is_better else 'higher'} is better"


# Metrics of imported results end with their unit: power_watt, new_orders_per_min. End -> unit, and whether lower is
# better. Of two ends, the longer one counts.
_STATED_UNITS: Mapping[str, tuple[str, bool]] = {
    "gib_per_s": ("GiB/s", False), "mib_per_s": ("MiB/s", False), "kib_per_s": ("KiB/s", False),
    "gb_per_s": ("GB/s", False), "mb_per_s": ("MB/s", False), "kb_per_s": ("kB/s", False),
    "per_s": ("1/s", False), "per_min": ("1/min", False), "ratio": ("", False),
    "ns": ("ns", True), "us": ("µs", True), "ms": ("ms", True), "s": ("s", True), "min": ("min", True),
    "percent": ("%", True), "watt": ("W", True), "celsius": ("°C", True),
}  # fmt: skip
# The own values of fio whose names in its files are abbreviations.
_STATED_LABELS: Mapping[str, str] = {
    "lat_mean_ns": "Mean total latency", "clat_mean_ns": "Mean completion latency",
    "slat_mean_ns": "Mean submission latency", "usr_cpu_percent": "User CPU", "sys_cpu_percent": "System CPU",
}  # fmt: skip
_STATED = re.compile(rf"(?P<name>[a-z][a-z0-9_]*?)_(?P<end>{'|'.join(_STATED_UNITS)})", re.ASCII)


def entered_metric(key: str) -> Metric | None:
    """The metric of values that a person entered or a tool stated, by its key; None for a step of latencies."""
    if key in (LATENCY_STEP, PERCENTILE_STEP):
        return None
    if match := _ENTERED.fullmatch(key):
        label, lower = match["name"], match["better"] == "lower"
        return Metric(key, label, label, match["unit"], "", "entered", lower_is_better=lower)
    if match := _STATED.fullmatch(key):
        unit, lower = _STATED_UNITS[match["end"]]
        label = _STATED_LABELS.get(key) or (match["name"] if unit else key).replace("_", " ").capitalize()
        shown_as: formatting.ShownAs = "latency" if unit == "ns" else "entered"
        return Metric(key, label, label, unit, "", shown_as, lower_is_better=lower)
    return None


def default_metric(points: Iterable[Mapping[str, object]]) -> Metric:
    """The metric of results at these points unless another is chosen: their engine's, or IOPS for several engines."""
    keys = {engine_of(point).DEFAULT_METRIC for point in points}
    return METRICS[keys.pop()] if len(keys) == 1 else IOPS
