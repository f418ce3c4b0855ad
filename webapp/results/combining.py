"""What several threads want done at the same moment, done together by one of them, with all its costs shared.

    take ─► waits ─► whoever leads takes all that wait ─► each goes on
              └─ nobody leads: it does. Done with them, it leaves the lead to the first that waits by then

Known as flat combining: Hendler et al., SPAA 2010, https://doi.org/10.1145/1810479.1810540.
"""

import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Generic, TypeVar

T = TypeVar("T")

# A single one is done at once. Where more wait, or come, or came last time, others are let come
QUIET_S = 0.003  # until none has for so long,
MOST_S = 0.025  # and no longer than this.


@dataclass(eq=False)
class _Turn(Generic[T]):
    """One thread's, which waits until they were done, or until it leads."""

    wanted: Sequence[T]
    done: bool = False
    _held: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        self._held.acquire()

    def wait(self) -> None:
        self._held.acquire()

    def go_on(self) -> None:
        self._held.release()


class Combiner(Generic[T]):
    """`do` is called by one thread at a time, with what that and others want; what it raises reaches its caller alone.

    `most` is how much it is given at once, as `weight` counts, unless one thread wants more than that by itself.
    """

    def __init__(self, do: Callable[[Sequence[T]], None], *, weight: Callable[[T], int], most: int) -> None:
        self._do, self._weight, self._most = do, weight, most
        self._guard = threading.Lock()  # of the next three
        self._waiting: deque[_Turn[T]] = deque()
        self._led = False
        self._coming = 0
        self._preparing = threading.Lock()
        self._last_size = 0

    @contextmanager
    def coming(self) -> Iterator[None]:
        """While a thread computes what it will want done.

        One does so at a time: threads that compute side by side take the interpreter from each other, and from who
        leads.
        """
        with self._guard:
            self._coming += 1
        try:
            with self._preparing:
                yield
        finally:
            with self._guard:
                self._coming -= 1

    def take(self, wanted: Sequence[T]) -> None:
        """Have it done; returns when it was tried."""
        turn = _Turn(wanted)
        if not self._leads(turn):
            turn.wait()
        if not turn.done:
            self._lead()

    def _leads(self, turn: _Turn[T]) -> bool:
        """It waits from now on; True where nobody leads, and it does."""
        with self._guard:
            self._waiting.append(turn)
            leads, self._led = not self._led, True
        return leads

    def _lead(self) -> None:
        """Do what waits, first of it one's own, and leave the rest to the next."""
        self._let_come()
        turns = self._next()
        try:
            self._do([each for turn in turns for each in turn.wanted])
        finally:
            with self._guard:
                following = list(self._waiting)[:1]
                self._led = bool(following)
            for turn in turns:
                turn.done = True
            for turn in (*turns, *following):
                turn.go_on()

    def _let_come(self) -> None:
        begun = quiet_since = time.monotonic()
        seen = 1
        while self._coming or len(self._waiting) > 1 or self._last_size > 1:
            now = time.monotonic()
            if self._coming or len(self._waiting) != seen:
                seen, quiet_since = len(self._waiting), now
            if now - begun >= MOST_S or now - quiet_since >= QUIET_S:
                return
            time.sleep(QUIET_S / 6)

    def _next(self) -> list[_Turn[T]]:
        turns: list[_Turn[T]] = []
        weight = 0
        with self._guard:
            while self._waiting:
                weight += sum(map(self._weight, self._waiting[0].wanted))
                if turns and weight > self._most:
                    break
                turns.append(self._waiting.popleft())
        self._last_size = len(turns)
        return turns
