"""Report to the server: items become numbered batches on disk, batches become reports.

    emit ──► open batch (memory, at most 1 s) ──► spool (disk) ──► report ──► confirmed: deleted from disk
                                                    ▲                 │
                                                    └── no answer ────┘ again after 1 to 5 s

One report is sent at a time, with the oldest unconfirmed batches, so after a lost answer
everything unconfirmed is sent again. While an attempt is active there is an exchange every
second, also without news: it renews the lease and returns a cancellation. A busy server asks for
longer than a second between reports; the first and the last message of an attempt, and the rest of
a backlog that did not fit into a report, are sent at once all the same.
"""

import logging
import random
import threading
from collections.abc import Sequence

from worker.contract.items import Accepted, Finished, Item, Outcome, Phase
from worker.contract.reports import AttemptReply, ReportReply
from worker.kernel.clock import REAL_TIME, Clock
from worker.link.client import Client, Refused, Unreachable
from worker.link.session import NO_SESSION, Session, encode_item, encode_report
from worker.link.spool import Spool, Spooled, SpoolFull
from worker.log import Shipping
from worker.process.control import Control

log = logging.getLogger(__name__)

EXCHANGE_EVERY_S = 1.0
BACKOFF_S = (1.0, 5.0)
REPORT_BYTES = 4 * 1024 * 1024
BATCH_BYTES = 1024 * 1024
BATCH_ITEMS = 1000
SPACE_WAIT_S = 30.0
# Statuses that mean a bad body; other errors are not caused by a batch.
BAD_BODY = frozenset({400, 413, 422})


