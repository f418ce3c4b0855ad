"""The table of metrics: what each is called, its unit, which way is better, where it is stored, how it is shown.

Stored are I/Os per second, bytes per second and nanoseconds. `shown_as` names the formatter on both sides:
`core.formatting` here, `lib/format.ts` in the browser.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from webapp.core import formatting

_FORMATTERS = {
    "iops": formatting.iops,
    "bytes_per_s": formatting.bytes_per_s,
    "latency": formatting.latency,
}


@dataclass(frozen=True)
class Metric:
    key: str
    label: str
    unit: str  # of the stored value
    column: str  # of results.Result
    shown_as: str  # iops | bytes_per_s | latency
    lower_is_better: bool = False

    @property
    def adds_up(self) -> bool:
        """A trial has the sum of it over its streams and directions. Latencies have no sum."""
        return self.shown_as != "latency"

    def format(self, value: float | None) -> str:
        """Three significant digits, with the unit that fits."""
        return _FORMATTERS[self.shown_as](value)


def _latency(key: str, label: str, column: str) -> Metric:
    return Metric(key, label, "ns", column, "latency", lower_is_better=True)


_TABLE = (
    Metric("iops", "IOPS", "1/s", "iops", "iops"),
    Metric("bytes_per_s", "Bandwidth", "B/s", "bytes_per_s", "bytes_per_s"),
    _latency("latency_mean", "Mean latency", "latency_mean_ns"),
    _latency("latency_p50", "Median latency", "p50_ns"),
    _latency("latency_p95", "p95 latency", "p95_ns"),
    _latency("latency_p99", "p99 latency", "p99_ns"),
    _latency("latency_p999", "p99.9 latency", "p999_ns"),
    _latency("latency_min", "Least latency", "latency_min_ns"),
    _latency("latency_max", "Largest latency", "latency_max_ns"),
    _latency("latency_stddev", "Spread of latency", "latency_stddev_ns"),
)

METRICS: Mapping[str, Metric] = {metric.key: metric for metric in _TABLE}
