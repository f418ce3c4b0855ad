"""Pause a run and resume it.

While a run is paused, no new trial is sent; the current trial continues to its end. The run's settings are restored
after PAUSE_RESTORE_SECONDS, or earlier if another run needs the host; they are applied again on resume.
"""

from datetime import timedelta

from django.conf import settings
from django.db import transaction
from django.utils import timezone

from webapp.core.models import User
from webapp.core.services import audit
from webapp.runs.actions.open_run import locked_open_run
from webapp.runs.dispatch.dispatcher import dispatch_after_commit
from webapp.runs.models import (
    Run,
    RunState,
)
from webapp.runs.reasons import Fields, sentence
from webapp.runs.states import transition_run


@transaction.atomic
def pause_run(*, run: Run, by: User | None, code: str = "", fields: Fields | None = None) -> None:
    """Pause a run: send no more trials until it is resumed. Raises Refusal run_not_open.

    `code` and `fields` are the reason of an automatic pause: see runs.reasons. If a person pauses such a run, it counts
    as paused by that person.
    """
    locked = locked_open_run(run)
    if locked.state != RunState.PAUSED:
        transition_run(locked, RunState.PAUSED, code=code or "paused", fields=fields, by=by)
    elif by is None or locked.paused_by_id is not None:
        return
    Run.objects.filter(pk=locked.pk).update(paused_by=by, pause_code=code, pause_fields=fields or {})
    audit(by=by, action="run.pause", on=locked, detail={"reason": sentence(code, fields or {})})
    run.refresh_from_db()


@transaction.atomic
def resume_run(*, run: Run, by: User | None) -> None:
    """Resume a paused run. Raises Refusal run_not_open.

    After a pause of more than ARMING_SECONDS, a destructive run must be armed again if its arming has ended. (For a run
    started by a person it always has; the arming of a scheduled run may last longer.)
    """
    locked = locked_open_run(run)
    if locked.state == RunState.PAUSED:
        now = timezone.now()
        if locked.paused_at and now - locked.paused_at > timedelta(seconds=settings.ARMING_SECONDS):
            Run.objects.filter(pk=locked.pk, armed_until__lt=now).update(armed_until=None)
        before = RunState.RUNNING if locked.started_at else RunState.QUEUED
        transition_run(locked, before, code="resumed", by=by)
        audit(by=by, action="run.resume", on=locked)
        dispatch_after_commit(locked)
    run.refresh_from_db()
