"""Counts of what strangers bring about as often as they like: added up in the process, written once a second at most.

What a process has not written yet goes with its next report or when it is asked for metrics; at its end up to a
second of it is lost.
"""

import threading
import time
from collections import Counter

from webapp.core.services import count

EVERY_S = 1.0
NEVER = float("-inf")

now = time.monotonic
_lock = threading.Lock()
_waiting: Counter[tuple[str, str]] = Counter()
_written_at = NEVER


def add(name: str, label: str) -> None:
    """One more; nothing is written here."""
    with _lock:
        _waiting[name, label] += 1


def write(*, at_once: bool = False) -> None:
    """Write what waits, if the last time was a while ago. Raises DatabaseError, and then it still waits."""
    taken = _take(at_once=at_once) if _waiting else Counter()
    try:
        while taken:
            (name, label), number = next(iter(taken.items()))
            count(name, label, by=number)
            del taken[name, label]
    finally:
        with _lock:
            _waiting.update(taken)


def _take(*, at_once: bool) -> Counter[tuple[str, str]]:
    global _written_at
    with _lock:
        if not at_once and now() - _written_at < EVERY_S:
            return Counter()
        taken, _written_at = Counter(_waiting), now()
        _waiting.clear()
        return taken


def forget() -> None:
    """As if nothing had been counted or written: for tests."""
    global _written_at
    with _lock:
        _waiting.clear()
        _written_at = NEVER
