"""Reads about runs."""

from collections import Counter
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from django.db.models import Avg, Count, DurationField, ExpressionWrapper, F, OuterRef, Q, QuerySet, Subquery
from django.db.models.functions import Coalesce
from django.utils import timezone

from webapp.runs.models import (
    ACTIVE_ATTEMPT_STATES,
    ACTIVE_TRIAL_STATES,
    ENDED_TRIAL_STATES,
    Attempt,
    AttemptKind,
    AttemptState,
    Run,
    Trial,
    TrialState,
)


@dataclass(frozen=True)
class RunProgress:
    """How far a run is. With several hosts, `running` and `attempt` are of the one that began last."""

    total: int
    done: int
    failed: int
    cancelled: int
    lost: int  # attempts that were lost, tried again or not
    running: Trial | None
    attempt: Attempt | None  # also one that puts settings back
    elapsed_s: float
    seconds_left: float | None  # None until a trial is done


def runs_list() -> QuerySet[Run]:
    """All runs, latest first, with counts of their trials as `done_count`, `failed_count` and `ended_count`.

    Trials are counted for the runs that are read, not for all that there are.
    """
    return (
        Run.objects.select_related("version__plan", "created_by")
        .annotate(
            done_count=count_of_trials(Q(state=TrialState.DONE)),
            failed_count=count_of_trials(Q(state=TrialState.FAILED)),
            ended_count=count_of_trials(Q(state__in=ENDED_TRIAL_STATES)),
        )
        .order_by("-number")
    )


def count_of_trials(wanted: Q) -> Coalesce:
    """How many trials of each run are so. To be used instead of a join, which would count those of all runs."""
    found = Trial.objects.filter(wanted, run=OuterRef("pk")).order_by().values("run")
    return Coalesce(Subquery(found.annotate(count=Count("*")).values("count")), 0)


def progress(run: Run) -> RunProgress:
    """A fixed number of queries, however many trials there are."""
    per_host = _counts(run)
    states: Counter[str] = Counter()
    for counts in per_host.values():
        states += counts
    active = list(
        run.attempts.filter(state__in=ACTIVE_ATTEMPT_STATES)
        .select_related("trial__target", "host")
        .order_by("-created_at")
    )
    trials = [attempt.trial for attempt in active if attempt.trial]
    return RunProgress(
        total=run.trial_count,
        done=states[TrialState.DONE],
        failed=states[TrialState.FAILED],
        cancelled=states[TrialState.CANCELLED],
        lost=run.attempts.filter(kind=AttemptKind.TRIAL, state=AttemptState.LOST).count(),
        running=trials[0] if trials else None,
        attempt=active[0] if active else None,
        elapsed_s=_elapsed_s(run),
        seconds_left=_seconds_left(run, per_host, active),
    )


def _counts(run: Run) -> dict[UUID, Counter[str]]:
    per_host: dict[UUID, Counter[str]] = {}
    for host_id, state, count in run.trials.order_by().values_list("host_id", "state").annotate(Count("pk")):
        per_host.setdefault(host_id, Counter())[state] = count
    return per_host


def _elapsed_s(run: Run) -> float:
    began: datetime = run.started_at or run.created_at
    return ((run.ended_at or timezone.now()) - began).total_seconds()


def _seconds_left(run: Run, per_host: dict[UUID, Counter[str]], active: list[Attempt]) -> float | None:
    """The slowest host's remaining trials times the mean duration of those that are done. Hosts run side by side."""
    if run.ended_at:
        return 0.0
    mean_s = _mean_duration_s(run)
    if mean_s is None:
        return None
    now = timezone.now()
    spent = {attempt.host_id: (now - attempt.created_at).total_seconds() for attempt in active if attempt.trial}
    return max(_host_left_s(counts, mean_s, spent.get(host, 0.0)) for host, counts in per_host.items())


def _host_left_s(counts: Counter[str], mean_s: float, spent_s: float) -> float:
    under_way = sum(counts[state] for state in ACTIVE_TRIAL_STATES)
    waiting = sum(count for state, count in counts.items() if state not in ENDED_TRIAL_STATES) - under_way
    return waiting * mean_s + (max(0.0, mean_s - spent_s) if under_way else 0.0)


def _mean_duration_s(run: Run) -> float | None:
    took = ExpressionWrapper(F("ended_at") - F("created_at"), output_field=DurationField())
    done = run.attempts.filter(kind=AttemptKind.TRIAL, state=AttemptState.DONE)
    mean: timedelta | None = done.aggregate(mean=Avg(took))["mean"]
    return mean.total_seconds() if mean is not None else None
