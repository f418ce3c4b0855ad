"""What the commands print: one line a step, with the time it took."""

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import NoReturn


class Trouble(Exception):
    """Something on this machine stands in the way; the text says what, where and what to do."""


def say(text: str = "") -> None:
    print(text, flush=True)


@contextmanager
def step(name: str) -> Iterator[None]:
    """Say what is being done now and, where that takes more than a second or fails, how it ended."""
    say(f"  … {name}")
    begun = time.monotonic()
    try:
        yield
    except BaseException:
        say(f"  ✗ {name}")
        raise
    took_s = time.monotonic() - begun
    if took_s >= 1:
        say(f"  ✓ {name} ({took_s:.1f} s)")


def run_command(main: Callable[[Sequence[str]], int]) -> NoReturn:
    """End the process with what `main` says of its arguments; Trouble is said in words, and the status is 1."""
    try:
        sys.exit(main(sys.argv[1:]))
    except Trouble as trouble:
        complain(str(trouble))
        sys.exit(1)


def complain(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
