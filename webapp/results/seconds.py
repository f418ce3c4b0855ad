"""The ordinary second in one statement: samples of a running trial, in order, with the lease renewed beside them.

Nearly all reports are that. The statement takes the batch only if everything is as it is expected to be: right
host and no new token due, attempt running, next number, leg started, nobody wants it to be stopped. If not, it
changes nothing, and the report goes the long way of `ingest`, which knows what to say. It is atomic and waits for
the attempt's row like the long way does, so the two may meet.

A lease that is nearly whole stays as it is: then no index of the attempt changes, and PostgreSQL writes the new
version of its row beside the old one (a heap-only update).
"""

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

import msgspec
import psycopg
from django.db import connection

from webapp.hosts.models import Host
from webapp.hosts.services import touch_host
from webapp.results.intake import BadItem, moment
from webapp.results.packing import pack
from webapp.runs.leases import new_lease, parse_id, whole_from
from worker.contract.items import DirectionSample, Sample
from worker.contract.reports import AttemptReply, Batch, Report, ReportReply

# Rows come as one JSON text: parameters of always the same types make one prepared statement.
_STATEMENT = """
with taken as (
    update runs_attempt a set confirmed_seq = %(last)s::int,
        lease_until = case when a.lease_until between %(whole_from)s and %(lease)s then a.lease_until else %(lease)s end
    from hosts_host h, runs_run r, runs_trial t
    where h.token_hash = %(token_hash)s and h.state <> 'revoked' and h.rotation_requested_at is null
      and a.id = %(attempt)s and a.host_id = h.id and a.kind = 'trial' and a.state = 'running'
      and a.confirmed_seq = %(first)s::int - 1 and r.id = a.run_id and r.cancel_requested_at is null
      and t.id = a.trial_id and t.skip_requested_at is null
      and exists (select from results_legrun l where l.attempt_id = a.id and l.leg = %(leg)s::int)
    returning a.id, h.id as host_id, h.last_seen_at, h.spool_bytes, a.lease_until
), kept as (
    insert into results_sample (attempt_id, leg, second, direction, at, interval_ms, ios, bytes, runtime_ms,
                                p50_ns, p99_ns, p999_ns, latency, utilisation_percent, queue_depth, beside)
    select taken.id, %(leg)s::int, v.second, v.direction, v.at, v.interval_ms, v.ios, v.bytes, v.runtime_ms,
           v.p50_ns, v.p99_ns, v.p999_ns, decode(v.latency, 'base64'), v.utilisation, v.depth, v.beside
    from taken, json_to_recordset(%(rows)s::json) as v(
        second int, direction text, at timestamptz, interval_ms int, ios int8, bytes int8, runtime_ms int,
        p50_ns int8, p99_ns int8, p999_ns int8, latency text, utilisation float8, depth float8, beside float4[])
)
select host_id, last_seen_at, spool_bytes, lease_until from taken
"""
_MOST_SAMPLES = 100  # above that COPY is quicker

Taken = tuple[UUID, datetime, int, datetime]


def take_quickly(*, token_hash: str, report: Report) -> ReportReply | None:
    """The answer if the report was an ordinary second of the host with this token; None: nothing was done."""
    names = {batch.attempt for batch in report.batches} | set(report.active)
    attempt = parse_id(names.pop()) if len(names) == 1 else None
    if attempt is None or report.log is not None or connection.in_atomic_block or not _ordinary(report.batches):
        return None
    try:
        taken = _execute(_parameters(token_hash, attempt, report.batches))
    except (BadItem, psycopg.IntegrityError, psycopg.DataError, psycopg.OperationalError):
        return None  # the long way says what is wrong with it, or finds a connection that is not
    if taken is None:
        return None
    host, last_seen_at, spool_bytes, lease_until = taken
    touch_host(host=Host(pk=host, last_seen_at=last_seen_at, spool_bytes=spool_bytes), spool_bytes=report.spool_bytes)
    confirmed = report.batches[-1]
    answer = AttemptReply(attempt=confirmed.attempt, confirmed_seq=confirmed.seq, lease_until=lease_until.timestamp())
    return ReportReply(attempts=(answer,))


def _ordinary(batches: Sequence[Batch]) -> bool:
    """Samples of one leg and nothing else, in batches without a gap, and not very many."""
    items = [item for batch in batches for item in batch.items]
    in_order = all(batch.seq == batches[0].seq + place for place, batch in enumerate(batches))
    legs = {item.leg if type(item) is Sample else None for item in items}
    return in_order and len(items) <= _MOST_SAMPLES and len(legs) == 1 and None not in legs


def _parameters(token_hash: str, attempt: UUID, batches: Sequence[Batch]) -> dict[str, object]:
    samples = [item for batch in batches for item in batch.items if type(item) is Sample]
    lease = new_lease()
    return {
        "token_hash": token_hash,
        "attempt": attempt,
        "first": str(batches[0].seq),  # as texts: psycopg's type for a whole number depends on how large it is
        "last": str(batches[-1].seq),
        "leg": str(samples[0].leg),
        "lease": lease,
        "whole_from": whole_from(lease),
        "rows": msgspec.json.encode([_row(sample, each) for sample in samples for each in sample.directions]).decode(),
    }


def _row(sample: Sample, measured: DirectionSample) -> dict[str, object]:
    device = sample.device
    return {
        "second": sample.second,
        "direction": measured.direction,
        "at": moment(sample.at),
        "interval_ms": sample.interval_ms,
        "ios": measured.ios,
        "bytes": measured.bytes,
        "runtime_ms": measured.runtime_ms,
        "p50_ns": measured.p50_ns,
        "p99_ns": measured.p99_ns,
        "p999_ns": measured.p999_ns,
        "latency": pack(measured.latency),
        "utilisation": device.utilisation_percent if device else None,
        "depth": device.queue_depth if device else None,
        "beside": (sample.beside or None) if measured is sample.directions[0] else None,
    }


def _execute(parameters: dict[str, object]) -> Taken | None:
    """What was taken. Past Django's own cursors: they put values into the text, and nothing can be prepared then.

    That the connection still stands is not asked beforehand: if it does not, nothing or all of it was committed,
    and the long way knows which by the batches' numbers.
    """
    connection.ensure_connection()
    raw = connection.connection
    raw.prepare_threshold = 0  # Django keeps it at None: nothing is prepared then, whoever asks for it
    try:
        with psycopg.Cursor[Taken](raw) as cursor:
            return cursor.execute(_STATEMENT, parameters, prepare=True).fetchone()
    finally:
        raw.prepare_threshold = None
