"""The purge and the steps before a trial, with those that are done once for all trials of a part.

The first trial of the part on its targets does them. If it fails before it measures, the next one does them again, so
that no trial measures unprepared targets, until the failure limit (failure_limit).
"""

from django.db.models import Q, QuerySet

from webapp.plans.expected_time import step_bytes
from webapp.plans.layouts import made_kind
from webapp.plans.points import layout_of, steps_of
from webapp.plans.selectors import facts_of
from webapp.plans.steps import Preparation
from webapp.runs.models import Attempt, AttemptState, Trial
from worker.contract.items import PhaseName
from worker.contract.workload import TargetKind


def preparation_of(trial: Trial) -> Preparation:
    """One query if the part has steps that are done once."""
    steps = steps_of(trial.point)
    return steps.each if steps.once and _is_prepared(trial) else steps.first


def failed_preparations(trial: Trial) -> int:
    """How many attempts of the same part and targets have ended before they measured, so that the steps that are done
    once were or may have been done in vain; 0 once they are done. Orders that no host accepted do not count."""
    if not steps_of(trial.point).once or _is_prepared(trial):
        return 0
    taken = _alike(trial).exclude(state=AttemptState.LOST, accepted_at=None)
    return taken.order_by().values("trial", "number").distinct().count()  # several hosts have one attempt each


def _is_prepared(trial: Trial) -> bool:
    """Whether a trial of the same part and targets has measured something in this run."""
    return _alike(trial).filter(Q(phase__name=PhaseName.RUN) | Q(state=AttemptState.DONE)).exists()


def _alike(trial: Trial) -> QuerySet[Attempt]:
    return Attempt.objects.filter(trial__run=trial.run_id, trial__part=trial.part, trial__target=trial.target_id)


def largest_bytes(trial: Trial, before: Preparation) -> int:
    """The most that one of the steps writes to one target, on any of the trial's hosts."""
    layout = layout_of(trial.point)
    pairs = zip(trial.stream_targets, trial.stream_workloads, strict=True) if before.steps else ()
    return max(
        (
            step_bytes([step], work, made_kind(TargetKind(target.kind), layout), facts_of(target), layout)
            for target, work in pairs
            for step in before.steps
        ),
        default=0,
    )
