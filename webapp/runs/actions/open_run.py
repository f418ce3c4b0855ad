"""The run that an action changes."""

from webapp.core.errors import Refusal
from webapp.runs.models import (
    Run,
    RunState,
)
from webapp.runs.states import ENDED_RUN_STATES


def locked_open_run(run: Run) -> Run:
    """The run, locked, if it may still be changed."""
    locked = Run.objects.select_for_update(no_key=True).get(pk=run.pk)
    if locked.state in ENDED_RUN_STATES:
        words = f"Run {locked.number} has ended: it is {locked.get_state_display().lower()}."
    elif locked.cancel_requested_at:
        words = f"Run {locked.number} is being cancelled."
    elif locked.state == RunState.CLOSING:
        words = f"All trials of run {locked.number} have ended; its settings are being restored."
    else:
        return locked
    raise Refusal("run_not_open", words)
