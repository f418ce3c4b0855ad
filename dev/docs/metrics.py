"""The page of all metrics of results."""

from dev.docs.table import table
from webapp.results.metrics import METRICS, Metric
from worker.recipes import ENGINES

HEAD = """# Metrics

A result has a value for each metric that its engine measured, for each direction (read, write, trim). The API and
exports use the key and the stored unit; the pages show three significant digits in the unit that fits. Latency is fio's
total latency, from the submission of an I/O to its completion. The rate of a trial is the sum over its streams;
latencies are those of all I/Os together.

This page is generated from the table that the server uses.

"""
FOOT = """
A person can also enter values with a name and unit of their own:
[values entered by hand](../how-to/importing.md#values-entered-by-hand).
"""


def page() -> str:
    rows = [
        (
            f"`{metric.key}`",
            metric.label,
            f"`{metric.unit}`",
            "lower" if metric.lower_is_better else "higher",
            _of(metric),
        )
        for metric in METRICS.values()
    ]
    return HEAD + table(("key", "label", "stored unit", "better", "engines"), rows) + FOOT


def _of(metric: Metric) -> str:
    """The engines with a metric of their own; metrics in columns exist for all."""
    if metric.column:
        return "all"
    return ", ".join(
        workload.engine_name()
        for workload, engine in ENGINES.items()
        if metric.key in {own.name for own in engine.METRICS}
    )
