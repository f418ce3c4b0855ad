"""The highest IOPS of a point in a run, from which the rates of its shares of the load follow."""

from typing import Any
from uuid import UUID

from django.contrib.postgres.aggregates import ArrayAgg

from webapp.core.statistics import mean_of
from webapp.results.models import Result
from webapp.runs.models import TrialState


def maximum_of(run: UUID, target_id: UUID, part: str, key: str, **_: Any) -> tuple[float, ...]:
    """Mean IOPS of each direction over its valid trials, as pages show it, reads first; () without any."""
    rows = Result.objects.filter(run=run, point_key=key, target=target_id, invalid=False)
    rows = rows.filter(trial__part=part, trial__state=TrialState.DONE).order_by("direction")
    by_direction = rows.values_list("direction").annotate(values=ArrayAgg("iops"))
    return tuple(mean_of(values) for _, values in by_direction)
