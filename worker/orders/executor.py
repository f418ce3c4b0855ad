"""Carry out the journal's orders one at a time, in a separate thread, each by the handler of its kind.

    received ──► started ──► (handler of the order) ──► final item on disk ──► closed
        │           └── the worker died: the next start reports worker_died
        ├── unreadable, or its row is damaged: order_unreadable, its text stays in the journal
        └── too late, too early or older than a started order: order_expired, order_too_early, order_superseded

The Celery task calls `take` and returns. The journal rejects an order that it already has, so an order that is
delivered twice is carried out once. The journal keeps the signed envelope, which is verified again when the order
starts. After a start, an order waits for the server for a moment, because then its time is known; if the server is
away, the host's clock counts.
"""

import logging
import sqlite3
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress

from worker import __version__, guard, policy
from worker.contract.base import ContractError, Failed, is_id
from worker.contract.items import Accepted, Finished, Item, Outcome, Phase, PhaseName, SettingRestored
from worker.contract.orders import AnyOrder, CloseRunOrder, InventoryOrder, PurgeOrder, SettingOrder, TrialOrder
from worker.contract.reports import StartReply
from worker.contract.signing import unseal
from worker.drives.purge import purge_target
from worker.drives.wear import Wear
from worker.journal import OpenAttempt
from worker.link.client import Refused, Unreachable
from worker.link.registration import Registration
from worker.link.reporter import Reporter
from worker.link.spool import SpoolFull
from worker.log import about
from worker.orders import manual_setting, trial
from worker.orders.context import Handler, HostContext, OrderContext, code_of, error_text, failed, finished
from worker.orders.restore import not_restored, restore
from worker.process.control import Control
from worker.process.scope import kill_leftovers
from worker.settings import SETTING_NAMES, session
from worker.temporary import remove_recorded

# Purge one drive by a separate order.


def purge_drive(order: PurgeOrder, context: OrderContext) -> Finished:
    host, control = context.host, context.control
    try:
        armed = guard.serials_in_time(order.arming, now=context.server_now(), destroys=True)
        host.journal.require_reserve()
        allowed = policy.load(host.policy, SETTING_NAMES)
        context.emit(Phase(at=time.time(), name=PhaseName.GUARD))
        purge_target(
            order.target, order.method, allowed, armed,
            drives=host.drives, journal=host.journal, state=host.state, emit=context.emit, stopped=control.stopped,
        )  # fmt: skip
    except Failed as error:
        if reason := control.reason:
            return finished(reason.outcome, reason.code, f"{reason.message} {error}")
        return failed(error)
    return finished(Outcome.DONE)


# Take a new inventory and send it to the server.

TRIES = 3


def send_inventory(_order: InventoryOrder, context: OrderContext) -> Finished:
    problem = ""
    for pause_s in range(TRIES):
        if context.control.stopped.wait(pause_s):
            break
        try:
            context.register()
            return finished(Outcome.DONE)
        except (Unreachable, Refused) as error:
            problem = str(error)
    return finished(Outcome.FAILED, "hello_failed", f"The inventory could not be sent: {problem}")


# Close a run: restore everything that it changed on this host.


def close_run(order: CloseRunOrder, context: OrderContext) -> Finished:
    restored = restore(context.host, order.run)
    for item in restored:
        context.emit(item)
    session.restore_other_runs(order.run, context.host.journal)
    Wear(context.host.state, order.run, context.emit).close()
    if left := not_restored(restored):
        return finished(Outcome.FAILED, "settings_not_restored", f"Not restored: {left}")
    return finished(Outcome.DONE)


# The registry of order handlers, by kind of order.

HANDLERS: Mapping[type[AnyOrder], Handler] = {
    TrialOrder: trial.carry_out,
    CloseRunOrder: close_run,
    PurgeOrder: purge_drive,
    SettingOrder: manual_setting.carry_out,
    InventoryOrder: send_inventory,
}


# Whether an order may start now, by the server's clock.

AHEAD_S = 60.0  # an order may have been issued so much later than now, because the server's clock may be set


def problem(order: AnyOrder, *, now: float, newest: float) -> tuple[str, str] | None:
    """Code and message of an order that is too late, too early, or older than a started one; None if it may start.

    `newest`: when the newest started order was issued. A value after `now` is of a clock that was set back since.
    """
    if now > order.expires_at:
        return "order_expired", f"The order expired {now - order.expires_at:.0f} s before it could start."
    if order.issued_at > now + AHEAD_S:
        return "order_too_early", f"The order was issued {order.issued_at - now:.0f} s in the future."
    if order.issued_at < newest <= now:
        return "order_superseded", "The host has started an order that was issued later than this one."
    return None


