"""An attempt as a report meets it: locked with all that the report may ask of it, and answered about."""

from collections.abc import Mapping
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
_HOST = prepared.names(Host, "id", "last_seen_at", "spool_bytes")
_COLUMNS = [f'{table}."{name}"' for table, names in (("a", _ATTEMPT), ("r", _RUN), ("t", _TRIAL)) for name in names]
_OF_HOST = [f'h."{name}"' for name in _HOST]
_ROWS = "runs_attempt a left join runs_run r on r.id = a.run_id left join runs_trial t on t.id = a.trial_id"
_LOCK = (
    f"select {', '.join(_COLUMNS)} from {_ROWS} "  # noqa: S608 - our own columns
    "where a.id = %s and a.host_id = %s for no key update of a"
)
_LOCK_TRIALS = f"""
select {", ".join([*_OF_HOST, *_COLUMNS])} from unnest(%s::uuid[], %s::text[]) said(attempt, token_hash)
join {_ROWS} on a.id = said.attempt join hosts_host h on h.id = a.host_id and h.token_hash = said.token_hash
where h.state <> 'revoked' and h.rotation_requested_at is null and a.kind = 'trial' and a.state = any(%s)
for no key update of a skip locked
"""  # noqa: S608


def lock(host: Host, attempt_id: UUID) -> Attempt | None:
    """The attempt if it is the host's own. What its run and its trial have beside what is read here is read later."""
    found = prepared.execute(_LOCK, [attempt_id, host.pk])
    return _loaded(found[0]) if found else None


def lock_active_trials(said: Mapping[UUID, str]) -> list[Attempt]:
    """Those of these attempts that are at a trial, active, of the host with this token (its hash; no new one is due),
    and not locked by anybody else. Of their hosts only is read when they were heard, and what waits there.

    Nothing is waited for, so that nobody waits for each other.
    """
    states = [str(state) for state in ACTIVE_ATTEMPT_STATES]
    attempts = []
    for values in prepared.execute(_LOCK_TRIALS, [list(said), list(said.values()), states]):
        attempt = _loaded(values[len(_HOST) :])
        attempt.host = prepared.loaded(Host, _HOST, values[: len(_HOST)])
        attempts.append(attempt)
    return attempts


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
