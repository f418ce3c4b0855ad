"""Ends trials, attempts and runs, after a report, an expired lease or a person's action."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import Q, QuerySet
from django.dispatch import Signal
from django.utils import timezone

from webapp.core.services import audit
from webapp.hosts.models import HostState
from webapp.plans.document import read
from webapp.plans.expected_time import most_preparations
from webapp.runs.dispatch.locks import drop_all, drop_locks
from webapp.runs.dispatch.orders import failed_preparations
from webapp.runs.models import (
    ACTIVE_ATTEMPT_STATES,
    ENDED_TRIAL_STATES,
    Attempt,
    AttemptKind,
    AttemptState,
    Run,
    RunState,
    Trial,
    TrialState,
)
from webapp.runs.reasons import OTHER_HOST, Fields, sentence
from webapp.runs.states import (
    ENDED_RUN_STATES,
    cancel_planned_trials,
    cancel_these,
    locked_run,
    transition_attempt,
    transition_run,
    transition_trial,
)

# The failure limit of a plan: after too many consecutive failed trials, a host gets no more trials of the run.
#
# A missing drive or tool makes all following trials fail, so they would only cost time. Only done and failed trials
# count, not skipped or cancelled ones. Other hosts of the run continue, unless its trials run one after another.
# Running the failed trials again includes the cancelled ones.
#
# Steps that are done once for a part write much, and each trial that ends before it measures repeats them. After
# `most_preparations` such trials, also skipped ones, the targets get no more trials of the part, so that the bound of
# the written bytes holds.

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


# The worker failed, never started the trial, or could not keep its result: the trial is retried like a lost one.
INTERRUPTIONS = frozenset(
    {
        "worker_died", "worker_stopped", "order_expired", "order_unreadable", "order_too_early", "order_superseded",
        "spool_full", "state_disk_full", "start_timeout", "start_missed",
    }
)  # fmt: skip

# How long an order of a cancelled or stopped trial may still be accepted (s).
UNACCEPTED_GRACE_SECONDS = 30
CLOSE_LIMIT = timedelta(hours=2)  # from the cancellation of a run: an hour for its trial, an hour for restoring


def end_attempt(attempt: Attempt, to: AttemptState, *, code: str = "", fields: Fields | None = None) -> None:
    """End an active attempt, release its locks, and end its trial, or its run after a close-run order.

    Call inside a transaction that has locked the attempt.
    """
    if attempt.kind == AttemptKind.CLOSE_RUN and code in INTERRUPTIONS:
        to = AttemptState.LOST  # settings may still be changed: the order is sent again until the host answers
    if to is AttemptState.LOST and _is_overdue(attempt):
        to = AttemptState.FAILED
    if attempt.trial is not None and attempt.trial.on_several_hosts:
        trial = lock_trial(attempt)
        if to is AttemptState.CANCELLED and trial.stop_requested_at and not _stopped_by_person(trial):
            code, fields = OTHER_HOST, {}
    transition_attempt(attempt, to, code=code, fields=fields)
    drop_locks(attempt)
    if attempt.trial is not None and attempt.trial.on_several_hosts:
        _end_on_several_hosts(attempt.trial, attempt, to)
    elif attempt.trial is not None:
        _end_trial(attempt.trial, attempt, to, code, fields or {})
    elif attempt.run_id is not None and to is not AttemptState.LOST:
        end_finished_run(attempt.run_id)


def _is_overdue(attempt: Attempt) -> bool:
    """A cancelled run ends even if its host takes orders but never confirms that it has restored its settings."""
    if attempt.kind != AttemptKind.CLOSE_RUN or attempt.run is None or attempt.run.cancel_requested_at is None:
        return False
    return timezone.now() > attempt.run.cancel_requested_at + CLOSE_LIMIT


def lock_trial(attempt: Attempt) -> Trial:
    """Lock the trial of a locked attempt, so that the attempts on its hosts change it one after another."""
    assert attempt.trial_id is not None
    attempt.trial = Trial.objects.select_for_update(no_key=True).get(pk=attempt.trial_id)
    return attempt.trial


def _end_on_several_hosts(trial: Trial, attempt: Attempt, to: AttemptState) -> None:
    """The trial ends with its last attempt: as done if all are, else as the first attempt that was not done.

    If an attempt ends early, the workers of the others are told to stop with their next report.
    """
    if to is not AttemptState.DONE and not trial.stop_requested_at:
        trial.stop_requested_at = timezone.now()
        trial.save(update_fields=["stop_requested_at"])
        transaction.on_commit(lambda: _shorten_unaccepted(trial.pk))
    tried = trial.attempts.filter(number=attempt.number).order_by("ended_at")
    if tried.filter(state__in=ACTIVE_ATTEMPT_STATES).exists():
        return
    cause = tried.exclude(state=AttemptState.DONE).exclude(outcome_code=OTHER_HOST).select_related("host").first()
    if cause is None:
        transition_trial(trial, TrialState.DONE, attempt=attempt)
    else:
        state = AttemptState(cause.state)
        where = {} if state is AttemptState.CANCELLED else {"on_host": cause.host.slug}
        _end_trial(trial, cause, state, cause.outcome_code, {**cause.outcome_fields, **where})


def _stopped_by_person(trial: Trial) -> bool:
    return trial.skip_requested_at is not None or trial.run.cancel_requested_at is not None


def _shorten_unaccepted(trial_id: UUID) -> None:
    """An order that no host accepts any more ends soon. After the commit: a transaction locks only its own attempt."""
    until = timezone.now() + timedelta(seconds=UNACCEPTED_GRACE_SECONDS)
    unaccepted = Attempt.objects.filter(trial=trial_id, state=AttemptState.DISPATCHED, lease_until__gt=until)
    unaccepted.update(lease_until=until)


def _end_trial(trial: Trial, attempt: Attempt, to: AttemptState, code: str, fields: Fields) -> None:
    if to is AttemptState.LOST or (to is AttemptState.FAILED and code in INTERRUPTIONS):
        lose_trial(trial, attempt, code=code, fields=fields)
    elif to is AttemptState.CANCELLED and trial.skip_requested_at:
        _end_skipped(trial, attempt)
    else:
        transition_trial(trial, TrialState(to.value), attempt=attempt, code=code, fields=fields)


def _end_skipped(trial: Trial, attempt: Attempt) -> None:
    why = {"why": trial.skip_reason} if trial.skip_reason else {}
    transition_trial(trial, TrialState.CANCELLED, attempt=attempt, code="skipped", fields=why, by=trial.skipped_by)


def lose_trial(trial: Trial, attempt: Attempt, *, code: str, fields: Fields) -> None:
    """Handle a lost attempt: plan the trial again if tries are left, but never a destructive trial."""
    transition_trial(trial, TrialState.LOST, attempt=attempt, code=code, fields=fields)
    trial.refresh_from_db(fields=["attempts_left", "skip_requested_at", "skip_reason", "skipped_by"])
    if trial.skip_requested_at:
        _end_skipped(trial, attempt)
    elif Run.objects.filter(pk=trial.run_id, cancel_requested_at__isnull=False).exists():
        transition_trial(trial, TrialState.CANCELLED, attempt=attempt, code="run_cancelled")
    elif trial.destructive:
        transition_trial(trial, TrialState.FAILED, attempt=attempt, code=code, fields={**fields, "not_retried": True})
    elif trial.attempts_left > 0:
        transition_trial(trial, TrialState.PLANNED, attempt=attempt, code=code, fields=fields)
    else:
        transition_trial(trial, TrialState.FAILED, attempt=attempt, code=code, fields=fields)


# Sent with `run`, which is locked. The app that searches listens, adds the next trials of each target whose trials have
# ended, and returns whether there are any.
batches_ended = Signal()


def add_batches(run: Run) -> bool:
    """Add the next trials of a search. False if there are none: then nothing keeps the run from ending. The run is
    locked, and what would end it happens in the same transaction, so a crash loses no batch."""
    if run.budget is None or run.cancel_requested_at or run.state in (RunState.CLOSING, *ENDED_RUN_STATES):
        return False
    return any(reply is True for _, reply in batches_ended.send_robust(Run, run=run))


@transaction.atomic
def end_finished_run(run_id: UUID) -> bool:
    """End the run if all its trials have ended and every host that got an order has restored its settings.

    False if not. Cancelled if a person cancelled it; failed if settings could not be restored, the failure limit
    cancelled trials or no trial is done; else done.
    """
    run = Run.objects.select_for_update(no_key=True).get(pk=run_id)
    if run.state in ENDED_RUN_STATES or run.trials.exclude(state__in=ENDED_TRIAL_STATES).exists():
        return False
    if add_batches(run):
        return False
    closings = _last_closings(run)
    if any(closing.state is None for closing in closings):
        return False
    troubles = [closing.as_fields() for closing in closings if closing.state != AttemptState.DONE]
    state, code, fields = _verdict(run, troubles)
    if troubles:
        hosts = {trouble["host"]: sentence(trouble["code"], trouble["fields"]) for trouble in troubles}
        audit(by=None, action="run.settings_not_restored", on=run, detail={"hosts": hosts})
    transition_run(run, state, code=code, fields=fields)
    drop_all(run)
    return True


@dataclass(frozen=True)
class _Closing:
    """The last close-run attempt on a host."""

    host: str
    state: str | None
    code: str = ""
    fields: Fields = field(default_factory=dict)

    def as_fields(self) -> dict[str, Any]:
        return {"host": self.host, "code": self.code, "fields": self.fields}


def _last_closings(run: Run) -> Sequence[_Closing]:
    """The last close-run attempt of every host that was sent a trial.

    The state is None if settings were not restored since the last trial, because a paused run may have been closed
    earlier.
    """
    attempts = list(run.attempts.select_related("host").order_by("sequence"))
    closings: dict[UUID, _Closing] = {}
    for attempt in attempts:
        slug = attempt.host.slug
        if attempt.host.state == HostState.REVOKED:
            closings[attempt.host_id] = _Closing(slug, AttemptState.LOST, "host_revoked")
        elif attempt.kind == AttemptKind.CLOSE_RUN and attempt.ended_at and attempt.state != AttemptState.LOST:
            closings[attempt.host_id] = _Closing(slug, attempt.state, attempt.outcome_code, attempt.outcome_fields)
        elif attempt.kind == AttemptKind.TRIAL:
            closings[attempt.host_id] = _Closing(slug, None)
    return list(closings.values())


def _verdict(run: Run, troubles: Sequence[Fields]) -> tuple[RunState, str, Fields]:
    if troubles:
        return RunState.FAILED, "settings_not_restored", {"hosts": troubles}
    if run.cancel_requested_at:
        return RunState.CANCELLED, run.cancel_code or "cancelled", run.cancel_fields
    if not run.trials.exclude(reason_code="skipped").exists():
        return RunState.CANCELLED, "skipped", {"all": True}
    if stopped := run.trials.filter(reason_code=STOPPED).count():
        return RunState.FAILED, "stopped_by_failures", {"unstarted": stopped, "trials": run.trial_count}
    if not run.trials.filter(state=TrialState.DONE).exists():
        return RunState.FAILED, "no_trial_done", {}
    return RunState.DONE, "", {}


@transaction.atomic
def give_up_revoked(run: Run) -> None:
    """Cancel trials on revoked hosts, which can neither start nor continue."""
    locked_run(run)
    for attempt in run.attempts.select_for_update(no_key=True, of=("self",)).filter(
        host__state=HostState.REVOKED, ended_at=None
    ):
        end_attempt(attempt, AttemptState.FAILED, code="host_revoked")
    of_host = Q(host__state=HostState.REVOKED) | Q(further__target__host__state=HostState.REVOKED)
    for trial in run.trials.filter(of_host, state=TrialState.PLANNED).distinct():
        transition_trial(trial, TrialState.CANCELLED, code="host_revoked")


@transaction.atomic
def sweep_cancelled(run_id: UUID) -> None:
    """Cancel trials that became planned again while the run was being cancelled."""
    cancel_planned_trials(Run.objects.select_for_update(no_key=True).get(pk=run_id))
