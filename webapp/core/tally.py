"""Counts of refused reports and failed trials: summed in the process, written at most once a second.

A process writes pending counts with its next report, with the next tick, or on a request for metrics. If it ends, the
counts of up to one second are lost.
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
    """Count one event in memory."""
    with _lock:
        _waiting[name, label] += 1


def write(*, at_once: bool = False) -> None:
    """Write pending counts if the last write was at least a second ago. On a DatabaseError they stay pending."""
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
    """Forget all counts and the time of the last write; for tests."""
    global _written_at
    with _lock:
        _waiting.clear()
        _written_at = NEVER
