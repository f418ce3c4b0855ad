"""The failure limit of a plan: after too many consecutive failed trials, a host gets no more trials of the run.

A missing drive or tool makes all following trials fail, so they would only cost time. Only done and failed trials
count, not skipped or cancelled ones. Other hosts of the run continue. Running the failed trials again includes the
cancelled ones.
"""

from uuid import UUID

from webapp.core.services import audit
from webapp.plans.document import read
from webapp.runs.models import Run, Trial, TrialState
from webapp.runs.states import cancel_these

STOPPED = "stopped"  # reason code of trials that the limit cancelled


def stop_failing(run: Run, host_id: UUID) -> int:
    """Cancel the host's planned trials if the limit is reached; return their number. Call it with the run locked."""
    most = read(run.version.document).stop_after
    if not most or not _failed_in_a_row(run, host_id, most):
        return 0
    planned = run.trials.select_for_update(no_key=True, of=("self",)).select_related("host")
    left = list(planned.filter(host=host_id, state=TrialState.PLANNED).order_by("index"))
    if left:
        cancel_these(run, left, code=STOPPED, fields={"host": str(left[0].host), "failures": most})
        audit(by=None, action="run.stop_host", on=run, detail={"host": str(left[0].host), "trials": len(left)})
    return len(left)


def _failed_in_a_row(run: Run, host_id: UUID, most: int) -> bool:
    """The last `most` trials if all of them failed; else none."""
    failed = Trial.objects.filter(run=run, host=host_id, state=TrialState.FAILED).order_by("-ended_at")
    times = list(failed.values_list("ended_at", flat=True)[:most])
    if len(times) < most:
        return False
    return not run.trials.filter(host=host_id, state=TrialState.DONE, ended_at__gte=times[-1]).exists()
