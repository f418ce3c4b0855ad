"""The only sender of orders: gives an idle host its next thing to do.

First what is to be put back (close_run, for runs all of whose trials on this host have ended), then the
planned trials of the oldest open run, by index. An attempt and its lock are claimed in one transaction;
the database's constraints decide between two that try at once, and the loser does nothing. The order is
published after the commit; where the broker is away the next tick publishes it again.

A host that has not been heard for a while gets nothing: what waits for it is given to it when it is back,
after it was asked what became of what it had.
"""

import logging
from datetime import timedelta
from uuid import UUID

from django.conf import settings
from django.db import IntegrityError, transaction
from django.db.models import Exists, OuterRef, QuerySet
from django.utils import timezone

from webapp.hosts.models import Host, HostState
from webapp.runs.models import (
    ACTIVE_ATTEMPT_STATES,
    ENDED_TRIAL_STATES,
    OPEN_RUN_STATES,
    Attempt,
    AttemptKind,
    AttemptState,
    Run,
    RunState,
    TargetLock,
    Trial,
    TrialState,
)
from webapp.runs.orders import publish
from webapp.runs.states import StaleMove, move_run, move_trial

log = logging.getLogger(__name__)

# An idle worker greets every minute; two missed greetings and it counts as away (s).
HEARD_WITHIN_SECONDS = 150


def dispatch_host(host_id: UUID) -> Attempt | None:
    """Give the host its next order if it is idle; None where there is nothing, or somebody else was first."""
    if not _idle(host_id):
        return None
    try:
        with transaction.atomic():
            attempt = _claim_close(host_id) or _claim_trial(host_id)
            if attempt is not None:
                transaction.on_commit(lambda: _publish(attempt))
            return attempt
    except (IntegrityError, StaleMove) as error:
        log.debug("host %s: somebody else was first: %s", host_id, error)
        return None


def request_inventory(host_id: UUID) -> Attempt | None:
    """Ask an idle host to look at its hardware again; None where it is busy."""
    try:
        with transaction.atomic():
            attempt = _create(AttemptKind.INVENTORY, host_id)
            transaction.on_commit(lambda: _publish(attempt))
            return attempt
    except IntegrityError:
        return None


def _publish(attempt: Attempt) -> None:
    """After the commit nothing may be raised: the caller's work is done, and the tick repairs."""
    try:
        publish(attempt)
    except Exception:
        log.exception("attempt %s: publishing failed, it will be tried again", attempt.pk)


def _idle(host_id: UUID) -> bool:
    heard = timezone.now() - timedelta(seconds=HEARD_WITHIN_SECONDS)
    active = Attempt.objects.filter(host=OuterRef("pk"), state__in=ACTIVE_ATTEMPT_STATES)
    hosts = Host.objects.filter(pk=host_id, state=HostState.ACTIVE, last_seen_at__gte=heard)
    return hosts.filter(~Exists(active)).exists()


def _claim_close(host_id: UUID) -> Attempt | None:
    run = runs_to_close(host_id).order_by("created_at").first()
    if run is None:
        return None
    if run.state == RunState.RUNNING and not run.trials.exclude(state__in=ENDED_TRIAL_STATES).exists():
        move_run(run, RunState.CLOSING)
    return _create(AttemptKind.CLOSE_RUN, host_id, run=run)


def _claim_trial(host_id: UUID) -> Attempt | None:
    trial = _next_trial(host_id)
    if trial is None:
        return None
    if trial.run.state == RunState.QUEUED:  # the run before the trial: everybody locks in this order
        move_run(trial.run, RunState.RUNNING)
    number = 1 + trial.attempts.count() if trial.tried else 1  # type: ignore[attr-defined]
    attempt = _create(AttemptKind.TRIAL, host_id, run=trial.run, trial=trial, number=number)
    TargetLock.objects.create(lock_group=trial.target.lock_group, attempt=attempt)
    move_trial(trial, TrialState.DISPATCHED, attempt=attempt, attempts_left=trial.attempts_left - 1)
    return attempt


def _next_trial(host_id: UUID) -> Trial | None:
    planned = Trial.objects.filter(host=host_id, state=TrialState.PLANNED, attempts_left__gt=0)
    planned = planned.filter(run__state__in=OPEN_RUN_STATES, run__cancel_requested_at=None)
    planned = planned.annotate(tried=Exists(Attempt.objects.filter(trial=OuterRef("pk"))))
    return planned.select_related("run", "target").order_by("run__created_at", "run__number", "index").first()


def runs_to_close(host_id: UUID) -> QuerySet[Run]:
    """Open runs that sent this host something, have nothing more for it, and have not put its settings back."""
    sent = Attempt.objects.filter(run=OuterRef("pk"), host=host_id, kind=AttemptKind.TRIAL)
    unended = Trial.objects.filter(run=OuterRef("pk"), host=host_id).exclude(state__in=ENDED_TRIAL_STATES)
    closed = Attempt.objects.filter(run=OuterRef("pk"), host=host_id, kind=AttemptKind.CLOSE_RUN)
    closed = closed.exclude(state=AttemptState.LOST)
    return Run.objects.filter(~Exists(unended), ~Exists(closed), Exists(sent), state__in=OPEN_RUN_STATES)


def _create(
    kind: AttemptKind, host_id: UUID, *, run: Run | None = None, trial: Trial | None = None, number: int = 1
) -> Attempt:
    lease_until = timezone.now() + timedelta(seconds=settings.LEASE_SECONDS)
    return Attempt.objects.create(
        kind=kind, host_id=host_id, run=run, trial=trial, number=number, lease_until=lease_until
    )
