"""The ordinary second in one statement: samples of a running trial, in order, with the lease renewed beside them.

Nearly all reports are that. The statement takes the batch only if everything is as it is expected to be: right
host and no new token due, attempt running, next number, streams started, nobody wants it to be stopped. If not, it
changes nothing, and the report goes the long way of `ingest`, which knows what to say. It is atomic and waits for
the attempt's row like the long way does, so the two may meet.

A lease that is nearly whole stays as it is: then no index of the attempt changes, and PostgreSQL writes the new
version of its row beside the old one (a heap-only update).
"""

from collections.abc import Sequence
from uuid import UUID

from django.db import DataError, IntegrityError, OperationalError, connection

from webapp.core import prepared
from webapp.hosts.models import Host
from webapp.hosts.services import touch_hosts
from webapp.results.bad_item import BadItem
from webapp.results.samples import COLUMNS, ROWS, VALUES, columns
from webapp.runs.leases import new_lease, parse_id, whole_from
from worker.contract.items import Sample
from worker.contract.reports import AttemptReply, Batch, Report, ReportReply

_STATEMENT = f"""
with taken as (
    update runs_attempt a set confirmed_seq = %(last)s::int,
        lease_until = case when a.lease_until between %(whole_from)s and %(lease)s then a.lease_until else %(lease)s end
    from hosts_host h, runs_run r, runs_trial t
    where h.token_hash = %(token_hash)s and h.state <> 'revoked' and h.rotation_requested_at is null
      and a.id = %(attempt)s and a.host_id = h.id and a.kind = 'trial' and a.state = 'running'
      and a.confirmed_seq = %(first)s::int - 1 and r.id = a.run_id and r.cancel_requested_at is null
      and t.id = a.trial_id and t.skip_requested_at is null
      and %(streams)s::int[] <@ array(select l.stream::int from results_streamrun l where l.attempt_id = a.id)
    returning a.id, h.id as host_id, h.last_seen_at, h.spool_bytes, a.lease_until
), kept as (
    insert into results_sample (attempt_id, {COLUMNS}) select taken.id, {VALUES} from taken, {ROWS}
)
select host_id, last_seen_at, spool_bytes, lease_until from taken
"""  # noqa: S608 - our own columns
_MOST_SAMPLES = 100


def take_quickly(*, token_hash: str, report: Report) -> ReportReply | None:
    """The answer if the report was an ordinary second of the host with this token; None: nothing was done."""
    names = {batch.attempt for batch in report.batches} | set(report.active)
    attempt = parse_id(names.pop()) if len(names) == 1 else None
    if attempt is None or report.log is not None or connection.in_atomic_block or not _ordinary(report.batches):
        return None
    try:
        taken = prepared.execute(_STATEMENT, _parameters(token_hash, attempt, report.batches))
    except (BadItem, IntegrityError, DataError, OperationalError):
        return None  # the long way says what is wrong with it, or finds a connection that is not
    if not taken:
        return None
    host, last_seen_at, spool_bytes, lease_until = taken[0]
    touch_hosts({Host(pk=host, last_seen_at=last_seen_at, spool_bytes=spool_bytes): report.spool_bytes})
    confirmed = report.batches[-1]
    answer = AttemptReply(attempt=confirmed.attempt, confirmed_seq=confirmed.seq, lease_until=lease_until.timestamp())
    return ReportReply(attempts=(answer,))


def _ordinary(batches: Sequence[Batch]) -> bool:
    """Samples and nothing else, in batches without a gap, and not very many."""
    items = [item for batch in batches for item in batch.items]
    in_order = all(batch.seq == batches[0].seq + place for place, batch in enumerate(batches))
    return in_order and 0 < len(items) <= _MOST_SAMPLES and all(type(item) is Sample for item in items)


def _parameters(token_hash: str, attempt: UUID, batches: Sequence[Batch]) -> dict[str, object]:
    samples = [item for batch in batches for item in batch.items if type(item) is Sample]
    lease = new_lease()
    return {
        "token_hash": token_hash,
        "attempt": attempt,
        "first": str(batches[0].seq),  # as texts: psycopg's type for a whole number depends on how large it is
        "last": str(batches[-1].seq),
        "streams": f"{{{','.join({str(sample.stream) for sample in samples})}}}",
        "lease": lease,
        "whole_from": whole_from(lease),
        **columns(samples),
    }
