"""Total latency and completion latency, which leaves out the time of the submission: values that are not compared.

Our own runs measure total latency, with few exceptions; fio's own defaults, and so many imports, have percentiles of
completion latency (decision 7).
"""

from collections.abc import Iterable, Mapping

from webapp.results.metrics import Metric
from webapp.results.reading.rows import ResultRow

LABELS = {"lat": "total latency", "clat": "completion latency"}
NOT_COMPARED = "one latency includes the time of the submission and the other does not"
Kinds = frozenset[str]


def kinds_of(rows: Iterable[ResultRow], metric: Metric) -> Kinds:
    """Empty for other metrics, and for tools that do not say what they measure."""
    if metric.shown_as != "latency" or not metric.column:
        return frozenset()
    return frozenset([row.latency_kind for row in rows]) - {""}


def mixed_kinds(series: Mapping[str, Kinds]) -> str:
    """A warning if series have different kinds of latency, or a series has both; else "". Keys are names."""
    if len(frozenset().union(*series.values())) < 2:
        return ""
    each = "; ".join(
        f"{name}: {' and '.join(map(LABELS.__getitem__, sorted(own)))}" for name, own in series.items() if own
    )
    return (
        f"Latencies of different kinds ({each}). Completion latency leaves out the time of the submission, so these "
        "values are not compared."
    )
