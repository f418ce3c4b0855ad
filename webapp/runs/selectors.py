"""Selectors of runs."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Any
from uuid import UUID

import msgspec
from django.db.models import Count, OuterRef, Q, QuerySet, Subquery, prefetch_related_objects
from django.db.models.functions import Coalesce
from django.utils import timezone

from webapp.core import formatting
from webapp.plans.points import target_count
from webapp.runs.durations import Pace, Work, paces, work_of
from webapp.runs.models import (
    ACTIVE_ATTEMPT_STATES,
    ACTIVE_TRIAL_STATES,
    ENDED_TRIAL_STATES,
    Attempt,
    AttemptKind,
    AttemptState,
    Run,
    RunState,
    Transition,
    Trial,
    TrialState,
)
from worker.contract.items import Phase, PhaseName
from worker.recipes.steps import step_words

# The current phase of an attempt, as a sentence for people.


def doing(attempt: Attempt) -> str:
    """The phase, or the attempt's state before the first reported phase."""
    return phase_sentence(attempt) or attempt.get_state_display().lower()


def phase_sentence(attempt: Attempt) -> str:
    """“writing 1 file of 256 MiB before stream 0, 41 %”; "" before the first phase."""
    if not attempt.phase:
        return ""
    phase = msgspec.convert(attempt.phase, Phase)
    percent = "" if phase.percent is None else f", {phase.percent:.0f} %"
    return _SENTENCES[phase.name](phase) + percent


def _purge(phase: Phase) -> str:
    takes = "" if phase.expected_s is None else f", which takes about {formatting.duration(phase.expected_s)}"
    return f"purging {phase.target} by {phase.method}{takes}"


def _prefill(phase: Phase) -> str:
    size = "" if phase.file_bytes is None else f" of {formatting.bytes_binary(phase.file_bytes)}"
    what = f"{phase.files} {'file' if phase.files == 1 else 'files'}" if phase.files else "the device"
    return f"writing {what}{size} before stream {phase.stream}"


def _prepare(phase: Phase) -> str:
    return f"step before the measurement: {step_words(phase.step)}" if phase.step else "preparing"


_SENTENCES: Mapping[PhaseName, Callable[[Phase], str]] = {
    PhaseName.GUARD: lambda _: "checking the target",
    PhaseName.PURGE: _purge,
    PhaseName.LAYOUT: lambda phase: f"building the layout {phase.layout}",
    PhaseName.SETTINGS: lambda _: "changing settings",
    PhaseName.PREFILL: _prefill,
    PhaseName.PREPARE: _prepare,
    PhaseName.COMMON_START: lambda _: "waiting for the other hosts",
    PhaseName.RUN: lambda _: "measuring",
}


@dataclass(frozen=True)
class RunProgress:
    """The progress of a run. With several hosts, `running` and `attempt` are of the host that started last."""

    total: int
    done: int
    failed: int
    cancelled: int
    lost: int  # lost attempts, retried or not
    running: Trial | None
    attempt: Attempt | None  # may be a close-run attempt
    elapsed_s: float
    paused_s: float  # thereof in pauses
    seconds_left: float | None  # None until a trial is done, and while a trial takes longer than those before it


def runs_list() -> QuerySet[Run]:
    """All runs, latest first, with counts of their trials as `done_count`, `failed_count` and `ended_count`.

    Only the trials of fetched runs are counted.
    """
    return (
        Run.objects.select_related("version__plan", "created_by", "occurrence")
        .annotate(
            done_count=count_of_trials(Q(state=TrialState.DONE)),
            failed_count=count_of_trials(Q(state=TrialState.FAILED)),
            ended_count=count_of_trials(Q(state__in=ENDED_TRIAL_STATES)),
        )
        .order_by("-number")
    )


def count_of_trials(wanted: Q) -> Coalesce:
    """Subquery: the number of each run's trials that match. A join would count the trials of all runs."""
    matching = Trial.objects.filter(wanted, run=OuterRef("pk")).order_by().values("run")
    return Coalesce(Subquery(matching.annotate(count=Count("*")).values("count")), 0)


