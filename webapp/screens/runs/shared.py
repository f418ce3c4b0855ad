"""One answer for all who ask the same at about the same time: fifty viewers of a run cost about what one does.

Kept in this process, for a moment only. Whoever asks first makes the answer, the others wait for it.
"""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

SHARED_S = 0.25  # how old an answer may be; it adds to the delay of what a viewer sees
MOST_KEPT = 500


@dataclass
class _Answer:
    lock: threading.Lock = field(default_factory=threading.Lock)
    body: bytes | None = None
    made_at: float = 0.0

    def fresh(self) -> bool:
        return self.body is not None and time.monotonic() - self.made_at < SHARED_S


class SharedAnswers:
    """Safe to be used by the threads of a web server."""

    def __init__(self) -> None:
        self._answers: dict[object, _Answer] = {}
        self._lock = threading.Lock()

    def get(self, key: object, make: Callable[[], bytes]) -> bytes:
        """The answer for `key`, made now unless there is a fresh one. What `make` raises is raised."""
        with self._lock:
            answer = self._answers.get(key)
            if answer is None:
                self._drop_stale()
                answer = self._answers[key] = _Answer()
        with answer.lock:
            if not answer.fresh() or answer.body is None:
                # taken before the making: what is committed meanwhile belongs to the next answer
                answer.made_at = time.monotonic()
                answer.body = make()
            return answer.body

    def _drop_stale(self) -> None:
        if len(self._answers) >= MOST_KEPT:
            self._answers = {key: kept for key, kept in self._answers.items() if kept.lock.locked() or kept.fresh()}
