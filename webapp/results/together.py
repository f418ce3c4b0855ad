"""Reports that come at the same moment, taken in one transaction: its price, and that of its statements, is shared.

Where something is wrong with one of them none is taken, and each goes its own way. After an outage a dozen hosts'
trials are a dozen rows of each statement.
"""

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from uuid import UUID

from django.db import Error, transaction

from webapp.hosts.services import touch_hosts
from webapp.results.attempts import lock_active_trials, reply_about
from webapp.results.bad_item import BadItem
from webapp.results.batches import by_attempt, go_on, take_batches
from webapp.results.combining import Combiner
from webapp.runs.leases import parse_id
from webapp.runs.models import Attempt
from webapp.runs.states import IllegalMove, StaleMove
from worker.contract.reports import AttemptReply, Batch, Report, ReportReply

MOST_BATCHES = 5000  # that one request writes for others and itself, as many as a report may hold


@dataclass(eq=False)
class Piece:
    """What one report has to say about one attempt."""

    token_hash: str  # of who says it
    attempt_id: UUID
    batches: Sequence[Batch]
    spool_bytes: int  # what waits on the host's disk beyond this report
    answer: AttemptReply | None = None  # once it is committed; None for good where it has to be taken alone
    finished: UUID | None = None  # the attempt ended with it, and this host is free


def take_together(*, token_hash: str, report: Report) -> ReportReply | None:
    """The answer to a report of the host with this token if all of it could be committed so; None: look at it again.

    What needs more than to be written is not taken so, see `take`.
    """
    said = by_attempt(report.batches)
    ids = [parse_id(name) for name in said]
    if not said or None in ids or not said.keys() >= set(report.active) or report.log is not None:
        return None
    pieces = [
        Piece(token_hash, attempt_id, batches, report.spool_bytes)
        for attempt_id, batches in zip(ids, said.values(), strict=True)
        if attempt_id
    ]
    take(pieces)
    for piece in pieces:
        if piece.finished:
            go_on(piece.finished, piece.batches)
    answers = tuple(piece.answer for piece in pieces if piece.answer)
    return ReportReply(attempts=answers) if len(answers) == len(pieces) else None


def take(pieces: Sequence[Piece]) -> None:
    """Commit what can be, together with what other requests of this process bring, and put the answers in the pieces.
    That those hosts were heard is noted, too.

    Left alone is what needs more than to be written: an attempt that is no trial's, not the host's, not active any
    more, or locked by somebody else; and of a host that is to fetch a new token.
    """
    _combiner.take(pieces)


def coming() -> AbstractContextManager[None]:
    """While a report is decoded whose pieces will be taken."""
    return _combiner.coming()


def _commit(pieces: Sequence[Piece]) -> None:
    """One of each attempt: what is said of it a second time is taken alone, after the first."""
    of_attempts: dict[UUID, Piece] = {}
    for piece in pieces:
        of_attempts.setdefault(piece.attempt_id, piece)
    try:
        answers = _take(of_attempts)
    except (BadItem, Error, IllegalMove, StaleMove):
        return
    for piece, (answer, finished) in answers.items():
        piece.answer, piece.finished = answer, finished


@transaction.atomic
def _take(pieces: Mapping[UUID, Piece]) -> dict[Piece, tuple[AttemptReply, UUID | None]]:
    """Answers of what was written, and the host where the attempt has ended."""
    locked = lock_active_trials({attempt_id: piece.token_hash for attempt_id, piece in pieces.items()})
    attempts = [attempt for attempt in locked if _says_more(pieces[attempt.pk], attempt)]
    touch_hosts({attempt.host: pieces[attempt.pk].spool_bytes for attempt in attempts})
    intakes = take_batches({attempt: pieces[attempt.pk].batches for attempt in attempts})
    return {
        piece: (
            reply_about(piece.batches[0].attempt, intake.attempt),
            intake.attempt.host_id if intake.finished else None,
        )
        for intake in intakes
        for piece in [pieces[intake.attempt.pk]]
    }


def _says_more(piece: Piece, attempt: Attempt) -> bool:
    return any(batch.seq > attempt.confirmed_seq for batch in piece.batches)


_combiner = Combiner(_commit, weight=lambda piece: len(piece.batches), most=MOST_BATCHES)
