"""A mixed workload has one result per direction; the trial's total is their sum."""

from collections.abc import Sequence

from msgspec.structs import replace

from webapp.compare.dimensions import Row
from webapp.hosts.names import BESIDE


def totals(rows: Sequence[Row]) -> Sequence[Row]:
    """One row for each trial. Only for metrics that add up: IOPS and bandwidth."""
    if len({row.direction for row in rows}) < 2:
        return rows
    by_trial: dict[tuple[int, int], list[Row]] = {}
    for row in rows:
        by_trial.setdefault((row.run, row.trial), []).append(row)
    return tuple(_total(directions) for directions in by_trial.values())


def _total(directions: Sequence[Row]) -> Row:
    first, *others = sorted(directions, key=lambda row: row.direction)
    if not others:
        return first
    return replace(
        first,
        value=sum(row.value for row in directions),
        direction=BESIDE.join(row.direction for row in (first, *others)),
        further=tuple(row.id for row in others),
    )
