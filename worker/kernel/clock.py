"""Monotonic time and waiting, as parameters: a test injects a clock that runs faster."""

import threading
import time


class Clock:
    """Passes `speed` seconds in each second of real time."""

    def __init__(self, speed: float = 1.0) -> None:
        self._speed = speed

    def now(self) -> float:
        """Seconds since an arbitrary start."""
        return time.monotonic() * self._speed

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds / self._speed)

    def wait(self, event: threading.Event, limit_s: float) -> bool:
        """Wait until the event is set, for at most `limit_s`; whether it is set."""
        return event.wait(limit_s / self._speed)


REAL_TIME = Clock()
