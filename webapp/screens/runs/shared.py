"""One answer for simultaneous identical requests, so that fifty viewers of a run cost about as much as one.

Answers are kept in this process for SHARED_S. The first request computes the answer; the others wait for it.
"""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

SHARED_S = 0.25  # maximum age of an answer; viewers see data this much later
MAX_KEPT = 500


@dataclass
class _Answer:
    lock: threading.Lock = field(default_factory=threading.Lock)
    body: bytes | None = None
    made_at: float = 0.0

    def fresh(self) -> bool:
        return self.body is not None and time.monotonic() - self.made_at < SHARED_S


class SharedAnswers:
    """Thread-safe."""

    def __init__(self) -> None:
        self._answers: dict[object, _Answer] = {}
        self._lock = threading.Lock()

    def get(self, key: object, make: Callable[[], bytes]) -> bytes:
        """The answer for `key`, computed unless there is a fresh one. Raises the exceptions of `make`."""
        with self._lock:
            answer = self._answers.get(key)
            if answer is None:
                self._drop_stale()
                answer = self._answers[key] = _Answer()
        with answer.lock:
            if not answer.fresh() or answer.body is None:
                # before `make`: later commits belong to the next answer
                answer.made_at = time.monotonic()
                answer.body = make()
            return answer.body

    def _drop_stale(self) -> None:
        if len(self._answers) >= MAX_KEPT:
            self._answers = {key: kept for key, kept in self._answers.items() if kept.lock.locked() or kept.fresh()}
