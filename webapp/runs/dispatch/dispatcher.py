"""The only sender of orders: gives an idle host its next thing to do.

First what is to be put back: close_run, for runs all of whose trials on this host have ended, and for runs
that are paused, once another run wants the host or the pause has lasted a while; a run that goes on after
that has its settings made anew. Then the planned trials, by index, of the run that already works on this
host, else of the first in the queue that may go on. An attempt and its lock are claimed in one transaction;
of two that try at once for a host, one waits for the other and then finds it busy. A host on which too many
of a run's trials failed in a row gets no more of it (stop_rule). The order is published after the commit;
where the broker is away the next tick publishes it again.

A host that has not been heard for a while gets nothing: what waits for it is given to it when it is back,
after it was asked what became of what it had. A host in maintenance, or in one of its maintenance windows, gets no
trials, but settings that a run has changed there are put back.
"""

import logging
from datetime import timedelta
from uuid import UUID

from django.conf import settings
from django.db import IntegrityError, transaction
from django.db.models import Exists, F, OuterRef, Q, QuerySet
from django.utils import timezone

from webapp.hosts.maintenance_windows import open_window
from webapp.hosts.models import Host, HostState
from webapp.runs.dispatch.ending import end_finished_run
from webapp.runs.dispatch.host_lock import lock_host
from webapp.runs.dispatch.locks import free, keys_of, take_locks
from webapp.runs.dispatch.orders import publish
from webapp.runs.dispatch.stop_rule import stop_failing
from webapp.runs.logs import about_attempt
from webapp.runs.models import (
    ACTIVE_ATTEMPT_STATES,
    ENDED_TRIAL_STATES,
    OPEN_RUN_STATES,
    Attempt,
    AttemptKind,
    AttemptState,
    Run,
    RunState,
    Trial,
    TrialState,
)
from webapp.runs.states import StaleTransition, transition_run, transition_trial

log = logging.getLogger(__name__)

# An idle worker registers every minute; it counts as offline after two missed registrations (s).
HEARD_WITHIN_SECONDS = 150


def dispatch_host(host_id: UUID) -> Attempt | None:
    """Give the host its next order if it is idle; None where there is nothing, or somebody else was first."""
    if not _idle(host_id):
        return None
    try:
        with transaction.atomic():
            lock_host(host_id)
            attempt = _claim(host_id, in_window=open_window(host_id) is not None) if _idle(host_id) else None
            if attempt is not None:
                transaction.on_commit(lambda: publish_safely(attempt))
            return attempt
    except (IntegrityError, StaleTransition) as error:
        log.debug("host %s: somebody else was first: %s", host_id, error)
        return None


def dispatch_after_commit(run: Run) -> None:
    """Give each host of the run its next order, once this transaction is committed."""
    for host_id in run.trials.order_by().values_list("host_id", flat=True).distinct():
        transaction.on_commit(lambda host_id=host_id: dispatch_host(host_id))  # type: ignore[misc]


def request_inventory(host_id: UUID) -> Attempt | None:
    """Ask an idle host for an inventory; None if it is busy."""
    try:
        with transaction.atomic():
            lock_host(host_id)
            if Attempt.objects.filter(host=host_id, state__in=ACTIVE_ATTEMPT_STATES).exists():
                return None
            attempt = create_attempt(AttemptKind.INVENTORY, host_id)
            transaction.on_commit(lambda: publish_safely(attempt))
            return attempt
    except IntegrityError:
        return None


def publish_safely(attempt: Attempt) -> None:
    """After the commit nothing may be raised: the caller's work is done, and the tick repairs."""
    try:
        publish(attempt)
    except Exception:
        with about_attempt(attempt):
            log.exception("Publishing failed, it will be tried again.")


def idle_hosts() -> QuerySet[Host]:
    """Hosts that were heard lately and have nothing under way."""
    heard = timezone.now() - timedelta(seconds=HEARD_WITHIN_SECONDS)
    active = Attempt.objects.filter(host=OuterRef("pk"), state__in=ACTIVE_ATTEMPT_STATES)
    return Host.objects.filter(~Exists(active), last_seen_at__gte=heard).exclude(state=HostState.REVOKED)


def _idle(host_id: UUID) -> bool:
    return idle_hosts().filter(pk=host_id).exists()


def _claim(host_id: UUID, *, in_window: bool) -> Attempt | None:
    """The next order; in one of its maintenance windows, a host only puts settings back."""
    return _claim_close(host_id, in_window=in_window) or (None if in_window else _claim_trial(host_id))


def _claim_close(host_id: UUID, *, in_window: bool) -> Attempt | None:
    run = runs_to_close(host_id, in_window=in_window).order_by("created_at").first()
    if run is None:
        return None
    if (
        run.state in (RunState.RUNNING, RunState.PAUSED)
        and not run.trials.exclude(state__in=ENDED_TRIAL_STATES).exists()
    ):
        transition_run(run, RunState.CLOSING)
    return create_attempt(AttemptKind.CLOSE_RUN, host_id, run=run)