class _Open:
    """Encoded items of one attempt that are not on disk yet."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.items: list[bytes] = []
        self.matters = False  # holds more than accepted and phase items
        self.bytes = 0
        self.since = clock.now()

    def add(self, item: bytes) -> None:
        self.items.append(item)
        self.bytes += len(item)

    @property
    def due(self) -> bool:
        full = self.bytes >= BATCH_BYTES or len(self.items) >= BATCH_ITEMS
        return full or self._clock.now() - self.since >= EXCHANGE_EVERY_S


class Reporter:
    """`emit` and `finish` may be called from any thread; the reporter's own thread talks to the server."""

    def __init__(
        self, spool: Spool, client: Client, *, shipping: Shipping | None = None, session: Session = NO_SESSION,
        clock: Clock = REAL_TIME,
    ) -> None:  # fmt: skip
        self.spool = spool
        self._clock = clock
        self._session = session
        self.token_due = threading.Event()  # the server asks for a new host token to be fetched
        self._shipping = shipping
        self.heard_at = self._clock.now()  # last answer about an attempt
        self.lease_until = 0.0  # Unix time, by the server's clock, of the latest lease
        self._client = client
        self._lock = threading.RLock()
        self._open: dict[str, _Open] = {}
        self._lost: set[str] = set()  # attempts with items that did not fit on disk
        self._followed: dict[str, Control] = {}
        self._wake = threading.Event()
        self._urgent = False
        self._stop_at: float | None = None
        self._next_at = 0.0
        self._report_every_s = EXCHANGE_EVERY_S  # as the server's last reply asked
        self._failures = 0
        self._singly = False  # a report was refused as a whole: send single batches to find the bad one
        self._thread = threading.Thread(target=self._run, name="reporter", daemon=True)

    # ---- called from the order thread

    def start(self) -> None:
        if self._shipping:
            self._shipping.on_line = self._wake.set
        self._thread.start()

    def stop(self, *, limit_s: float) -> None:
        """Send waiting batches for up to `limit_s`; the rest stays on disk for the next start."""
        self._stop_at = self._clock.now() + limit_s
        self._send_soon()
        if self._thread.ident is not None:  # not started if the worker fails or is stopped while it recovers
            self._thread.join(limit_s + 20)
        with self._lock:
            self._seal_all()

    def follow(self, control: Control) -> None:
        """Renew the attempt's lease from now on, and stop it when the server says so."""
        with self._lock:
            self._followed[control.attempt] = control
        self._wake.set()

    def emit(self, attempt: str, item: Item) -> None:
        """Report an item of an attempt. A disk that is full stops the attempt at its first measurement.

        Items after lost ones are not reported: they could be of a stream whose start is lost, and the server would
        refuse the attempt for another reason than the full disk.
        """
        text = encode_item(item)
        with self._lock:
            if attempt in self._lost:
                return
            opened = self._open.setdefault(attempt, _Open(self._clock))
            opened.add(text)
            opened.matters = opened.matters or not isinstance(item, Accepted | Phase)
            if opened.due or isinstance(item, Accepted):
                self._seal(attempt)
            followed = attempt in self._followed
        if isinstance(item, Accepted):
            self._send_soon()
        elif not followed:
            self._wake.set()  # no attempt is followed, so nothing else wakes the thread

    def finish(self, attempt: str, item: Finished) -> None:
        """Report the attempt's final item; it is on disk on return.

        Raises SpoolFull if the disk stays full. Then the lease is not renewed, and this can be called again.
        """
        until = self._clock.now() + SPACE_WAIT_S
        while not self._finish(attempt, item, give_up=self._clock.now() > until):
            self._clock.sleep(0.5)
        self._send_soon()

    def _finish(self, attempt: str, item: Finished, *, give_up: bool) -> bool:
        """Write the open items, usually the result, together with the final one: that batch may use the reserve."""
        with self._lock:
            opened = self._open.get(attempt)
            try:
                last = encode_item(self._failed_if_lost(attempt, item))
                self.spool.append(attempt, [*(opened.items if opened else ()), last], last=True)
            except SpoolFull:
                if give_up:
                    self._followed.pop(attempt, None)
                    raise
                return False
            self._open.pop(attempt, None)
            self._lost.discard(attempt)
            self._followed.pop(attempt, None)
            return True

    def _failed_if_lost(self, attempt: str, item: Finished) -> Finished:
        """Turn the end of an attempt with lost items into a failure."""
        if attempt not in self._lost or item.outcome is not Outcome.DONE:
            return item
        words = "The disk of the worker's state directory was full, so a part of the measurements was lost."
        return Finished(at=item.at, outcome=Outcome.FAILED, code=SpoolFull.code, message=words)

    def _seal(self, attempt: str) -> None:
        opened = self._open.pop(attempt, None)
        if opened is None:
            return
        try:
            self.spool.append(attempt, opened.items)
        except SpoolFull as error:
            if not opened.matters and opened.bytes < BATCH_BYTES:
                self._open[attempt] = opened  # tried again at the next turn
                return
            log.error("%d items of attempt %s are lost: %s", len(opened.items), attempt, error)
            self._lost.add(attempt)
            if control := self._followed.get(attempt):
                control.fail(error.code, f"{error} The trial was stopped; what was spooled before is kept.")

    def _send_soon(self) -> None:
        self._urgent = True
        self._wake.set()

    # ---- the reporter's thread

    def _run(self) -> None:
        while not self._done():
            self._clock.wait(self._wake, self._pause_s())
            self._wake.clear()
            try:
                self._turn()
            except Exception:
                log.exception("The reporter failed and continues.")
                self._back_off()

    def _done(self) -> bool:
        if self._stop_at is None:
            return False
        return self._clock.now() >= self._stop_at or (not self._open and self.spool.empty and not self._has_log)

    @property
    def _has_log(self) -> bool:
        return self._shipping is not None and not self._shipping.empty

    def _pause_s(self) -> float:
        with self._lock:
            busy = bool(self._open or self._followed)
        if not busy and self.spool.empty and not self._has_log:
            return 60.0
        return max(0.0, min(self._next_at - self._clock.now(), BACKOFF_S[1]))

    def _turn(self) -> None:
        with self._lock:
            urgent, self._urgent = self._urgent and not self._failures, False
            sending = urgent or self._clock.now() >= self._next_at
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
        sent_at, waiting_bytes = self._clock.now(), self._waiting_bytes(batches)
        self._next_at = sent_at + self._report_every_s
        try:
            body = encode_report(
                batches, active, spool_bytes=waiting_bytes, log=lines, session=self._session,
                version=self._client.contract,
            )  # fmt: skip
            reply = self._client.report(body)
        except Unreachable as error:
            self._log_trouble(str(error))
            self._back_off()
        except Refused as error:
            self._take_refusal(error, batches)
        else:
            self._session.accepted()
            if self._shipping and lines:
                self._shipping.confirm(lines)
            self._log_recovered()
            self._apply_reply(reply, sent_at)
            self._after(batches, rest=waiting_bytes > 0)

    def _waiting_bytes(self, batches: Sequence[Spooled]) -> int:
        """Bytes on disk that are not in this report."""
        return max(0, self.spool.backlog()[1] - sum(len(batch.body) for batch in batches))

    def _after(self, batches: Sequence[Spooled], *, rest: bool) -> None:
        """Send the next report at once if a rest of the backlog did not fit into this one, and the backlog shrinks."""
        if not batches:
            return
        if self.spool.oldest(batches[0].attempt) == batches[0].seq:
            log.warning("The server confirmed nothing of batch %d of %s.", batches[0].seq, batches[0].attempt)
            self._back_off()
        elif rest:
            self._next_at = 0.0
        else:
            self._singly = False

    def _apply_reply(self, reply: ReportReply, sent_at: float) -> None:
        # If the reply took long, a pause follows it too. Hosts that wait for a busy server do not return all at once.
        pause_s = reply.report_every_s - EXCHANGE_EVERY_S
        self._next_at = max(sent_at + reply.report_every_s, self._clock.now() + pause_s)
        self._report_every_s = reply.report_every_s
        if reply.token_due:
            self.token_due.set()
        if reply.attempts:
            self.heard_at = self._clock.now()
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
        """Refuse to continue after a gap: a server restored from a backup may ask for deleted batches."""
        oldest = self.spool.oldest(answer.attempt)
        if oldest is not None and oldest > answer.confirmed_seq + 1:
            words = f"The server has batches up to {answer.confirmed_seq}, the oldest one here is {oldest}."
            self._set_aside(answer.attempt, "gap", words)

    def _set_aside(self, attempt: str, code: str, message: str) -> None:
        with self._lock:
            control = self._followed.get(attempt)
            if control is not None:
                control.fail(code, f"The server refuses this attempt: {message}")
                del self._followed[attempt]
        count = self.spool.refuse(attempt, code, message)
        log.error("Attempt %s is refused (%s: %s); %d batches are set aside.", attempt, code, message, count)

    def _take_refusal(self, error: Refused, batches: Sequence[Spooled]) -> None:
        if error.status not in BAD_BODY or error.code == "version_mismatch" or not batches:
            self._log_trouble(str(error))
            self._back_off()
        elif len(batches) == 1:
            self._set_aside(batches[0].attempt, error.code, str(error))
        else:
            log.error("A report was refused as a whole; sending its batches one by one: %s", error)
            self._singly = True

    def _back_off(self) -> None:
        self._failures += 1
        pause = min(BACKOFF_S[1], BACKOFF_S[0] * 1.5 ** (self._failures - 1))
        if self._stop_at is not None:
            pause = BACKOFF_S[0] / 2
        self._next_at = self._clock.now() + pause * random.uniform(0.8, 1.2)  # noqa: S311 - spread, not secrecy

    def _log_trouble(self, words: str) -> None:
        if self._failures == 0:
            log.warning("Reports stay on disk until the server accepts them: %s", words)

    def _log_recovered(self) -> None:
        if self._failures:
            log.info("The server accepts reports again; %d batches are waiting.", self.spool.backlog()[0])
        self._failures = 0
