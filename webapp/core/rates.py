"""Limits of what one client may have stored, over time: a limit of rows alone lets it write and delete without end.

A token bucket for each client, in the memory of the process (J. Turner, "New Directions in Communications", IEEE
Communications Magazine 24(10), 1986). A server with three processes allows three times as much.
"""

import threading
import time
from collections.abc import Callable, Hashable

MAX_CLIENTS = 10_000  # more than that are full buckets, which are forgotten


class Rate:
    """`burst` at once, and `per_s` more each second, for each client."""

    def __init__(self, *, burst: float, per_s: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._burst, self._per_s, self._clock = burst, per_s, clock
        self._lock = threading.Lock()
        self._left: dict[Hashable, tuple[float, float]] = {}  # what is left, and at which time

    def take(self, client: Hashable, amount: float = 1.0) -> bool:
        """Take the amount if so much is left; otherwise nothing."""
        now = self._clock()
        with self._lock:
            if len(self._left) >= MAX_CLIENTS:
                self._forget_full(now)
            left = self._available(client, now)
            taken = amount <= left
            self._left[client] = (left - amount if taken else left, now)
            return taken

    def forget(self) -> None:
        """For tests."""
        with self._lock:
            self._left.clear()

    def _available(self, client: Hashable, now: float) -> float:
        left, at = self._left.get(client, (self._burst, now))
        return min(self._burst, left + (now - at) * self._per_s)

    def _forget_full(self, now: float) -> None:
        self._left = {each: kept for each, kept in self._left.items() if self._available(each, now) < self._burst}
