"""Stop a running attempt, and say why."""

import threading

import msgspec

from worker.contract.items import Outcome


class StopReason(msgspec.Struct, frozen=True):
    outcome: Outcome
    code: str
    message: str


class Control:
    """Any thread may call `stop`; the first reason is kept. Engines wait on `stopped`."""

    def __init__(self, attempt: str) -> None:
        self.attempt = attempt
        self.stopped = threading.Event()
        self._lock = threading.RLock()  # a signal handler may call `stop` in between
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
        self.stop(Outcome.CANCELLED, "cancelled", "Cancelled at the server.")

    def fail(self, code: str, message: str) -> None:
        self.stop(Outcome.FAILED, code, message)
