"""The failure limit of a plan: after too many consecutive failed trials, a host gets no more trials of the run.

A missing drive or tool makes all following trials fail, so they would only cost time. Only done and failed trials
count, not skipped or cancelled ones. Other hosts of the run continue, unless its trials run one after another. Running
the failed trials again includes the cancelled ones.

Steps that are done once for a part write much, and each trial that ends before it measures repeats them. After
`most_preparations` such trials, also skipped ones, the targets get no more trials of the part, so that the bound of the
written bytes holds.
"""

from uuid import UUID

from django.db.models import QuerySet

from webapp.core.services import audit
from webapp.plans.document import read
from webapp.plans.expected_time import most_preparations
from webapp.runs.dispatch.preparation import failed_preparations
from webapp.runs.models import Run, Trial, TrialState
from webapp.runs.states import cancel_these

STOPPED = "stopped"  # reason code of trials that the limit cancelled


def stop_failing(run: Run, host_id: UUID) -> int:
    """Cancel the host's planned trials if the limit is reached; return their number. Call it with the run locked."""
    most = read(run.version.document).stop_after
    trials = run.trials.all() if run.one_at_a_time else run.trials.filter(host=host_id)
    if not most or not _failed_in_a_row(trials, most):
        return 0
    planned = trials.filter(state=TrialState.PLANNED).select_for_update(no_key=True, of=("self",))
    left = list(planned.select_related("host").order_by("index"))
    if left:
        cancel_these(run, left, code=STOPPED, fields={"host": str(left[0].host), "failures": most})
        audit(by=None, action="run.stop_host", on=run, detail={"host": str(left[0].host), "trials": len(left)})
    return len(left)


def stop_unprepared(run: Run, trial: Trial) -> int:
    """Cancel the planned trials of the same part and target if their preparation has failed too often; return their
    number. Call it with the run locked."""
    failed = failed_preparations(trial)
    if not failed or failed < (most := most_preparations(read(run.version.document).stop_after)):
        return 0
    planned = run.trials.filter(state=TrialState.PLANNED, part=trial.part, target=trial.target_id)
    left = list(planned.select_for_update(no_key=True, of=("self",)).order_by("index"))
    cancel_these(run, left, code=STOPPED, fields={"target": str(trial.target), "preparations": most})
    audit(by=None, action="run.stop_part", on=run, detail={"target": str(trial.target), "trials": len(left)})
    return len(left)


def _failed_in_a_row(trials: QuerySet[Trial], most: int) -> bool:
    """Whether the last `most` trials failed."""
    failed = trials.filter(state=TrialState.FAILED).order_by("-ended_at")
    times = list(failed.values_list("ended_at", flat=True)[:most])
    if len(times) < most:
        return False
    return not trials.filter(state=TrialState.DONE, ended_at__gte=times[-1]).exists()
