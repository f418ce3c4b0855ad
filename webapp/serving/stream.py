"""A response that Django writes and the client takes at the same time: its first bytes are sent before its end exists.

Django does not wait for the client: bytes that the client has not taken yet are in a temporary file.
"""

import tempfile
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import IO

from webapp.serving.transfers import Transfers

IN_MEMORY_BYTES = 1024 * 1024  # a longer body or response goes to a temporary file
STEP_BYTES = 256 * 1024


def temporary_file() -> IO[bytes]:
    return tempfile.SpooledTemporaryFile(IN_MEMORY_BYTES)


@contextmanager
def closing_at_the_end(chunks: Iterable[bytes]) -> Iterator[None]:
    """Call `close` of a response, if it has it (PEP 3333)."""
    try:
        yield
    finally:
        getattr(chunks, "close", lambda: None)()


class Stream:
    """`fill` runs in a thread of Django; the thread of the client iterates."""

    def __init__(self, transfers: Transfers) -> None:
        self._transfers = transfers
        self._file = temporary_file()
        self._changed = threading.Condition()
        self._written = 0
        self._ended = False
        self._error: BaseException | None = None

    def fill(self, chunks: Iterable[bytes]) -> None:
        """Write all chunks, unless the client leaves. An error is raised again in the client's thread."""
        try:
            with closing_at_the_end(chunks):
                for chunk in chunks:
                    if not self._append(chunk):
                        break
        except BaseException as error:  # noqa: BLE001 - raised in the other thread
            self._error = error
        finally:
            self._end()

    def _append(self, chunk: bytes) -> bool:
        with self._changed:
            if self._file.closed:
                return False
            self._file.seek(self._written)
            self._written += self._file.write(chunk)
            self._changed.notify()
            return True

    def _end(self) -> None:
        with self._changed:
            self._ended = True
            self._changed.notify()

    def __iter__(self) -> Iterator[bytes]:
        """An error cuts the response: the client sees that its end is missing."""
        taken = 0
        while chunk := self._next(taken):
            taken += len(chunk)
            yield chunk
        if self._error is not None:
            raise self._error

    def _next(self, taken: int) -> bytes:
        """b"" at the end."""
        self._transfers.pause()
        with self._changed:
            self._changed.wait_for(lambda: self._written > taken or self._ended)
            self._file.seek(taken)
            chunk = self._file.read(STEP_BYTES)
            self._transfers.wait_for(len(chunk), stored=self._written)
        return chunk

    def close(self) -> None:
        with self._changed:
            self._file.close()
