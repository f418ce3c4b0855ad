"""The stop rule of a plan: a host on which too many trials in a row failed gets no more of the run.

A drive that has gone or a tool that is missing fails every trial that follows; the rest would only cost time and
fill the report. Only trials that are done or failed count: what was skipped or cancelled says nothing. Other hosts of
the run go on. What was not started can be run again with what failed.
"""

from uuid import UUID

from webapp.core.services import audit
from webapp.plans.document import read
from webapp.runs.models import Run, Trial, TrialState
from webapp.runs.states import cancel_these

STOPPED = "stopped"  # reason code of trials that the rule left out


def stop_failing(run: Run, host_id: UUID) -> int:
    """Cancel what is planned on the host if the rule says so; how many trials. Call with the run locked."""
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
    """The last `most` failures, and nothing done since the first of them."""
    failed = Trial.objects.filter(run=run, host=host_id, state=TrialState.FAILED).order_by("-ended_at")
    times = list(failed.values_list("ended_at", flat=True)[:most])
    if len(times) < most:
        return False
    return not run.trials.filter(host=host_id, state=TrialState.DONE, ended_at__gte=times[-1]).exists()
