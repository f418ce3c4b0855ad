"""Waiting for a condition in tests: as short as possible, and with a limit."""

import time
from collections.abc import Callable

POLL_S = 0.01
LIMIT_S = 15.0  # of something that takes less than a second on a quiet machine


def until(
    condition: Callable[[], object],
    limit_s: float = LIMIT_S,
    words: Callable[[], str] = lambda: "the limit has passed",
) -> None:
    """Wait for a condition, at most `limit_s`; then fail with `words`."""
    end = time.monotonic() + limit_s
    while not condition():
        assert time.monotonic() < end, words()
        time.sleep(POLL_S)  # between two looks
