"""Reports that come at the same moment, taken in one transaction: its price, and that of its statements, is shared.

    request ─► its pieces wait ─► whoever may write takes all that wait ─► answered: each request goes on with its own
                                      └─ something wrong with one of them: none is taken, each goes its own way

While one request writes, what comes meanwhile waits and is the next one's. A single report is written at once; where
others are being read at that moment, they are waited for, for some milliseconds at most. After an outage a dozen hosts'
trials are a dozen rows of each statement.
"""

import threading
import time
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from uuid import UUID

from django.db import Error, transaction

from webapp.hosts.models import Host
from webapp.hosts.services import touch_hosts
from webapp.results.attempts import lock_active_trials, reply_about
from webapp.results.bad_item import BadItem
from webapp.results.intake import Intake, started_legs, write
from webapp.results.items import take_batches
from webapp.runs.models import Attempt
from webapp.runs.states import IllegalMove, Later, StaleMove
from worker.contract.reports import AttemptReply, Batch

MOST_BATCHES = 5000  # that one request writes for others and itself, as many as a report may hold

COMING_S = 0.005  # the longest that those are waited for that are being read: a fifth of what writing takes

_writing = threading.Lock()
_waiting: deque["Piece"] = deque()
_coming: set[int] = set()  # threads that are reading a report


@contextmanager
def coming() -> Iterator[None]:
    """While a report is read whose pieces will be taken."""
    _coming.add(threading.get_ident())
    try:
        yield
    finally:
        _coming.discard(threading.get_ident())


@dataclass(eq=False)
class Piece:
    """What one report has to say about one attempt."""

    host: Host
    attempt_id: UUID
    batches: Sequence[Batch]
    spool_bytes: int  # what waits on the host's disk beyond this report
    looked_at: bool = False
    answer: AttemptReply | None = None  # once it is committed; None for good where it has to be taken alone
    finished: bool = False  # the attempt ended with it


def take(pieces: Sequence[Piece]) -> None:
    """Commit what can be, together with what other requests of this process bring, and put the answers in the pieces.
    That those hosts were heard is noted, too.

    Left alone is what needs more than to be written: an attempt that is no trial's, not the host's, not active any
    more, or locked by somebody else.
    """
    _waiting.extend(pieces)
    _coming.discard(threading.get_ident())
    with _writing:
        while not all(piece.looked_at for piece in pieces):
            _let_come()
            together = _next()
            try:
                answers = _take(together)
            except (BadItem, Error, IllegalMove, StaleMove):
                answers = {}
            finally:
                for piece in together:
                    piece.looked_at = True
            for piece, (answer, finished) in answers.items():
                piece.answer, piece.finished = answer, finished


def _let_come() -> None:
    until = time.monotonic() + COMING_S
    while _coming and time.monotonic() < until:
        time.sleep(COMING_S / 20)


def _next() -> list[Piece]:
    """One of each attempt: what is said of it a second time is taken alone, after the first."""
    pieces: dict[UUID, Piece] = {}
    batches = 0
    while _waiting and (not pieces or batches + len(_waiting[0].batches) <= MOST_BATCHES):
        piece = _waiting.popleft()
        batches += len(piece.batches)
        if piece.attempt_id in pieces:
            piece.looked_at = True
        else:
            pieces[piece.attempt_id] = piece
    return list(pieces.values())


@transaction.atomic
def _take(together: Sequence[Piece]) -> dict[Piece, tuple[AttemptReply, bool]]:
    """Answers, and whether the attempt has ended, of what was written."""
    pieces = {piece.attempt_id: piece for piece in together}
    attempts = [
        attempt
        for attempt in lock_active_trials(pieces)
        if attempt.host_id == pieces[attempt.pk].host.pk and _says_more(pieces[attempt.pk], attempt)
    ]
    later, legs = Later(), started_legs(attempts)
    intakes = [Intake(attempt, later, legs[attempt.pk]) for attempt in attempts]
    for intake in intakes:
        take_batches(intake, pieces[intake.attempt.pk].batches)
    heard = [pieces[attempt.pk] for attempt in attempts]
    touch_hosts({piece.host: piece.spool_bytes for piece in heard})
    write(intakes, later)
    return {
        piece: (reply_about(piece.batches[0].attempt, intake.attempt), intake.finished is not None)
        for intake in intakes
        for piece in [pieces[intake.attempt.pk]]
    }


def _says_more(piece: Piece, attempt: Attempt) -> bool:
    return any(batch.seq > attempt.confirmed_seq for batch in piece.batches)
