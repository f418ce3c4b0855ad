"""Takes a worker's report: exactly once, in order.

What only has to be written is written together with what other reports bring (`together`). The rest comes here, each
attempt in a transaction of its own: its row is locked, so two reports about it wait for each other. Batch
`confirmed_seq + 1` is taken, lower ones were taken before, higher ones show a gap and are not taken; the answer says
how far everything is committed. An item that cannot be true fails its attempt by name and no other.

    attempt      batches new to us      answer
    active       taken                  confirmed, cancel?, lease
    lost         revived, then taken    the same; too late: superseded
    ended        none                   confirmed (and cancel, if the worker believes it is still at it)
    ended        some                   attempt_closed
    not its own  -                      unknown_attempt
"""

import logging
from collections.abc import Sequence
from uuid import UUID

from django.db import DataError, IntegrityError, transaction

from webapp.core.logs import about
from webapp.core.models import Counter
from webapp.core.services import count
from webapp.hosts.models import Host
from webapp.hosts.services import touch_hosts
from webapp.results.attempts import lock, reply_about
from webapp.results.bad_item import BadItem
from webapp.results.batches import by_attempt, go_on, take_batches
from webapp.results.seconds import take_quickly
from webapp.results.together import take_together
from webapp.runs.dispatch import dispatch_host
from webapp.runs.ending import end_attempt
from webapp.runs.leases import parse_id, revive
from webapp.runs.models import ACTIVE_ATTEMPT_STATES, AttemptState
from worker.contract.reports import AttemptReply, Batch, Refusal, Report, ReportReply

log = logging.getLogger(__name__)

_UNKNOWN = Refusal(code="unknown_attempt", message="This server gave this host no such attempt.")
_CLOSED = Refusal(code="attempt_closed", message="This attempt has ended; nothing more of it is taken.")
_SUPERSEDED = Refusal(
    code="superseded",
    message="This attempt was lost, and its run has ended or the host was given something newer since.",
)


def take_report(*, host: Host, report: Report) -> ReportReply:
    """Commit what is new in a report and answer for every attempt that it names."""
    return take_simply(token_hash=host.token_hash, report=report) or take_at_length(host=host, report=report)


def take_simply(*, token_hash: str, report: Report) -> ReportReply | None:
    """The answer to a report that only had to be written, as nearly all do; None: it is to be taken at length.

    `token_hash` says whose it is.
    """
    return take_quickly(token_hash=token_hash, report=report) or take_together(token_hash=token_hash, report=report)


def take_at_length(*, host: Host, report: Report) -> ReportReply:
    """Commit and answer whatever there is to say, each attempt in a transaction of its own."""
    batches: dict[str, list[Batch]] = {attempt: [] for attempt in report.active} | by_attempt(report.batches)
    touch_hosts({host: report.spool_bytes})
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
    attempt = lock(host, attempt_id)
    if attempt is None:
        return AttemptReply(attempt=name, confirmed_seq=0, refusal=_UNKNOWN)
    unseen = any(batch.seq > attempt.confirmed_seq for batch in batches)
    if attempt.state == AttemptState.LOST and (unseen or active) and not revive(attempt):
        return reply_about(name, attempt, refusal=_SUPERSEDED)
    if attempt.state not in ACTIVE_ATTEMPT_STATES:
        return reply_about(name, attempt, cancel=active, refusal=_CLOSED if unseen else None)
    (intake,) = take_batches({attempt: batches})
    if intake.finished:
        go_on(attempt.host_id, batches)
    return reply_about(name, attempt)


def _fail_for_bad_item(host: Host, name: str, attempt_id: UUID, words: str) -> AttemptReply:
    """What the report said of this attempt was rolled back; what was confirmed before stays."""
    refusal = Refusal(code="bad_item", message=words)
    with transaction.atomic():
        attempt = lock(host, attempt_id)
        if attempt is None:
            return AttemptReply(attempt=name, confirmed_seq=0, refusal=_UNKNOWN)
        if attempt.state in ACTIVE_ATTEMPT_STATES:
            end_attempt(attempt, AttemptState.FAILED, code="bad_item", message=f"The worker reported: {words}")
            transaction.on_commit(lambda: dispatch_host(attempt.host_id))
    return reply_about(name, attempt, refusal=refusal)
