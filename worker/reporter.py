"""Tells the server what happens: items become numbered batches on disk, batches become reports.

    emit ──► open batch (memory, at most 1 s) ──► spool (disk) ──► report ──► confirmed: gone from disk
                                                    ▲                 │
                                                    └── no answer ────┘ again after 1 to 5 s

One report is under way at a time and each carries the oldest unconfirmed batches, so after
a lost answer everything not confirmed is simply sent again. While an attempt is active there
is an exchange a second even when there is nothing to say: it renews the lease and brings
back a cancellation. A busy server asks for longer than a second between reports; the first
and the last word of an attempt, and what is left of a backlog, are sent at once all the same.
"""

import logging
import random
import threading
import time
from collections.abc import Sequence

from worker.client import Client, Refused, Unreachable
from worker.contract.items import Accepted, Finished, Item, Outcome, Phase
from worker.contract.reports import AttemptReply, ReportReply
from worker.control import Control
from worker.encoding import encode_item, encode_report
from worker.log import Shipping
from worker.spool import Spool, Spooled, SpoolFull

log = logging.getLogger(__name__)

EXCHANGE_EVERY_S = 1.0
BACKOFF_S = (1.0, 5.0)
REPORT_BYTES = 4 * 1024 * 1024
BATCH_BYTES = 1024 * 1024
BATCH_ITEMS = 1000
ROOM_WAIT_S = 30.0
# Statuses with which a server says that this very body is bad; everything else is no fault of a batch.
BAD_BODY = frozenset({400, 413, 422})


class _Open:
    """Items of one attempt that are not on disk yet, encoded."""

    def __init__(self) -> None:
        self.items: list[bytes] = []
        self.matters = False  # holds more than what was going on
        self.bytes = 0
        self.since = time.monotonic()

    def add(self, item: bytes) -> None:
        self.items.append(item)
        self.bytes += len(item)

    @property
    def due(self) -> bool:
        full = self.bytes >= BATCH_BYTES or len(self.items) >= BATCH_ITEMS
        return full or time.monotonic() - self.since >= EXCHANGE_EVERY_S


