"""Stop a running attempt, and say why."""

import threading

import msgspec

from worker.contract.items import Outcome


class StopReason(msgspec.Struct, frozen=True):
    outcome: Outcome
    code: str
    message: str


class Control:
    """Stop signal of one attempt. Any thread may call `stop`; the first reason is kept. Engines wait for `stopped`."""

    def __init__(self, attempt: str) -> None:
        self.attempt = attempt
        self.stopped = threading.Event()
        self._lock = threading.RLock()  # a signal handler may interrupt `stop` and call it again
        self._reason: StopReason | None = None

    @property
    def reason(self) -> StopReason | None:
        return self._reason

    def stop(self, outcome: Outcome, code: str, message: str) -> None:
        with self._lock:
            if self._reason is None:
                self._reason = StopReason(outcome, code, message)
        self.stopped.set()

    def cancel(self) -> None:
        self.stop(Outcome.CANCELLED, "cancelled", "Cancelled on the server.")

    def fail(self, code: str, message: str) -> None:
        self.stop(Outcome.FAILED, code, message)
