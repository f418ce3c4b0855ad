"""The ordinary second in one statement: samples of a running trial, in order, with the lease renewed beside them.

Nearly all reports are that. The statement takes the batch only if everything is as it is expected to be: right
host and no new token due, attempt running, next number, leg started, nobody wants it to be stopped. If not, it
changes nothing, and the report goes the long way of `ingest`, which knows what to say. It is atomic and waits for
the attempt's row like the long way does, so the two may meet.
"""

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

import psycopg
from django.db import connection

from webapp.hosts.models import Host
from webapp.hosts.services import touch_host
from webapp.results.intake import BadItem, moment
from webapp.results.packing import pack
from webapp.runs.leases import new_lease, parse_id
from worker.contract.reports import AttemptReply, Batch, Report, ReportReply, Sample

_STATEMENT = """
with taken as (
    update runs_attempt a set confirmed_seq = %(last)s, lease_until = %(lease)s
    from hosts_host h, runs_run r, runs_trial t
    where h.token_hash = %(token_hash)s and h.state <> 'revoked' and h.rotation_requested_at is null
      and a.id = %(attempt)s and a.host_id = h.id and a.kind = 'trial' and a.state = 'running'
      and a.confirmed_seq = %(first)s - 1 and r.id = a.run_id and r.cancel_requested_at is null
      and t.id = a.trial_id and t.skip_requested_at is null
      and exists (select from results_legrun l where l.attempt_id = a.id and l.leg = %(leg)s)
    returning a.id, h.id as host_id, h.last_seen_at, h.spool_bytes
), kept as (
    insert into results_sample (attempt_id, leg, second, direction, at, interval_ms, ios, bytes, runtime_ms,
                                p50_ns, p99_ns, p999_ns, latency, utilisation_percent, queue_depth, beside)
    select taken.id, %(leg)s, second, direction, at, interval_ms, ios, bytes, runtime_ms, p50_ns, p99_ns, p999_ns,
           latency, utilisation, depth, beside::float4[]
    from taken, unnest(
        %(second)s::int[], %(direction)s::text[], %(at)s::timestamptz[], %(interval_ms)s::int[], %(ios)s::int8[],
        %(bytes)s::int8[], %(runtime_ms)s::int[], %(p50_ns)s::int8[], %(p99_ns)s::int8[], %(p999_ns)s::int8[],
        %(latency)s::bytea[], %(utilisation)s::float8[], %(depth)s::float8[], %(beside)s::text[]
    ) v (second, direction, at, interval_ms, ios, bytes, runtime_ms, p50_ns, p99_ns, p999_ns,
         latency, utilisation, depth, beside)
)
select host_id, last_seen_at, spool_bytes from taken
"""
_MOST_SAMPLES = 100  # above that COPY is quicker


def take_quickly(*, token_hash: str, report: Report) -> ReportReply | None:
    """The answer if the report was an ordinary second of the host with this token; None: nothing was done."""
    names = {batch.attempt for batch in report.batches} | set(report.active)
    attempt = parse_id(names.pop()) if len(names) == 1 else None
    if attempt is None or report.log is not None or connection.in_atomic_block or not _ordinary(report.batches):
        return None
    lease = new_lease()
    try:
        host = _execute({**_facts(token_hash, attempt, lease, report.batches), **_columns(report.batches)})
    except (BadItem, psycopg.IntegrityError, psycopg.DataError):
        return None  # the long way says what is wrong with it
    if host is None:
        return None
    touch_host(host=host, spool_bytes=report.spool_bytes)
    confirmed = report.batches[-1]
    answer = AttemptReply(attempt=confirmed.attempt, confirmed_seq=confirmed.seq, lease_until=lease.timestamp())
    return ReportReply(attempts=(answer,))


def _ordinary(batches: Sequence[Batch]) -> bool:
    """Samples of one leg and nothing else, in batches without a gap, and not very many."""
    items = [item for batch in batches for item in batch.items]
    in_order = all(batch.seq == batches[0].seq + place for place, batch in enumerate(batches))
    legs = {item.leg if type(item) is Sample else None for item in items}
    return in_order and len(items) <= _MOST_SAMPLES and len(legs) == 1 and None not in legs


def _facts(token_hash: str, attempt: UUID, lease: datetime, batches: Sequence[Batch]) -> dict[str, object]:
    facts = {"token_hash": token_hash, "attempt": attempt, "lease": lease, "leg": batches[0].items[0].leg}  # type: ignore[union-attr]
    return {**facts, "first": batches[0].seq, "last": batches[-1].seq}


def _execute(parameters: dict[str, object]) -> Host | None:
    """The host if it was taken. Prepared on the server: Django's own cursors do not do that."""
    connection.close_if_health_check_failed()
    connection.ensure_connection()
    raw: psycopg.Connection[tuple[UUID, datetime, int]] = connection.connection
    row = raw.execute(_STATEMENT, parameters, prepare=True).fetchone()
    return Host(pk=row[0], last_seen_at=row[1], spool_bytes=row[2]) if row else None


def _columns(batches: Sequence[Batch]) -> dict[str, list[object]]:
    samples = [item for batch in batches for item in batch.items if type(item) is Sample]
    rows = [(sample, direction) for sample in samples for direction in sample.directions]
    return {
        "second": [sample.second for sample, _ in rows],
        "direction": [direction.direction.value for _, direction in rows],
        "at": [moment(sample.at) for sample, _ in rows],
        "interval_ms": [sample.interval_ms for sample, _ in rows],
        "ios": [direction.ios for _, direction in rows],
        "bytes": [direction.bytes for _, direction in rows],
        "runtime_ms": [direction.runtime_ms for _, direction in rows],
        "p50_ns": [direction.p50_ns for _, direction in rows],
        "p99_ns": [direction.p99_ns for _, direction in rows],
        "p999_ns": [direction.p999_ns for _, direction in rows],
        "latency": [pack(direction.latency) for _, direction in rows],
        "utilisation": [sample.device.utilisation_percent if sample.device else None for sample, _ in rows],
        "beside": [_array(sample.beside) if direction is sample.directions[0] else None for sample, direction in rows],
        "depth": [sample.device.queue_depth if sample.device else None for sample, _ in rows],
    }


def _array(values: Sequence[float | None]) -> str | None:
    """As PostgreSQL writes an array: arrays of several lengths cannot be one parameter."""
    return f"{{{','.join('NULL' if value is None else repr(value) for value in values)}}}" if values else None
