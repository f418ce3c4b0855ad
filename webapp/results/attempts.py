"""An attempt as a report meets it: locked with all that the report may ask of it, and answered about."""

from collections.abc import Collection
from uuid import UUID

from webapp.core import prepared
from webapp.hosts.models import Host
from webapp.runs.models import ACTIVE_ATTEMPT_STATES, Attempt, AttemptKind, HostAction, Run, Trial
from worker.contract.reports import AttemptReply, Refusal

_ATTEMPT = prepared.names(Attempt)
_RUN = prepared.names(Run, "id", "number", "state", "cancel_requested_at")
_TRIAL = prepared.names(
    Trial, "id", "run_id", "host_id", "target_id", "index", "point", "point_key", "state", "reason_code",
    "attempts_left", "destructive", "skip_requested_at", "skip_reason",
)  # fmt: skip
_COLUMNS = [f'{table}."{name}"' for table, names in (("a", _ATTEMPT), ("r", _RUN), ("t", _TRIAL)) for name in names]
_FOUND = (
    f"select {', '.join(_COLUMNS)} from runs_attempt a "  # noqa: S608 - our own columns
    "left join runs_run r on r.id = a.run_id left join runs_trial t on t.id = a.trial_id where "
)
_LOCK = f"{_FOUND} a.id = %s and a.host_id = %s for no key update of a"
_LOCK_TRIALS = (
    f"{_FOUND} a.id = any(%s::uuid[]) and a.kind = 'trial' and a.state = any(%s) for no key update of a skip locked"
)


def lock(host: Host, attempt_id: UUID) -> Attempt | None:
    """The attempt if it is the host's own. What its run and its trial have beside what is read here is read later."""
    found = prepared.execute(_LOCK, [attempt_id, host.pk])
    return _loaded(found[0]) if found else None


def lock_active_trials(ids: Collection[UUID]) -> list[Attempt]:
    """Those of these attempts that are at a trial, active, and not locked by anybody else, whichever host's they are.

    Nothing is waited for, so that nobody waits for each other.
    """
    found = prepared.execute(_LOCK_TRIALS, [list(ids), [str(state) for state in ACTIVE_ATTEMPT_STATES]])
    return [_loaded(values) for values in found]


def _loaded(values: prepared.Row) -> Attempt:
    attempt = prepared.loaded(Attempt, _ATTEMPT, values[: len(_ATTEMPT)])
    if attempt.run_id:
        attempt.run = prepared.loaded(Run, _RUN, values[len(_ATTEMPT) : -len(_TRIAL)])
    if attempt.trial_id:
        attempt.trial = prepared.loaded(Trial, _TRIAL, values[-len(_TRIAL) :])
    return attempt


def reply_about(name: str, attempt: Attempt, *, cancel: bool = False, refusal: Refusal | None = None) -> AttemptReply:
    """The answer to what a report says of an attempt, once that is written."""
    active = attempt.state in ACTIVE_ATTEMPT_STATES
    return AttemptReply(
        attempt=name,
        confirmed_seq=attempt.confirmed_seq,
        cancel=_to_be_stopped(attempt) if active else cancel,
        lease_until=attempt.lease_until.timestamp() if active else 0.0,
        refusal=refusal,
    )


def _to_be_stopped(attempt: Attempt) -> bool:
    """A person cancelled its run, skips its trial, or stops its purge. Settings are put back all the same."""
    if attempt.kind == AttemptKind.PURGE:
        return HostAction.objects.filter(attempt=attempt, stop_requested_at__isnull=False).exists()
    if attempt.kind != AttemptKind.TRIAL or attempt.run is None or attempt.trial is None:
        return False
    return attempt.run.cancel_requested_at is not None or attempt.trial.skip_requested_at is not None
