"""Takes a worker's report: exactly once, in order, each attempt in a transaction of its own.

The attempt's row is locked, so two reports about it wait for each other. Batch `confirmed_seq + 1` is taken,
lower ones were taken before, higher ones show a gap and are not taken; the answer says how far everything is
committed. An item that cannot be true fails its attempt by name and no other.

    attempt      batches new to us      answer
    active       taken                  confirmed, cancel?, lease
    lost         revived, then taken    the same; too late: superseded
    ended        none                   confirmed (and cancel, if the worker believes it is still at it)
    ended        some                   attempt_closed
    not its own  -                      unknown_attempt
"""

import logging
import time
from collections.abc import Sequence
from uuid import UUID

from django.db import DataError, IntegrityError, transaction

from webapp.core import prepared
from webapp.core.logs import about
from webapp.core.models import Counter
from webapp.core.services import count
from webapp.hosts.models import Host
from webapp.hosts.services import touch_host
from webapp.results.bad_item import BadItem
from webapp.results.clock import offset_ms
from webapp.results.intake import Intake
from webapp.results.items import take_item
from webapp.results.seconds import take_quickly
from webapp.runs.dispatch import dispatch_host
from webapp.runs.ending import end_attempt
from webapp.runs.leases import parse_id, renewed, revive
from webapp.runs.models import ACTIVE_ATTEMPT_STATES, Attempt, AttemptKind, AttemptState, HostAction, Run, Trial
from worker.contract.reports import AttemptReply, Batch, Refusal, Report, ReportReply

log = logging.getLogger(__name__)

# Batches of an attempt in a report: a worker that keeps up sends one or two. One that has more to say was out of reach;
# after an outage that may be all of them, and what is next for each of them is left to the tick.
_KEEPS_UP = 20

_ATTEMPT = prepared.names(Attempt)
_RUN = prepared.names(Run, "id", "number", "state", "cancel_requested_at")
_TRIAL = prepared.names(
    Trial, "id", "run_id", "host_id", "target_id", "index", "point", "point_key", "state", "reason_code",
    "attempts_left", "destructive", "skip_requested_at", "skip_reason",
)  # fmt: skip
_COLUMNS = [f'{table}."{name}"' for table, names in (("a", _ATTEMPT), ("r", _RUN), ("t", _TRIAL)) for name in names]
_LOCK = (
    f"select {', '.join(_COLUMNS)} from runs_attempt a "  # noqa: S608 - our own columns
    "left join runs_run r on r.id = a.run_id left join runs_trial t on t.id = a.trial_id "
    "where a.id = %s and a.host_id = %s for no key update of a"
)

_UNKNOWN = Refusal(code="unknown_attempt", message="This server gave this host no such attempt.")
_CLOSED = Refusal(code="attempt_closed", message="This attempt has ended; nothing more of it is taken.")
_SUPERSEDED = Refusal(
    code="superseded",
    message="This attempt was lost, and its run has ended or the host was given something newer since.",
)


def take_report(*, host: Host, report: Report) -> ReportReply:
    """Commit what is new in a report and answer for every attempt that it names."""
    return take_quickly(token_hash=host.token_hash, report=report) or take_at_length(host=host, report=report)


def take_at_length(*, host: Host, report: Report) -> ReportReply:
    """The same for reports of any kind."""
    batches: dict[str, list[Batch]] = {attempt: [] for attempt in report.active}
    for batch in report.batches:
        batches.setdefault(batch.attempt, []).append(batch)
    touch_host(host=host, spool_bytes=report.spool_bytes)
    active = frozenset(report.active)
    reply = ReportReply(
        attempts=tuple(_logged(host, name, found, active=name in active) for name, found in batches.items())
    )
    for answer in reply.attempts:
        if answer.refusal is not None:
            count(Counter.REFUSED, answer.refusal.code)
    return reply


def _logged(host: Host, name: str, batches: Sequence[Batch], *, active: bool) -> AttemptReply:
    with about(attempt=name):
        return _answer(host, name, batches, active=active)


