"""The page of all metrics of results."""

from dev.docs.table import table
from webapp.analysis.trial_metrics import COMPARED
from webapp.results.metrics import METRICS, Metric
from worker.recipes import ENGINES

HEAD = """# Metrics

A result has a value for each metric that its engine measured, for each direction (read, write, trim). The API and
exports use the key and the stored unit; the pages show three significant digits in the unit that fits. Latency is fio's
total latency, from the submission of an I/O to its completion. The rate of a trial is the sum over its streams;
latencies are those of all I/Os together.

A metric of *whole trials* is computed when results are compared: CPU time, power, temperature, price and share of the
ceiling, where they are known. It has one value for all directions, and is not in lists and exports of results. Trends
show only stored metrics; comparisons, verdicts and acceptance tests know all of them.

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
        for metric in COMPARED.values()
    ]
    return HEAD + table(("key", "label", "stored unit", "better", "engines"), rows) + FOOT


def _of(metric: Metric) -> str:
    """The engines with a metric of their own; metrics in columns exist for all. Others are computed for whole trials
    when they are compared."""
    if metric.column:
        return "all"
    if metric.key not in METRICS:
        return "whole trials"
    return ", ".join(
        workload.engine_name()
        for workload, engine in ENGINES.items()
        if metric.key in {own.name for own in engine.METRICS}
    )
