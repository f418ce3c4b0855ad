"""The metrics that Bench offers, and panels: one metric of the workloads of one pattern."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cached_property

from webapp.bench.workloads import chart_order, chart_words, is_random
from webapp.results.metrics import METRICS, Metric
from webapp.results.reading.rows import ResultRow

RATE = "rate"  # IOPS of random patterns, bandwidth of the others
P95, P99 = "latency_p95", "latency_p99"
CHOICES = {
    RATE: "IOPS and bandwidth", "latency_mean": "Mean latency", "latency_p50": "Median latency", P95: "p95 latency",
    P99: "p99 latency", "latency_p999": "p99.9 latency", "latency_max": "Maximum latency",
}  # fmt: skip
_IOPS, _BANDWIDTH = METRICS["iops"], METRICS["bytes_per_s"]


@dataclass(frozen=True)
class Panel:
    """`choice` is a key of CHOICES."""

    choice: str
    metric: Metric
    chart: str
    direction: str

    @cached_property
    def key(self) -> str:
        return f"{self.choice}|{self.metric.key}|{self.chart}|{self.direction}"

    @property
    def name(self) -> str:
        """`Random read`, `Random mix, reads`, `Random read, bandwidth`."""
        mixed = self.direction in ("read", "write") and self.direction not in self.chart
        parts = (chart_words(self.chart), f"{self.direction}s" if mixed else "", "bandwidth" if self._is_other else "")
        return ", ".join(filter(None, parts))

    @property
    def order(self) -> tuple[int, str, str, bool]:
        return chart_order(self.chart), self.chart, self.direction, self._is_other

    @property
    def _is_other(self) -> bool:
        """Bandwidth of a random pattern, because some products state no IOPS."""
        return self.choice == RATE and is_random(self.chart) and self.metric == _BANDWIDTH


def metric_of(choice: str, chart: str, found: Collection[Sequence[ResultRow]]) -> Metric:
    """The metric of one workload; `found` has the rows of each product. A random pattern has IOPS, unless more products
    state its bandwidth: two metrics are never mixed in a row."""
    if choice != RATE:
        return METRICS[choice]
    if not is_random(chart):
        return _BANDWIDTH
    return max((_IOPS, _BANDWIDTH), key=lambda metric: sum(_has(metric, rows) for rows in found))


def percentile_of(found: Collection[Sequence[ResultRow]]) -> str:
    """The percentile of headline numbers: p99, unless more products state p95."""
    return max((P99, P95), key=lambda choice: sum(_has(METRICS[choice], rows) for rows in found))


def _has(metric: Metric, rows: Sequence[ResultRow]) -> bool:
    return any(metric.of(row) is not None for row in rows)