def _claim_trial(host_id: UUID) -> Attempt | None:
    # Locked, so that a pause or a cancellation is either seen here or waits until the order is written.
    run = ready_runs(host_id).select_for_update(no_key=True, of=("self",)).first()
    trial = None if run is None else _next_trial(run, host_id)
    if run is None or trial is None:
        return None
    if stop_failing(run, host_id):
        end_finished_run(run.pk)  # where nothing is to be put back, nothing else would end it
        return _claim(host_id, in_window=False)
    if not free(trial):
        return None
    if run.state == RunState.QUEUED:  # the run before the trial: everybody locks in this order
        transition_run(run, RunState.RUNNING)
    number = 1 + trial.attempts.count() if trial.tried else 1  # type: ignore[attr-defined]
    attempt = create_attempt(AttemptKind.TRIAL, host_id, run=run, trial=trial, number=number)
    take_locks(attempt, keys_of(trial))
    transition_trial(trial, TrialState.DISPATCHED, attempt=attempt, attempts_left=trial.attempts_left - 1)
    return attempt


def _next_trial(run: Run, host_id: UUID) -> Trial | None:
    planned = _planned(host_id).filter(run=run).annotate(tried=Exists(Attempt.objects.filter(trial=OuterRef("pk"))))
    return planned.select_related("target").order_by("index").first()


def _planned(host_id: UUID) -> QuerySet[Trial]:
    """Trials that a host outside its maintenance windows has still to do: none while it is in maintenance."""
    waiting = Trial.objects.filter(host=host_id, state=TrialState.PLANNED, attempts_left__gt=0)
    return waiting.filter(host__state=HostState.ACTIVE)


def ready_runs(host_id: UUID) -> QuerySet[Run]:
    """Runs that can go on with a trial on this host outside its maintenance windows, in the order in which they do."""
    goes_on = Run.objects.filter(state__in=OPEN_RUN_STATES, cancel_requested_at=None).exclude(state=RunState.PAUSED)
    goes_on = goes_on.exclude(waits_for_arming()).filter(Exists(_planned(host_id).filter(run=OuterRef("pk"))))
    goes_on = goes_on.annotate(holds=Exists(_unclosed(host_id)))
    return goes_on.order_by("-holds", F("queue_position").asc(nulls_last=True), "number")


def waits_for_arming() -> Q:
    """Runs with something left to destroy that are not armed: never, not any more, or not in time."""
    stale = (
        Q(armed_until=None) | Q(started_at=None, armed_until__lt=timezone.now()) | Q(started_at__gt=F("armed_until"))
    )
    left = Trial.objects.filter(run=OuterRef("pk"), state=TrialState.PLANNED, destructive=True)
    return (Q(armed_serials=[]) | stale) & Q(Exists(left))


def _unclosed(host_id: UUID) -> QuerySet[Attempt]:
    """Of the outer run: trials sent to the host since its settings were last put back for that run."""
    own = Attempt.objects.filter(host=host_id)
    closed = own.filter(run=OuterRef("run"), kind=AttemptKind.CLOSE_RUN, created_at__gt=OuterRef("created_at"))
    sent = own.filter(run=OuterRef("pk"), kind=AttemptKind.TRIAL)
    return sent.filter(~Exists(closed.exclude(state=AttemptState.LOST)))


def runs_to_close(host_id: UUID, *, in_window: bool) -> QuerySet[Run]:
    """Open runs that sent this host something and have nothing more for it, for now or for good, and whose
    settings are not put back yet."""
    long_ago = timezone.now() - timedelta(seconds=settings.PAUSE_RESTORE_SECONDS)
    ready = Run.objects.none() if in_window else ready_runs(host_id).order_by()
    rests = ~Q(state=RunState.PAUSED) | Q(paused_at__lt=long_ago) | Q(Exists(ready))
    unended = Trial.objects.filter(run=OuterRef("pk"), host=host_id).exclude(state__in=ENDED_TRIAL_STATES)
    open_runs = Run.objects.filter(Exists(_unclosed(host_id)), state__in=OPEN_RUN_STATES)
    return open_runs.filter(~Exists(unended) | (rests & ~Exists(ready.filter(pk=OuterRef("pk")))))


def create_attempt(
    kind: AttemptKind, host_id: UUID, *, run: Run | None = None, trial: Trial | None = None, number: int = 1
) -> Attempt:
    lease_until = timezone.now() + timedelta(seconds=settings.LEASE_SECONDS)
    return Attempt.objects.create(
        kind=kind, host_id=host_id, run=run, trial=trial, number=number, lease_until=lease_until
    )
