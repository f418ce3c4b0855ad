"""Failures of streams."""

import os


class StreamFailed(Exception):
    """The stream has no result. `code` is one of docs/reference/message-contract.md; the rest is for people."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


def errno_words(number: int) -> str:
    """`I/O error (errno 5)`."""
    return f"{os.strerror(number)} (errno {number})"


def last_words(text: str, *, lines: int = 5) -> str:
    """The last lines of a program's output, joined to one line."""
    said = [line.strip() for line in text.splitlines() if line.strip()]
    return "; ".join(dict.fromkeys(said[-lines:]))