def read_further(trials: Iterable[Trial]) -> None:
    """Fetch the further targets of these trials. One query, or none."""
    prefetch_related_objects([trial for trial in trials if target_count(trial.point) > 1], "further")


def progress(run: Run) -> RunProgress:
    """The progress of a run, with a fixed number of queries."""
    per_host = _counts(run)
    states: Counter[str] = Counter()
    for counts in per_host.values():
        states += counts
    active = list(
        run.attempts.filter(state__in=ACTIVE_ATTEMPT_STATES)
        .select_related("trial__target", "host")
        .order_by("-sequence")
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
        paused_s=_paused_s(run),
        seconds_left=_seconds_left(run, per_host, active),
    )


def _counts(run: Run) -> dict[UUID, Counter[str]]:
    per_host: dict[UUID, Counter[str]] = {}
    for host_id, state, count in run.trials.order_by().values_list("host_id", "state").annotate(Count("pk")):
        per_host.setdefault(host_id, Counter())[state] = count
    return per_host


def working_s(run: Run) -> float:
    """Seconds since its start, without its pauses."""
    return _elapsed_s(run) - _paused_s(run)


def _elapsed_s(run: Run) -> float:
    return ((run.ended_at or timezone.now()) - _began(run)).total_seconds()


def _began(run: Run) -> datetime:
    return run.started_at or run.created_at


def _paused_s(run: Run) -> float:
    """Seconds in pauses since its start, including the current pause."""
    pauses = Transition.objects.filter(run=run, trial=None).filter(Q(before=RunState.PAUSED) | Q(after=RunState.PAUSED))
    total, since = 0.0, None
    for at, after in [*pauses.order_by("at", "id").values_list("at", "after"), (run.ended_at or timezone.now(), "")]:
        if since is not None:
            total += max(0.0, (at - since).total_seconds())
        since = max(at, _began(run)) if after == RunState.PAUSED else None
    return total


Counts = frozenset[tuple[UUID, str, int]]  # host, state of trials, how many


@lru_cache(maxsize=64)
def _rest(run: UUID, _counts: Counts) -> tuple[Pace | None, Mapping[tuple[Any, ...], Work]]:
    """The run's pace, and its remaining work by host and state. Cached until the counts of its trials change."""
    left = Trial.objects.filter(run=run).exclude(state__in=ENDED_TRIAL_STATES)
    return paces(Attempt.objects.filter(run=run)).get(run), work_of(left, "host_id", "state")


def _seconds_left(run: Run, per_host: dict[UUID, Counter[str]], active: list[Attempt]) -> float | None:
    """The remaining time of the slowest host, because hosts work in parallel unless the trials of the run never
    overlap; None if unknown."""
    if run.ended_at:
        return 0.0
    counts = frozenset((host, state, count) for host, states in per_host.items() for state, count in states.items())
    pace, rest = _rest(run.pk, counts)
    if pace is None:
        return None
    now = timezone.now()
    spent = {attempt.host_id: (now - attempt.created_at).total_seconds() for attempt in active if attempt.trial}
    left: dict[UUID, float] = {}
    for (host, state), work in rest.items():
        seconds = pace.seconds(work)
        if seconds is None:
            return None
        under_way = spent.get(host, 0.0) if state in ACTIVE_TRIAL_STATES else 0.0
        left[host] = left.get(host, 0.0) + max(0.0, seconds - under_way)
    created, ended = sum(n for *_, n in counts), sum(n for _, state, n in counts if state in ENDED_TRIAL_STATES)
    if run.budget is not None and created > ended:  # trials that the search will add take as long as those left
        left = {host: each * (run.trial_count - ended) / (created - ended) for host, each in left.items()}
    seconds_left = sum(left.values()) if run.one_at_a_time else max(left.values(), default=0.0)
    return seconds_left or None  # unknown if a trial takes longer than those before it
