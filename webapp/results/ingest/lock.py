"""Step 2: lock the attempt and find the batches that continue its sequence."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.db import connection

from webapp.hosts.models import Host
from webapp.results.ingest.parse import AnyBatch
from webapp.runs.models import ACTIVE_ATTEMPT_STATES, Attempt
from worker.contract.reports import AttemptReply, Refusal

_COLUMNS = [field.attname for field in Attempt._meta.concrete_fields if field.attname != "purged"]  # JSON, rarely used
# Every report needs this query. With Django's ORM it took longer than everything else together.
_LOCK = f"""
SELECT {", ".join(f"attempt.{column}" for column in _COLUMNS)},
    coalesce(
        run.cancel_requested_at, trial.skip_requested_at, trial.stop_requested_at, action.stop_requested_at
    ) AS stop_requested_at,
    ARRAY(SELECT stream FROM results_streamrun WHERE attempt_id = attempt.id) AS started_streams
FROM runs_attempt attempt
LEFT JOIN runs_run run ON run.id = attempt.run_id AND attempt.kind = 'trial'
LEFT JOIN runs_trial trial ON trial.id = attempt.trial_id
LEFT JOIN runs_hostaction action ON action.attempt_id = attempt.id AND attempt.kind = 'purge'
WHERE attempt.id = %s AND attempt.host_id = %s
FOR NO KEY UPDATE OF attempt
"""  # noqa: S608 - our own columns


@dataclass(frozen=True)
class LockedAttempt:
    attempt: Attempt
    stop_requested_at: (
        datetime | None
    )  # a person cancelled the run, skipped the trial or stopped the purge, or another host failed
    started_streams: frozenset[int]  # those that were committed when the query started


def lock_attempt(host: Host, attempt_id: UUID) -> LockedAttempt | None:
    """Lock the attempt until the end of the transaction; None if the host has no such attempt.

    Two reports about one attempt are serialised here.
    """
    with connection.cursor() as cursor:
        cursor.execute(_LOCK, [attempt_id, host.pk])
        row = cursor.fetchone()
    if row is None:
        return None
    *values, stop_requested_at, started_streams = row
    attempt = Attempt.from_db("default", _COLUMNS, values)
    return LockedAttempt(attempt, stop_requested_at, frozenset(started_streams))


def in_sequence(confirmed_seq: int, batches: Iterable[AnyBatch]) -> Iterator[AnyBatch]:
    """The batches that are next: number `confirmed_seq + 1` and so on. Lower numbers were processed before."""
    for batch in batches:
        if batch.seq == confirmed_seq + 1:
            confirmed_seq = batch.seq
            yield batch


def reply_about(
    locked: LockedAttempt, *, name: str, cancel: bool = False, refusal: Refusal | None = None
) -> AttemptReply:
    """The reply about an attempt after the report was written. `cancel` is true if the attempt is not active."""
    attempt = locked.attempt
    active = attempt.state in ACTIVE_ATTEMPT_STATES
    return AttemptReply(
        attempt=name,
        confirmed_seq=attempt.confirmed_seq,
        cancel=locked.stop_requested_at is not None if active else cancel,
        lease_until=attempt.lease_until.timestamp() if active else 0.0,
        refusal=refusal,
    )
