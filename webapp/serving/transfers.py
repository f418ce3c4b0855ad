"""Connections whose thread waits for the client, and limits for them: in time, in number and in bytes.

A connection is a transfer while the server reads its request or writes its response, not while Django works on it. A
transfer that is too slow is cut. If there are too many, the oldest is cut: a normal request takes milliseconds, so the
oldest one belongs to a slow client.
"""

import socket
import threading
import time
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Protocol

# As mod_reqtimeout: some seconds to begin with, more for each byte.
GRACE_S = 20.0
MIN_BYTES_PER_S = 32 * 1024
MAX_TRANSFERS = 192
MAX_BYTES = 2 * 1024**3  # of bodies, as announced, and of responses, for all connections of the process

now = time.monotonic


class Connection(Protocol):
    sock: socket.socket


@dataclass(eq=False)
class Transfer:
    connection: Connection
    since: float = field(default_factory=lambda: now())
    size: int = 0  # bytes that the client has to send or take now
    stored: int = 0  # bytes of its body or response
    waits: bool = True  # for the client

    @property
    def deadline(self) -> float:
        return self.since + GRACE_S + self.size / MIN_BYTES_PER_S

    def cut(self) -> None:
        """Wake the thread that waits: its next read or write fails.

        `SSLSocket.shutdown` would also drop the TLS state that the thread is using.
        """
        with suppress(OSError):  # the client has left
            socket.socket.shutdown(self.connection.sock, socket.SHUT_RDWR)


class Transfers:
    """All transfers of one process. Each thread has at most one."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._of_thread: dict[int, Transfer] = {}

    def begin(self, connection: Connection) -> None:
        """This thread now waits for the client of the connection."""
        with self._lock:
            self._of_thread[threading.get_ident()] = Transfer(connection)
            self._make_room()

    def wait_for(self, size: int, *, stored: int = 0) -> None:
        """Note that this thread waits for the client to send or take `size` bytes. `stored`: bytes kept, if more."""
        with self._lock:
            mine = self._of_thread[threading.get_ident()]
            mine.since, mine.size, mine.stored, mine.waits = now(), size, max(size, stored), True
            self._make_room()

    def pause(self) -> None:
        """Note that this thread runs Django and does not wait for the client."""
        with self._lock:
            self._of_thread[threading.get_ident()].waits = False

    def has_room(self, size: int) -> bool:
        """Whether there is room for a body beside those of requests that Django processes, which cannot be cut."""
        with self._lock:
            stored = sum(each.stored for each in self._of_thread.values() if not each.waits)
            return stored + size <= MAX_BYTES

    def end(self) -> None:
        with self._lock:
            del self._of_thread[threading.get_ident()]

    def cut_late(self) -> int:
        """Cut all transfers that are after their deadline; return their number."""
        with self._lock:
            late = [each for each in self._waiting() if each.deadline <= now()]
            for each in late:
                each.cut()
            return len(late)

    def cut_all(self) -> None:
        with self._lock:
            for each in self._waiting():
                each.cut()

    def _waiting(self) -> list[Transfer]:
        return [each for each in self._of_thread.values() if each.waits]

    def _make_room(self) -> None:
        waiting = sorted(self._waiting(), key=lambda each: each.since)
        stored = sum(each.stored for each in self._of_thread.values())
        while len(waiting) > MAX_TRANSFERS or (stored > MAX_BYTES and len(waiting) > 1):
            oldest = waiting.pop(0)
            stored -= oldest.stored
            oldest.cut()
