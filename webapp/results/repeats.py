"""Skips the repeats of a run that are not needed, because the spread between its trials is known well enough.

All repeats are planned when a run starts. With `spread_percent` in its plan, the rest is cancelled on a host once the
95 % interval of every point there, by Student's t over its repeats, is within that percentage of its mean. A repeat is
a block: it is run completely or not at all, because comparisons average inside blocks
(docs/understanding/comparisons.md).
"""

from collections import defaultdict
from collections.abc import Sequence
from math import sqrt
from statistics import fmean, stdev
from uuid import UUID

from django.db import transaction
from django.db.models import QuerySet, Sum

from webapp.core.services import audit
from webapp.core.statistics import student_t
from webapp.plans.document import read
from webapp.results.models import Result
from webapp.runs.models import ENDED_TRIAL_STATES, Run, Trial, TrialState
from webapp.runs.states import cancel_these

SPREAD_KNOWN = "spread_known"  # reason code of the trials that are not needed


@transaction.atomic
def skip_known_repeats(run_id: UUID, host_id: UUID) -> int:
    """Cancel the host's planned trials of the run if they are not needed; return their number."""
    document = read(Run.objects.select_related("version").get(pk=run_id).version.document)
    if not document.spread_percent:
        return 0
    run = Run.objects.select_for_update(no_key=True).get(pk=run_id)
    here = run.trials.all() if run.one_at_a_time else run.trials.filter(host=host_id)
    planned, repeats = left_of(here)
    if repeats < document.repeats_min:
        return 0
    if not _all_known(run, planned, document.repeats_min, document.spread_percent / 100):
        return 0
    fields = {"repeats": repeats, "percent": document.spread_percent}
    cancel_these(run, planned, code=SPREAD_KNOWN, fields=fields)
    audit(by=None, action="run.skip_repeats", on=run, detail={"host": str(host_id), "trials": len(planned), **fields})
    return len(planned)


def left_of(trials: QuerySet[Trial]) -> tuple[list[Trial], int]:
    """The planned ones, locked, and the number of repeats that are complete; 0 while one of them is running."""
    planned = list(
        trials.filter(state=TrialState.PLANNED).select_for_update(no_key=True, of=("self",)).order_by("index")
    )
    repeats = min((trial.repeat for trial in planned), default=1) - 1
    running = trials.filter(repeat__lte=repeats).exclude(state__in=ENDED_TRIAL_STATES)
    return planned, 0 if running.exists() else repeats


def _all_known(run: Run, planned: Sequence[Trial], least: int, allowed: float) -> bool:
    rates: dict[tuple[UUID, str], list[float]] = defaultdict(list)
    valid = Result.objects.filter(run=run, invalid=False).order_by()
    for target, point, _trial, rate in valid.values_list("trial__target", "trial__point_key", "trial").annotate(
        Sum("bytes_per_s")
    ):
        rates[target, point].append(rate)
    found = [rates[trial.target_id, trial.point_key] for trial in planned]
    return all(len(each) >= least and interval(each) <= allowed for each in found)


def interval(rates: Sequence[float]) -> float:
    """Half width of the 95 % interval of the mean, as a fraction of it; infinite for fewer than two values."""
    if len(rates) < 2 or not any(rates):
        return float("inf")
    return student_t(len(rates) - 1) * stdev(rates) / sqrt(len(rates)) / fmean(rates)
