/** Labels of metrics and of missing values, equal to those in `webapp/results/metrics.py`; `webapp/tests/test_labels.py` compares both. */

export const METRIC_LABELS = {
  iops: "IOPS",
  bytes_per_s: "Bandwidth",
  latency_p50: "p50",
  latency_p99: "p99",
  latency_p999: "p99.9",
} as const;

/** In place of a number: no valid result of the test point, or a result without this metric. */
export const MISSING = { notMeasured: "not measured", noValue: "no value" } as const;