class Reporter:
    """`emit` and `finish` may be called from any thread; one thread of its own talks to the server."""

    def __init__(self, spool: Spool, client: Client, *, shipping: Shipping | None = None) -> None:
        self.spool = spool
        self.token_due = threading.Event()  # the server said that a new host token is to be fetched
        self._shipping = shipping
        self.heard_at = time.monotonic()  # last answer about an attempt
        self.lease_until = 0.0  # Unix time, by the server's clock, of the latest lease
        self._client = client
        self._lock = threading.RLock()
        self._open: dict[str, _Open] = {}
        self._lost: set[str] = set()  # attempts of which items found no room on disk
        self._followed: dict[str, Control] = {}
        self._wake = threading.Event()
        self._urgent = False
        self._stop_at: float | None = None
        self._next_at = 0.0
        self._report_every_s = EXCHANGE_EVERY_S  # as the server's last reply asked
        self._failures = 0
        self._singly = False  # a report was refused as a whole: find the batch
        self._thread = threading.Thread(target=self._run, name="reporter", daemon=True)

    # ---- what the trial thread calls

    def start(self) -> None:
        if self._shipping:
            self._shipping.on_line = self._wake.set
        self._thread.start()

    def stop(self, *, limit_s: float) -> None:
        """Send what there is for up to `limit_s`; the rest stays on disk for the next start."""
        self._stop_at = time.monotonic() + limit_s
        self._hurry()
        self._thread.join(limit_s + 20)
        with self._lock:
            self._seal_all()

    def follow(self, control: Control) -> None:
        """From now on renew the attempt's lease, and pass on what the server wants of it."""
        with self._lock:
            self._followed[control.attempt] = control
        self._wake.set()

    def emit(self, attempt: str, item: Item) -> None:
        """Say something about an attempt. A full disk stops the attempt instead of raising here."""
        text = encode_item(item)
        with self._lock:
            opened = self._open.setdefault(attempt, _Open())
            opened.add(text)
            opened.matters = opened.matters or not isinstance(item, Accepted | Phase)
            if opened.due or isinstance(item, Accepted):
                self._seal(attempt)
            followed = attempt in self._followed
        if isinstance(item, Accepted):
            self._hurry()
        elif not followed:
            self._wake.set()  # nobody else keeps the thread in its rhythm

    def finish(self, attempt: str, item: Finished) -> None:
        """The attempt's last word; it is on disk when this returns. Raises SpoolFull if room stays out."""
        until = time.monotonic() + ROOM_WAIT_S
        while not self._finish(attempt, item, give_up=time.monotonic() > until):
            time.sleep(0.5)
        self._hurry()

    def _finish(self, attempt: str, item: Finished, *, give_up: bool) -> bool:
        """What is still open, the result mostly, goes with the last word: that may use the reserve."""
        with self._lock:
            opened = self._open.get(attempt)
            try:
                last = encode_item(self._honest(attempt, item))
                self.spool.append(attempt, [*(opened.items if opened else ()), last], last=True)
            except SpoolFull:
                if give_up:
                    raise
                return False
            self._open.pop(attempt, None)
            self._lost.discard(attempt)
            self._followed.pop(attempt, None)
            return True

    def _honest(self, attempt: str, item: Finished) -> Finished:
        """An attempt of which something was lost here is not done, however well it went."""
        if attempt not in self._lost or item.outcome is not Outcome.DONE:
            return item
        words = "The disk under the worker's state was full, so a part of what was measured could not be kept."
        return Finished(at=item.at, outcome=Outcome.FAILED, code=SpoolFull.code, message=words)

    def _seal(self, attempt: str) -> None:
        opened = self._open.pop(attempt, None)
        if opened is None:
            return
        try:
            self.spool.append(attempt, opened.items)
        except SpoolFull as error:
            log.error("%d items of attempt %s are lost: %s", len(opened.items), attempt, error)
            if opened.matters:
                self._lost.add(attempt)
            if control := self._followed.get(attempt):
                control.fail(error.code, f"{error} The trial was stopped; what was spooled before is kept.")

    def _hurry(self) -> None:
        self._urgent = True
        self._wake.set()

    # ---- the reporter's own thread

    def _run(self) -> None:
        while not self._done():
            self._wake.wait(self._pause_s())
            self._wake.clear()
            try:
                self._turn()
            except Exception:
                log.exception("The reporter met a fault of its own; it goes on.")
                self._back_off()

    def _done(self) -> bool:
        if self._stop_at is None:
            return False
        return time.monotonic() >= self._stop_at or (not self._open and self.spool.empty and not self._has_log)

    @property
    def _has_log(self) -> bool:
        return self._shipping is not None and not self._shipping.empty

    def _pause_s(self) -> float:
        with self._lock:
            busy = bool(self._open or self._followed)
        if not busy and self.spool.empty and not self._has_log:
            return 60.0
        return max(0.0, min(self._next_at - time.monotonic(), BACKOFF_S[1]))

    def _turn(self) -> None:
        with self._lock:
            urgent, self._urgent = self._urgent and not self._failures, False
            sending = urgent or time.monotonic() >= self._next_at
            self._seal_all(due_only=not sending)
            active = tuple(self._followed)
        if sending:
            self._exchange(active)

    def _seal_all(self, *, due_only: bool = False) -> None:
        for attempt in [name for name, opened in self._open.items() if opened.due or not due_only]:
            self._seal(attempt)

    def _exchange(self, active: Sequence[str]) -> None:
        limit = 0 if self._singly else REPORT_BYTES
        batches = self.spool.waiting(limit_bytes=limit)
        lines = self._shipping.waiting() if self._shipping else None
        if not batches and not active and lines is None:
            return
        self._next_at = time.monotonic() + self._report_every_s
        try:
            body = encode_report(
                batches, active, spool_bytes=self._beyond(batches), log=lines, version=self._client.contract
            )
            reply = self._client.report(body)
        except Unreachable as error:
            self._say_trouble(str(error))
            self._back_off()
        except Refused as error:
            self._take_refusal(error, batches)
        else:
            if self._shipping and lines:
                self._shipping.confirm(lines)
            self._say_recovered()
            self._obey(reply)
            self._after(batches)

    def _beyond(self, batches: Sequence[Spooled]) -> int:
        """Bytes that wait on disk and are not in this report."""
        return max(0, self.spool.backlog()[1] - sum(len(batch.body) for batch in batches))

    def _after(self, batches: Sequence[Spooled]) -> None:
        """Go on at once while there is a backlog and it shrinks."""
        if not batches:
            return
        if self.spool.oldest(batches[0].attempt) == batches[0].seq:
            log.warning("The server confirmed nothing of batch %d of %s.", batches[0].seq, batches[0].attempt)
            self._back_off()
        elif not self.spool.empty:
            self._next_at = 0.0
        else:
            self._singly = False

    def _obey(self, reply: ReportReply) -> None:
        self._next_at += reply.report_every_s - self._report_every_s
        self._report_every_s = reply.report_every_s
        if reply.token_due:
            self.token_due.set()
        if reply.attempts:
            self.heard_at = time.monotonic()
        for answer in reply.attempts:
            self.lease_until = max(self.lease_until, answer.lease_until)
            self.spool.confirm(answer.attempt, answer.confirmed_seq)
            if answer.refusal is not None:
                self._set_aside(answer.attempt, answer.refusal.code, answer.refusal.message)
            elif answer.cancel and (control := self._followed.get(answer.attempt)):
                control.cancel()
            else:
                self._check_gap(answer)

    def _check_gap(self, answer: AttemptReply) -> None:
        """A server restored from a backup may want batches again that are gone here."""
        oldest = self.spool.oldest(answer.attempt)
        if oldest is not None and oldest > answer.confirmed_seq + 1:
            words = f"The server has batches up to {answer.confirmed_seq}, the oldest one here is {oldest}."
            self._set_aside(answer.attempt, "gap", words)

    def _set_aside(self, attempt: str, code: str, message: str) -> None:
        with self._lock:
            control = self._followed.get(attempt)
            if control is not None:
                control.fail(code, f"The server takes no more of this attempt: {message}")
                del self._followed[attempt]
        count = self.spool.refuse(attempt, code, message)
        log.error("Attempt %s is refused (%s: %s); %d batches are set aside.", attempt, code, message, count)

    def _take_refusal(self, error: Refused, batches: Sequence[Spooled]) -> None:
        if error.status not in BAD_BODY or error.code == "version_mismatch" or not batches:
            self._say_trouble(str(error))
            self._back_off()
        elif len(batches) == 1:
            self._set_aside(batches[0].attempt, error.code, str(error))
        else:
            log.error("A report was refused as a whole, its batches go one by one now: %s", error)
            self._singly = True

    def _back_off(self) -> None:
        self._failures += 1
        pause = min(BACKOFF_S[1], BACKOFF_S[0] * 1.5 ** (self._failures - 1))
        if self._stop_at is not None:
            pause = BACKOFF_S[0] / 2
        self._next_at = time.monotonic() + pause * random.uniform(0.8, 1.2)  # noqa: S311 - spread, not secrecy

    def _say_trouble(self, words: str) -> None:
        if self._failures == 0:
            log.warning("Reports are kept on disk until the server takes them: %s", words)

    def _say_recovered(self) -> None:
        if self._failures:
            log.info("The server takes reports again; %d batches wait.", self.spool.backlog()[0])
        self._failures = 0
