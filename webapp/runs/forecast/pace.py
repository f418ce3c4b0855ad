"""Estimates the remaining time of a run from its done trials.

    timed     run times and ramps, plus the median overhead for each trial
    amounts   the median duration of trials with an amount, for each trial

A trial that ends by time has `runtime_s` in its workload, and perhaps `ramp_s`, whatever its engine; PostgreSQL adds
them up. Durations are from the order to the end, by the server's clock. Medians, because a trial during an outage,
whose end is reported late, is not representative. Run times are summed separately, because a plan may mix long and
short trials. A stop rule ends trials early, so their overhead beyond the maximum time may be negative.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.db.models import Aggregate, Count, ExpressionWrapper, F, FloatField, Q, QuerySet, Sum
from django.db.models.fields.json import KeyTextTransform
from django.db.models.functions import Cast, Coalesce, Extract

from webapp.runs.models import Attempt, AttemptKind, AttemptState, Trial


class Median(Aggregate):
    """PostgreSQL's percentile_cont(0.5): the mean of the two middle values if their number is even."""

    function = "percentile_cont"
    template = "%(function)s(0.5) within group (order by %(expressions)s)"
    arity = 1


@dataclass(frozen=True)
class Work:
    """Remaining trials."""

    trials: int
    timed: int  # trials with a run time
    own_s: float  # the sum of their times and ramps


@dataclass(frozen=True)
class Pace:
    """Medians of a run's done trials; None if there is no trial of the kind."""

    besides_s: float | None = None
    amount_s: float | None = None

    def seconds(self, work: Work, *, besides_s: float | None = None) -> float | None:
        """Estimated seconds of the work; None if unknown. `besides_s`: the overhead before a timed trial is done."""
        besides = besides_s if self.besides_s is None else self.besides_s
        amounts = work.trials - work.timed
        if (work.timed and besides is None) or (amounts and self.amount_s is None):
            return None
        return max(0.0, work.own_s + work.timed * (besides or 0.0)) + amounts * (self.amount_s or 0.0)


def _own(workload: str) -> Any:
    """The run time of a trial in seconds; null for an amount."""
    ramp = Coalesce(Cast(KeyTextTransform("ramp_s", workload), FloatField()), 0.0)
    return Cast(KeyTextTransform("runtime_s", workload), FloatField()) + ramp


def work_of(trials: QuerySet[Trial], *by: str) -> Mapping[tuple[Any, ...], Work]:
    """The trials' work, grouped by these columns."""
    own = _own("workload")
    rows = trials.order_by().values_list(*by).annotate(trials=Count("pk"), timed=Count(own), own=Sum(own))
    return {tuple(key): Work(count, timed, own_s or 0.0) for *key, count, timed, own_s in rows}


def paces(attempts: QuerySet[Attempt]) -> Mapping[UUID, Pace]:
    """Pace by run, from the done trials among these attempts. One query."""
    done = attempts.filter(kind=AttemptKind.TRIAL, state=AttemptState.DONE)
    done = done.filter(ended_at__gt=F("created_at"))  # not if the server's clock was set back meanwhile
    took = Extract(F("ended_at") - F("created_at"), "epoch")
    besides = ExpressionWrapper(took - F("own"), output_field=FloatField())
    rows = done.annotate(own=_own("trial__workload")).order_by().values_list("run_id")
    medians = rows.annotate(besides=Median(besides), amount=Median(took, filter=Q(own=None)))
    return {run: Pace(besides_s, amount_s) for run, besides_s, amount_s in medians if run is not None}
