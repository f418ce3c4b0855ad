"""Output of the commands: one line for each step, with its duration."""

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import NoReturn


class ToolError(Exception):
    """A command cannot continue on this machine. The message says what happened, where, and what to do."""


def say(text: str = "") -> None:
    print(text, flush=True)


@contextmanager
def step(name: str) -> Iterator[None]:
    """Print a line at the start, and another at the end if the step takes more than a second or fails."""
    say(f"  … {name}")
    started_at = time.monotonic()
    try:
        yield
    except BaseException:
        say(f"  ✗ {name}")
        raise
    took_s = time.monotonic() - started_at
    if took_s >= 1:
        say(f"  ✓ {name} ({took_s:.1f} s)")


def run_command(main: Callable[[Sequence[str]], int]) -> NoReturn:
    """Exit with the status that `main` returns; print a ToolError and exit with 1."""
    try:
        sys.exit(main(sys.argv[1:]))
    except ToolError as error:
        print_error(str(error))
        sys.exit(1)


def columns(rows: Sequence[Sequence[str]]) -> list[str]:
    """Lines with aligned columns, one for each row."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]


def print_error(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
