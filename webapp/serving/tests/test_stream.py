"""A response that is written and taken at the same time. The threads and the files are real."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import pytest

from webapp.serving.transfers import Transfers
from webapp.serving.worker import IN_MEMORY_BYTES, Stream


class Chunks:
    def __init__(self, *chunks: bytes, error: Exception | None = None) -> None:
        self._chunks, self._error = chunks, error
        self.made = 0
        self.closed = False

    def __iter__(self) -> Iterator[bytes]:
        for chunk in self._chunks:
            self.made += 1
            yield chunk
        if self._error:
            raise self._error

    def close(self) -> None:
        self.closed = True


@dataclass
class Connection:
    sock: socket.socket


@contextmanager
def a_stream() -> Iterator[Stream]:
    transfers = Transfers()
    with socket.socket() as sock:
        transfers.begin(Connection(sock))
        yield Stream(transfers)
        transfers.end()


def test_it_gives_all_bytes_while_they_are_written() -> None:
    chunks = Chunks(*(bytes([n]) * 10_000 for n in range(250)))  # more than is kept in memory
    assert IN_MEMORY_BYTES < 250 * 10_000
    with a_stream() as stream:
        writer = threading.Thread(target=stream.fill, args=(chunks,))
        writer.start()
        assert b"".join(stream) == b"".join(chunks._chunks)
        writer.join()
    assert chunks.closed


def test_an_error_cuts_the_response_after_what_exists() -> None:
    chunks = Chunks(b"first", error=OSError("the database is down"))
    taken: list[bytes] = []
    with a_stream() as stream:
        stream.fill(chunks)
        with pytest.raises(OSError, match="the database is down"):
            taken.extend(stream)
    assert taken == [b"first"]
    assert chunks.closed


def test_nothing_more_is_made_when_the_client_has_left() -> None:
    chunks = Chunks(b"first", b"second", b"third")
    with a_stream() as stream:
        stream.close()
        stream.fill(chunks)
    assert (chunks.made, chunks.closed) == (1, True)