def _answer(host: Host, name: str, batches: Sequence[Batch], *, active: bool) -> AttemptReply:
    attempt_id = parse_id(name)
    if attempt_id is None:
        return AttemptReply(attempt=name, confirmed_seq=0, refusal=_UNKNOWN)
    try:
        with transaction.atomic():
            return _take(host, name, attempt_id, batches, active=active)
    except (BadItem, IntegrityError, DataError) as error:
        words = str(error).strip()[:1500]
        log.warning("An item was refused: %s", words)
        return _fail_for_bad_item(host, name, attempt_id, words)


def _take(host: Host, name: str, attempt_id: UUID, batches: Sequence[Batch], *, active: bool) -> AttemptReply:
    attempt = _locked(host, attempt_id)
    if attempt is None:
        return AttemptReply(attempt=name, confirmed_seq=0, refusal=_UNKNOWN)
    unseen = any(batch.seq > attempt.confirmed_seq for batch in batches)
    if attempt.state == AttemptState.LOST and (unseen or active) and not revive(attempt):
        return _reply(name, attempt, refusal=_SUPERSEDED)
    if attempt.state not in ACTIVE_ATTEMPT_STATES:
        return _reply(name, attempt, cancel=active, refusal=_CLOSED if unseen else None)
    return _take_in_order(name, attempt, batches)


def _locked(host: Host, attempt_id: UUID) -> Attempt | None:
    """With what a report may ask of its run and its trial; the rest is read if something asks for it."""
    found = prepared.execute(_LOCK, [attempt_id, host.pk])
    if not found:
        return None
    values = found[0]
    attempt = prepared.loaded(Attempt, _ATTEMPT, values[: len(_ATTEMPT)])
    if attempt.run_id:
        attempt.run = prepared.loaded(Run, _RUN, values[len(_ATTEMPT) : -len(_TRIAL)])
    if attempt.trial_id:
        attempt.trial = prepared.loaded(Trial, _TRIAL, values[-len(_TRIAL) :])
    return attempt


def _take_in_order(name: str, attempt: Attempt, batches: Sequence[Batch]) -> AttemptReply:
    intake = Intake(attempt)
    confirmed = attempt.confirmed_seq
    for batch in batches:
        if batch.seq == confirmed + 1:
            for item in batch.items:
                take_item(intake, item)
            confirmed = batch.seq
    offset = offset_ms(attempt.clock_offset_ms, batches[-1:], now_s=time.time())
    intake.later.change(
        attempt, confirmed_seq=confirmed, lease_until=renewed(attempt.lease_until), clock_offset_ms=offset
    )
    intake.write()
    if intake.finished and len(batches) <= _KEEPS_UP:
        transaction.on_commit(lambda: dispatch_host(attempt.host_id))
    return _reply(name, attempt)


def _fail_for_bad_item(host: Host, name: str, attempt_id: UUID, words: str) -> AttemptReply:
    """What the report said of this attempt was rolled back; what was confirmed before stays."""
    refusal = Refusal(code="bad_item", message=words)
    with transaction.atomic():
        attempt = _locked(host, attempt_id)
        if attempt is None:
            return AttemptReply(attempt=name, confirmed_seq=0, refusal=_UNKNOWN)
        if attempt.state in ACTIVE_ATTEMPT_STATES:
            end_attempt(attempt, AttemptState.FAILED, code="bad_item", message=f"The worker reported: {words}")
            transaction.on_commit(lambda: dispatch_host(attempt.host_id))
    return _reply(name, attempt, refusal=refusal)


def _reply(name: str, attempt: Attempt, *, cancel: bool = False, refusal: Refusal | None = None) -> AttemptReply:
    if attempt.state in ACTIVE_ATTEMPT_STATES:
        cancel = _to_be_stopped(attempt)
    return AttemptReply(
        attempt=name,
        confirmed_seq=attempt.confirmed_seq,
        cancel=cancel,
        lease_until=attempt.lease_until.timestamp() if attempt.state in ACTIVE_ATTEMPT_STATES else 0.0,
        refusal=refusal,
    )


def _to_be_stopped(attempt: Attempt) -> bool:
    """A person cancelled its run, skips its trial, or stops its purge. Settings are put back all the same."""
    if attempt.kind == AttemptKind.PURGE:
        return HostAction.objects.filter(attempt=attempt, stop_requested_at__isnull=False).exists()
    if attempt.kind != AttemptKind.TRIAL or attempt.run is None or attempt.trial is None:
        return False
    return attempt.run.cancel_requested_at is not None or attempt.trial.skip_requested_at is not None