log = logging.getLogger(__name__)

IDLE_POLL_S = 5.0
SERVER_WAIT_S = 10.0  # for the server's time, after a start
IDLE_RESTORE_S = 900.0
SPACE_WAIT_S, SPACE_POLL_S = 60.0, 0.5  # a trial waits so long for space on the disk
RETRY_S = 60.0  # for drives that appear late after a restart of the host, and for those that still erase themselves


class Executor:
    def __init__(
        self,
        host: str,
        context: HostContext,
        reporter: Reporter,
        registration: Registration,
        *,
        ask_start: Callable[[str], StartReply],
        on_crash: Callable[[], None],
        idle_restore_s: float = IDLE_RESTORE_S,
    ) -> None:
        self._host = host
        self._context = context
        self._reporter = reporter
        self._registration = registration
        self._ask_start = ask_start
        self._on_crash = on_crash
        self._idle_restore_s = idle_restore_s
        self._controls: dict[str, Control] = {}
        self._unwritten: dict[str, Finished] = {}  # final items for which the disk had no space, by attempt
        self._lock = threading.RLock()  # `begin_stop` is called by a signal handler of the thread that calls `take`
        self._worked_at = time.monotonic()
        self._idle_done = True
        self._left_over = False  # something could not be restored when everything was tried
        self._left_by: set[str] = set()  # closed runs of which something could not be restored
        self._restored_at = time.monotonic()
        self._wake = threading.Event()
        self._stopping = threading.Event()
        self._wait_until = time.monotonic() + SERVER_WAIT_S
        self._thread = threading.Thread(target=self._run, name="orders", daemon=True)

    # ---- called from other threads

    def take(self, envelope: str) -> None:
        """Verify an order and write it to the journal. Orders of another server or for another host are dropped."""
        try:
            # Its times are checked when it starts, so that the server is told about an expired order.
            order = self._unsealed(envelope)
        except ContractError as error:
            log.error("Dropped an order (%s): %s", error.code, error)
            return
        with about(order.attempt):
            if not self._is_for_this_worker(order):
                return
            try:
                self._receive(order, envelope)
            except sqlite3.OperationalError as error:
                if not self._context.journal.reserve.explains(error):
                    raise
                log.error("Dropped an order, because the state disk is full. The server sends it again: %s", error)

    def _unsealed(self, envelope: str) -> AnyOrder:
        return unseal(envelope, host=self._host, public_keys=self._registration.public_keys)

    def _is_for_this_worker(self, order: AnyOrder) -> bool:
        if self._registration.session.may_carry_out(order.session):
            return True
        log.error("Dropped an order for another worker with the identity of this host.")
        return False

    def _receive(self, order: AnyOrder, envelope: str) -> None:
        if not self._context.journal.receive(envelope, order.attempt, issued_at=order.issued_at):
            log.info("Ignored a repeated delivery of this order.")
            return
        log.info("Received order: %s.", type(order).__name__)
        self._accept(order.attempt)
        self._wake.set()

    def _accept(self, attempt: str) -> None:
        self._reporter.follow(self._control(attempt))
        if not self._reporter.spool.knows(attempt):
            self._reporter.emit(attempt, Accepted(at=time.time(), worker_version=__version__))

    def start(self) -> None:
        self._thread.start()

    def begin_stop(self) -> None:
        """Accept no more orders and stop the current one; return at once."""
        self._stopping.set()
        with self._lock:
            controls = list(self._controls.values())
        for control in controls:
            control.fail("worker_stopped", "The worker was stopped on its host during the trial.")
        self._wake.set()

    def stop(self, *, limit_s: float) -> bool:
        """Wait for the thread to end; True if it ended in time."""
        self.begin_stop()
        if self._thread.ident is not None:
            self._thread.join(limit_s)
        return not self._thread.is_alive()

    # ---- at the start of the worker

    def recover(self) -> None:
        """Clean up after a worker that was killed. Call this before `take`."""
        for name in kill_leftovers(self._context.state):
            log.warning("Killed processes that were left of %s.", name)
        restored = self._restore_all()
        for entry in self._context.journal.open_attempts():
            with about(entry.attempt):
                self._recover_attempt(entry, restored)

    def _recover_attempt(self, entry: OpenAttempt, restored: Sequence[SettingRestored]) -> None:
        try:
            self._order_of(entry)
        except ContractError as error:
            self._set_aside(entry, error, restored)
            return
        if self._reporter.spool.is_finished(entry.attempt):
            self._context.journal.finish(entry.attempt)
        elif entry.started:
            log.warning("The previous worker process died during this order.")
            self._emit_all(entry.attempt, restored)
            words = "The worker died during this order. It was restarted and has cleaned up."
            self._close(entry.attempt, finished(Outcome.FAILED, "worker_died", words))
        else:
            self._accept(entry.attempt)

    def _set_aside(self, entry: OpenAttempt, error: ContractError, restored: Sequence[SettingRestored] = ()) -> None:
        """Keep the order's text in the journal and report to the server that the attempt failed."""
        log.error("Order %d in the journal cannot be read and is set aside: %s", entry.number, error)
        if is_id(entry.attempt) and not self._reporter.spool.is_finished(entry.attempt):
            self._accept(entry.attempt)
            self._emit_all(entry.attempt, restored if entry.started else ())
            words = (
                f"The worker cannot trust or read this order in its journal: {error} The order is kept there; "
                "“sweetspot-worker doctor” lists it."
            )
            if not self._finish(entry.attempt, finished(Outcome.FAILED, "order_unreadable", words)):
                return
        self._context.journal.set_aside(entry.number)

    # ---- the order thread

    def _run(self) -> None:
        try:
            self._work_on()
            self._restore_all()
        except Exception:
            log.critical("The order thread failed. The process exits, and the next start cleans up.", exc_info=True)
            self._on_crash()

    def _work_on(self) -> None:
        while not self._stopping.is_set():
            try:
                self._work_or_wait()
            except sqlite3.OperationalError as error:
                if not self._context.journal.reserve.explains(error):
                    raise
                log.error("The state disk is full, so the worker waits with its orders: %s", error)
                self._stopping.wait(IDLE_POLL_S)

    def _work_or_wait(self) -> None:
        """Carry out the next order, or wait for one."""
        self._finish_unwritten()
        entry = self._context.journal.next_order()
        if entry is not None and self._may_start():
            self._work(entry)
            return
        self._wake.wait(IDLE_POLL_S)
        self._wake.clear()
        self._restore_if_forgotten()
        self._retry_restoring()

    def _may_start(self) -> bool:
        """Whether the server was heard, or was waited for, and this is the only worker with its identity."""
        if self._registration.is_second:
            return False
        if not self._registration.heard and time.monotonic() < self._wait_until:
            self._registration.register_if_idle()
            return self._registration.heard
        return True

    def _work(self, entry: OpenAttempt) -> None:
        with about(entry.attempt), self._registration.paused():
            self._context.journal.start(entry.attempt)
            self._idle_done = False
            try:
                order = self._order_of(entry)
            except ContractError as error:
                self._set_aside(entry, error)
                return
            log.info("Started %s.", _title(order))
            end = self._carry_out(order)
            if end.code == "worker_stopped":
                self._emit_all(order.attempt, self._restore_all())
            self._close(order.attempt, end)
            self._worked_at = time.monotonic()
            self._note_left(order, end)

    def _note_left(self, order: AnyOrder, end: Finished) -> None:
        if isinstance(order, CloseRunOrder) and end.outcome is not Outcome.DONE:
            self._left_by.add(order.run)
            self._restored_at = time.monotonic()

    def _carry_out(self, order: AnyOrder) -> Finished:
        control = self._control(order.attempt)
        untimely = self._time_problem(order)
        if isinstance(order, TrialOrder) and not untimely:
            self._await_space(control)
            # A file system that was mounted late may have one, and the guard would refuse its directory.
            self._restored(tuple(remove_recorded(self._context.journal)), again=True)
        if control.reason is not None and not isinstance(order, CloseRunOrder):  # closing a run is never skipped
            return finished(control.reason.outcome, control.reason.code, control.reason.message)
        if untimely:
            return finished(Outcome.FAILED, *untimely)
        context = OrderContext(
            host=self._context,
            emit=lambda item: self._reporter.emit(order.attempt, item),
            control=control,
            server_now=self._registration.server_now,
            register=lambda: self._registration.register(probe=True),
            ask_start=self._ask_start,
        )
        try:
            return HANDLERS[type(order)](order, context)
        except Exception as error:
            log.exception("The order failed because of an error in the worker or a full disk.")
            code = code_of(error, self._context.journal)
            return finished(Outcome.FAILED, code, f"{type(error).__name__}: {error_text(error)}")

    def _time_problem(self, order: AnyOrder) -> tuple[str, str] | None:
        """Code and message of an order that must not start now. Asks the server for its time in doubt."""
        newest = self._context.journal.newest_issued_at(before=order.attempt)
        if problem(order, now=self._registration.server_now(), newest=newest) is None:
            return None
        with suppress(Unreachable, Refused):
            self._registration.register()
        return problem(order, now=self._registration.server_now(), newest=newest)

    def _await_space(self, control: Control) -> None:
        """Wait for space for reports and for the journal, because a disk may be full for a moment only."""
        give_up_at = time.monotonic() + SPACE_WAIT_S
        while not (self._reporter.spool.has_space() and self._context.journal.reserve.hold()):
            if time.monotonic() > give_up_at:
                control.fail(SpoolFull.code, f"The disk of {self._context.state} is full.")
            if control.stopped.wait(SPACE_POLL_S):
                return

    def _close(self, attempt: str, end: Finished) -> None:
        """Write the final item to disk first: if the worker dies before the next line, the spool has the item."""
        if self._finish(attempt, end):
            self._context.journal.finish(attempt)

    def _finish(self, attempt: str, end: Finished) -> bool:
        """Write the final item; True if it is on disk. If not, it is tried again when there is space."""
        log.info("Ended: %s %s", end.outcome.value, end.code)
        self._context.journal.reserve.free_if_needed()
        try:
            self._reporter.finish(attempt, end)
        except SpoolFull as error:
            log.critical("The result of this order cannot be written to disk before it has space: %s", error)
            self._unwritten[attempt] = end
            return False
        self._unwritten.pop(attempt, None)
        with self._lock:
            self._controls.pop(attempt, None)
        return True

    def _finish_unwritten(self) -> None:
        if self._unwritten and self._reporter.spool.has_space():
            for attempt, end in tuple(self._unwritten.items()):
                self._close(attempt, end)

    # ---- settings and layouts

    def _restore_if_forgotten(self) -> None:
        """Restore everything after the idle time without order, answer and lease: the server has forgotten the run."""
        quiet_s = time.monotonic() - max(self._worked_at, self._reporter.heard_at)
        leased_s = self._reporter.lease_until - self._registration.server_now()
        if self._idle_done or quiet_s < self._idle_restore_s or leased_s > -self._idle_restore_s:
            return
        log.warning("No message about a run for %.0f s: restoring settings and layouts.", quiet_s)
        self._restore_all()
        self._idle_done = True

    def _retry_restoring(self) -> None:
        """Try again: what closed runs left; what others left while no run uses the host."""
        if time.monotonic() - self._restored_at < RETRY_S:
            return
        self._restored_at = time.monotonic()
        if self._left_over and self._idle_done:
            self._restore_all(again=True)
        for run in tuple(self._left_by):
            if self._restored(restore(self._context, run), again=True):
                self._left_by.discard(run)

    def _restore_all(self, *, again: bool = False) -> Sequence[SettingRestored]:
        items = restore(self._context)
        self._restored_at = time.monotonic()
        self._left_over = not self._restored(items, again=again)
        return items

    def _restored(self, items: Sequence[SettingRestored], *, again: bool) -> bool:
        """Log what was restored; True if all was. `again`: a failure is logged at level DEBUG, as it was before."""
        for item in items:
            if item.restored:
                log.info("Restored %s of %s: %s", item.name, item.device, item.observed)
            else:
                level = logging.DEBUG if again else logging.ERROR
                log.log(level, "%s of %s was not restored: %s", item.name, item.device, item.note)
        return all(item.restored for item in items)

    def _emit_all(self, attempt: str, items: Sequence[Item]) -> None:
        for item in items:
            self._reporter.emit(attempt, item)

    def _control(self, attempt: str) -> Control:
        with self._lock:
            control = self._controls.setdefault(attempt, Control(attempt))
        if self._stopping.is_set():
            control.fail("worker_stopped", "The worker was stopped on its host before the order started.")
        return control

    def _order_of(self, entry: OpenAttempt) -> AnyOrder:
        """Verify the order again. Raises ContractError, also if its row has another attempt: it could never finish."""
        order = self._unsealed(entry.order)
        if order.attempt != entry.attempt:
            words = f"The order belongs to attempt {order.attempt}, its row in the journal to {entry.attempt}."
            raise ContractError(words)
        return order


def _title(order: AnyOrder) -> str:
    """The order's title in the log: its trial and run, else its kind."""
    if isinstance(order, CloseRunOrder):
        return f"closing run {order.run}"
    ids = (f"{name} {value}" for name in ("trial", "run") if (value := getattr(order, name, "")))
    return " of ".join(ids) or type(order).__name__
