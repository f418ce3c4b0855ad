"""Totals of mixed workloads, which have one result per direction."""

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from webapp.hosts.names import BESIDE
from webapp.plans.factors import STREAM
from webapp.results.metrics import METRICS
from webapp.results.models import BOTH
from webapp.results.reading.rows import ResultRow

_WITHOUT_LATENCIES: Mapping[str, Any] = {
    "latency_kind": "",
    **dict.fromkeys(metric.column for metric in METRICS.values() if metric.shown_as == "latency" and metric.column),
}


def totals(rows: Sequence[ResultRow]) -> Sequence[ResultRow]:
    """One row for each trial, or for each of its named streams: IOPS and bandwidth are sums. A row of several
    directions has no latencies."""
    if len({row.direction for row in rows}) < 2:
        return rows
    by_trial: dict[tuple[int, int, object], list[ResultRow]] = {}
    for row in rows:
        by_trial.setdefault((row.source, row.trial, row.point.get(STREAM)), []).append(row)
    return tuple(_total(directions) for directions in by_trial.values())


def _total(directions: Sequence[ResultRow]) -> ResultRow:
    apart = [row for row in directions if row.direction != BOTH]  # a sum that the tool states too counts once
    directions = apart or directions
    first, *others = sorted(directions, key=lambda row: row.direction)
    if not others:
        return first
    return replace(
        first,
        iops=_sum([row.iops for row in directions]),
        bytes_per_s=_sum([row.bytes_per_s for row in directions]),
        direction=BESIDE.join(row.direction for row in (first, *others)),
        summed_ids=tuple(row.id for row in others),
        metrics={name: value for row in directions for name, value in row.metrics.items()},
        **_WITHOUT_LATENCIES,
    )


def _sum(values: Sequence[float | None]) -> float | None:
    """None if the value of a direction is unknown."""
    known = [value for value in values if value is not None]
    return sum(known) if len(known) == len(values) else None
