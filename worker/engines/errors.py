"""Failures of streams, and the codes of fio's messages."""

import os
import re


class StreamFailed(Exception):
    """The stream has no result. `code` is one of docs/message-contract.md; the rest is for people."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


# What fio says -> the code of the failure.
_WORDS = (
    (
        re.compile(r"Bad option|[Ff]ailed parsing|not a valid|out of range|unrecognized option|job .* dropped"),
        "option_refused",
    ),
    (re.compile(r"engine \S+ not loadable|failed to load engine|io_queue_init|queue_init"), "engine_missing"),
)
EOPNOTSUPP = 95


def code_of(words: str) -> str:
    return next((code for pattern, code in _WORDS if pattern.search(words)), "fio_error")


def errno_words(number: int) -> str:
    """`I/O error (errno 5)`."""
    return f"{os.strerror(number)} (errno {number})"


def last_words(text: str, *, lines: int = 5) -> str:
    """The last lines of what a program said, on one line."""
    said = [line.strip() for line in text.splitlines() if line.strip()]
    return "; ".join(dict.fromkeys(said[-lines:]))
