"""The trial thread: works on the journal's orders one at a time.

    received ──► begun ──► (guard, settings, streams …) ──► last item on disk ──► closed
        │           └── the worker died: the next start says worker_died
        ├── cannot be read: order_unreadable, and its text is set aside in the journal
        └── expired: order_expired

The Celery task calls `take` and returns; the journal refuses an order that it knows, so an
order delivered twice is worked on once.
"""

import logging
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress

from worker import __version__, layouts, process
from worker.contract.base import ContractError, encode, is_id
from worker.contract.items import Accepted, Finished, Item, Outcome, SettingRestored
from worker.contract.orders import AnyOrder, CloseRunOrder, PurgeOrder, SettingOrder, TrialOrder, decode_order
from worker.contract.signing import unseal
from worker.control import Control
from worker.drives.wear import Wear
from worker.journal import OpenAttempt
from worker.link.client import Refused, Unreachable
from worker.link.registration import Greeter
from worker.link.reporter import Reporter
from worker.link.spool import SpoolFull
from worker.log import about
from worker.orders import setting
from worker.orders.outcomes import finished
from worker.orders.purge import carry_out
from worker.orders.trial import Bench, Trial, in_words
from worker.settings import session

log = logging.getLogger(__name__)

IDLE_LOOK_S = 5.0
IDLE_RESTORE_S = 900.0
HELLO_TRIES = 3


