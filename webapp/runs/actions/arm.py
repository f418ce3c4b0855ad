"""Arm a run again, and disarm it."""

from collections.abc import Sequence

from django.db import transaction

from webapp.core.errors import Refusal
from webapp.core.models import User
from webapp.core.services import audit
from webapp.runs.actions.open_run import locked_open_run
from webapp.runs.arming import arm, armed_targets, is_armed, refuse_untyped
from webapp.runs.dispatch.dispatcher import dispatch_after_commit
from webapp.runs.models import (
    Run,
)


@transaction.atomic
def arm_run(*, run: Run, serials: Sequence[str], by: User | None) -> None:
    """Arm a run again with the serial numbers that a person typed.

    Raises Refusal run_not_open, nothing_to_arm or not_armed.
    """
    locked = locked_open_run(run)
    targets = armed_targets(locked)
    if not targets:
        raise Refusal(
            "nothing_to_arm", f"The remaining trials of run {locked.number} overwrite nothing. Arming is not needed."
        )
    refuse_untyped(targets, serials)
    arm(run=locked, serials=[target.arming_serial for target in targets], targets=targets, by=by)
    dispatch_after_commit(locked)
    run.refresh_from_db()


@transaction.atomic
def disarm_run(*, run: Run, by: User | None) -> bool:
    """Disarm a run: it overwrites nothing until somebody arms it again. False if it was not armed.

    The current trial continues to its end: to stop it, skip it or cancel the run.
    """
    locked = Run.objects.select_for_update(no_key=True).get(pk=run.pk)
    if not is_armed(locked) or locked.ended_at:
        return False
    locked.armed_until = None
    locked.save(update_fields=["armed_until"])
    audit(by=by, action="run.disarm", on=locked, detail={"serials": locked.armed_serials})
    run.refresh_from_db()
    return True
