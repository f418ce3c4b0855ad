"""Tolerances: the largest change for the worse that passes, in percent, by metric."""

from collections.abc import Mapping

from webapp.core.errors import Refusal
from webapp.results.metrics import METRICS

DEFAULT_TOLERANCES = {"iops": 5.0, "latency_p99": 10.0}
MIN_TOLERANCE, MAX_TOLERANCE = 0.1, 1000.0
MAX_LOSS = 99.0  # of a metric of which higher is better


def checked_tolerances(tolerances: Mapping[str, float]) -> dict[str, float]:
    """In the order of the table of metrics. Raises Refusal."""
    if not tolerances:
        raise Refusal("tolerance_missing", "Enter a tolerance for at least one metric.")
    for key, percent in tolerances.items():
        metric = METRICS.get(key)
        if metric is None:
            raise Refusal("metric_unknown", f"There is no metric `{key}`. Use {', '.join(METRICS)}.")
        most = MAX_TOLERANCE if metric.lower_is_better else MAX_LOSS
        if not MIN_TOLERANCE <= percent <= most:
            words = f"The tolerance of {metric.label} is {percent:g} %. Enter {MIN_TOLERANCE:g} to {most:g} %."
            raise Refusal("tolerance_refused", words)
    return {key: float(tolerances[key]) for key in METRICS if key in tolerances}