class Executor:
    def __init__(
        self,
        host: str,
        bench: Bench,
        reporter: Reporter,
        greeter: Greeter,
        *,
        on_crash: Callable[[], None],
        idle_restore_s: float = IDLE_RESTORE_S,
    ) -> None:
        self._host = host
        self._bench = bench
        self._reporter = reporter
        self._greeter = greeter
        self._on_crash = on_crash
        self._idle_restore_s = idle_restore_s
        self._controls: dict[str, Control] = {}
        self._lock = threading.RLock()  # `begin_stop` is called by a signal handler of the thread that takes orders
        self._worked_at = time.monotonic()
        self._idle_done = True
        self._wake = threading.Event()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="trial", daemon=True)

    # ---- called from other threads

    def take(self, envelope: str) -> None:
        """Verify an order and write it down. Anything not from our server, or not for us, is dropped."""
        try:
            # Expiry is judged when the order is begun, so that an expired one is answered, once.
            order = unseal(envelope, host=self._host, public_keys=self._greeter.public_keys, now=0.0)
        except ContractError as error:
            log.error("An order was dropped (%s): %s", error.code, error)
            return
        with about(order.attempt):
            self._receive(order)

    def _receive(self, order: AnyOrder) -> None:
        if not self._bench.journal.receive(encode(order).decode(), order.attempt):
            log.info("This order came again; it is known.")
            return
        log.info("Order received: %s.", type(order).__name__)
        self._accept(order.attempt)
        self._wake.set()

    def _accept(self, attempt: str) -> None:
        self._reporter.follow(self._control(attempt))
        if not self._reporter.spool.knows(attempt):
            self._reporter.emit(attempt, Accepted(at=time.time(), worker_version=__version__))

    def start(self) -> None:
        self._thread.start()

    def begin_stop(self) -> None:
        """Take no more orders and stop the one under way; returns at once."""
        self._stopping.set()
        with self._lock:
            controls = list(self._controls.values())
        for control in controls:
            control.fail("worker_stopped", "The worker was stopped on its host while the trial ran.")
        self._wake.set()

    def stop(self, *, limit_s: float) -> bool:
        """Wait for the end; True if the thread ended in time."""
        self.begin_stop()
        if self._thread.ident is not None:
            self._thread.join(limit_s)
        return not self._thread.is_alive()

    # ---- the trial thread

    def recover(self) -> None:
        """After a start: end what a killed worker left behind. Runs before any order is taken."""
        for name in process.kill_leftovers(self._bench.state):
            log.warning("Killed what was left of %s.", name)
        restored = self._restore_all()
        for entry in self._bench.journal.open_attempts():
            with about(entry.attempt):
                self._recover_attempt(entry, restored)

    def _recover_attempt(self, entry: OpenAttempt, restored: Sequence[SettingRestored]) -> None:
        try:
            decode_order(entry.order)
        except ContractError as error:
            self._set_aside(entry, error, restored)
            return
        if self._reporter.spool.is_finished(entry.attempt):
            self._bench.journal.finish(entry.attempt)
        elif entry.begun:
            log.warning("The worker died while this order was under way.")
            self._say(entry.attempt, restored)
            words = "The worker ended while the order was under way; it has been started again and cleaned up."
            self._close(entry.attempt, finished(Outcome.FAILED, "worker_died", words))
        else:
            self._accept(entry.attempt)

    def _set_aside(self, entry: OpenAttempt, error: ContractError, restored: Sequence[SettingRestored] = ()) -> None:
        """Its text stays in the journal for a person; the server is told that the attempt failed."""
        log.error("Order %d of the journal cannot be read and is set aside: %s", entry.number, error)
        if is_id(entry.attempt) and not self._reporter.spool.is_finished(entry.attempt):
            self._accept(entry.attempt)
            self._say(entry.attempt, restored if entry.begun else ())
            words = (
                f"The worker cannot read this order in its journal: {error} The order is set aside there; "
                "“sweetspot-worker doctor” lists it."
            )
            if not self._end(entry.attempt, finished(Outcome.FAILED, "order_unreadable", words)):
                return
        self._bench.journal.set_aside(entry.number)

    def _run(self) -> None:
        try:
            self._work_on()
            self._restore_all()
        except Exception:
            log.critical("The trial thread met a fault; the process ends, the next start cleans up.", exc_info=True)
            self._on_crash()

    def _work_on(self) -> None:
        while not self._stopping.is_set():
            entry = self._bench.journal.next_order()
            if entry is not None:
                self._work(entry)
                continue
            self._wake.wait(IDLE_LOOK_S)
            self._wake.clear()
            self._put_back_if_forgotten()

    def _work(self, entry: OpenAttempt) -> None:
        with about(entry.attempt), self._greeter.kept_away():
            self._bench.journal.begin(entry.attempt)
            self._idle_done = False
            try:
                order = decode_order(entry.order)
            except ContractError as error:
                self._set_aside(entry, error)
                return
            log.info("Begun.")
            try:
                end = self._carry_out(order)
            except Exception as error:
                log.exception("The order met a fault of the worker.")
                end = finished(Outcome.FAILED, "internal_error", f"{type(error).__name__}: {in_words(error)}")
            if end.code == "worker_stopped":
                self._say(order.attempt, self._restore_all())
            self._close(order.attempt, end)
            self._worked_at = time.monotonic()

    def _carry_out(self, order: AnyOrder) -> Finished:
        control = self._control(order.attempt)
        late_s = self._late_s(order)
        if control.reason is not None and not isinstance(order, CloseRunOrder):  # settings are put back come what may
            return finished(control.reason.outcome, control.reason.code, control.reason.message)
        if late_s > 0:
            return finished(Outcome.FAILED, "order_expired", f"The order expired {late_s:.0f} s before it was begun.")
        if isinstance(order, TrialOrder):
            return Trial(order, self._bench, self._emitter(order), control, now=self._greeter.server_now).run()
        if isinstance(order, CloseRunOrder):
            return self._close_run(order)
        if isinstance(order, PurgeOrder):
            return carry_out(
                order, drives=self._bench.drives, policy_path=self._bench.policy, emit=self._emitter(order),
                control=control, now=self._greeter.server_now,
            )  # fmt: skip
        if isinstance(order, SettingOrder):
            return setting.carry_out(order, self._bench, self._emitter(order))
        return self._look_again(control)

    def _emitter(self, order: AnyOrder) -> Callable[[Item], None]:
        return lambda item: self._reporter.emit(order.attempt, item)

    def _late_s(self, order: AnyOrder) -> float:
        """How long ago it expired, negative while it is good. Looks it expired, the server is asked for its time."""
        late_s = self._greeter.server_now() - order.expires_at
        if late_s > 0:
            with suppress(Unreachable, Refused):
                self._greeter.greet()
        return self._greeter.server_now() - order.expires_at

    def _close_run(self, order: CloseRunOrder) -> Finished:
        restored = self._put_back(order.run)
        self._say(order.attempt, restored)
        session.put_back_other_runs(order.run, self._bench.journal)
        Wear(self._bench.state, order.run, self._emitter(order)).close()
        left = [f"{item.name} of {item.device or 'the host'}: {item.note}" for item in restored if not item.restored]
        if left:
            return finished(Outcome.FAILED, "settings_not_restored", "Not put back: " + "; ".join(left))
        return finished(Outcome.DONE)

    def _look_again(self, control: Control) -> Finished:
        trouble = ""
        for pause_s in range(HELLO_TRIES):
            if control.stopped.wait(pause_s):
                break
            try:
                self._greeter.greet(probe=True)
                return finished(Outcome.DONE)
            except (Unreachable, Refused) as error:
                trouble = str(error)
        return finished(Outcome.FAILED, "hello_failed", f"The host's facts could not be delivered: {trouble}")

    def _close(self, attempt: str, end: Finished) -> None:
        """The last word goes to disk first; if the worker dies in between, the spool knows it was said."""
        if self._end(attempt, end):
            self._bench.journal.finish(attempt)

    def _end(self, attempt: str, end: Finished) -> bool:
        """Whether the last word is on disk."""
        log.info("Ended: %s %s", end.outcome.value, end.code)
        try:
            self._reporter.finish(attempt, end)
        except SpoolFull as error:
            log.critical("The end of this order could not be written down, the next start will tell it: %s", error)
            return False
        with self._lock:
            self._controls.pop(attempt, None)
        return True

    # ---- settings and layouts

    def _put_back_if_forgotten(self) -> None:
        """No order, no answer about one and no lease for the idle time: the server has forgotten the run."""
        quiet_s = time.monotonic() - max(self._worked_at, self._reporter.heard_at)
        leased_s = self._reporter.lease_until - self._greeter.server_now()
        if self._idle_done or quiet_s < self._idle_restore_s or leased_s > -self._idle_restore_s:
            return
        log.warning("Nothing was heard of any run for %.0f s: settings and layouts are put back.", quiet_s)
        self._restore_all()
        self._idle_done = True

    def _put_back(self, run: str | None = None) -> Sequence[SettingRestored]:
        """Settings, then layouts, of one run or of all: an array's own settings vanish with it."""
        journal = self._bench.journal
        settings = session.restore_all(journal) if run is None else session.restore_run(run, journal)
        return [*settings, *layouts.put_back(layouts.of_runs(journal, run), state=self._bench.state, journal=journal)]

    def _restore_all(self) -> Sequence[SettingRestored]:
        restored = self._put_back()
        for item in restored:
            level = logging.INFO if item.restored else logging.ERROR
            log.log(
                level, "Put back %s of %s: %s (%s)", item.name, item.device, item.observed, item.note or "as it was"
            )
        return restored

    def _say(self, attempt: str, items: Sequence[Item]) -> None:
        for item in items:
            self._reporter.emit(attempt, item)

    def _control(self, attempt: str) -> Control:
        with self._lock:
            control = self._controls.setdefault(attempt, Control(attempt))
        if self._stopping.is_set():
            control.fail("worker_stopped", "The worker was stopped on its host before the order was begun.")
        return control
