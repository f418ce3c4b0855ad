"""Posts requests over keep-alive connections and notes when each was answered: one thread, selectors, no HTTP library.

A generator in Python must not be the bottleneck: requests are bytes, and of an answer only status and length are read.
"""

import selectors
import socket
import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

APART_S = 0.003  # the first requests of two connections


@dataclass
class Connection:
    """`make` gives the next request, None where there is none any more."""

    make: Callable[[int], bytes | None]
    sock: socket.socket = field(init=False)
    sent: int = 0
    answered: int = 0
    request: bytes = b""  # the last one
    outgoing: bytes = b""
    incoming: bytes = b""
    reply: bytes = b""  # body of the last answer
    due_at: float = 0.0


class Refused(Exception):
    """An answer that is not 200."""


class Poster:
    def __init__(self, port: int, makers: list[Callable[[int], bytes | None]]) -> None:
        self._port = port
        self._selector = selectors.DefaultSelector()
        self.connections = [Connection(make) for make in makers]
        for connection in self.connections:
            self._open(connection)

    def _open(self, connection: Connection) -> None:
        connection.sock = socket.create_connection(("127.0.0.1", self._port))
        connection.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection.sock.setblocking(False)
        self._selector.register(connection.sock, selectors.EVENT_READ, connection)

    def _reopen(self, connection: Connection) -> None:
        self._selector.unregister(connection.sock)
        connection.sock.close()
        self._open(connection)

    def close(self) -> None:
        for key in list(self._selector.get_map().values()):
            self._selector.unregister(key.fileobj)
            key.data.sock.close()

    def send_next(self, connection: Connection, due_at: float) -> bool:
        request = connection.make(connection.sent)
        if request is None:
            self._selector.unregister(connection.sock)
            connection.sock.close()
            return False
        connection.sent += 1
        connection.due_at = due_at
        connection.request = connection.outgoing = request
        self._flush(connection)
        return True

    def _flush(self, connection: Connection) -> None:
        try:
            done = connection.sock.send(connection.outgoing)
        except (BlockingIOError, ConnectionError):  # of a connection that broke, reading tells
            done = 0
        connection.outgoing = connection.outgoing[done:]
        events = selectors.EVENT_READ | (selectors.EVENT_WRITE if connection.outgoing else 0)
        self._selector.modify(connection.sock, events, connection)

    def answers(self, wait_s: float) -> Iterator[Connection]:
        """Connections whose request was answered meanwhile. Raises Refused."""
        for key, events in self._selector.select(max(0.0, wait_s)):
            connection: Connection = key.data
            if events & selectors.EVENT_WRITE:
                self._flush(connection)
            if events & selectors.EVENT_READ and self._read(connection):
                connection.answered += 1
                yield connection

    def _read(self, connection: Connection) -> bool:
        try:
            data = connection.sock.recv(262144)
        except ConnectionError:
            data = b""
        if not data and connection.incoming:
            raise Refused("The server closed a connection in the middle of an answer.")
        if not data:
            self._reopen(connection)  # idle for longer than the server keeps one; a host sends its report again, too
            if connection.sent > connection.answered:
                connection.outgoing = connection.request
                self._flush(connection)
            return False
        connection.incoming += data
        head, found, body = connection.incoming.partition(b"\r\n\r\n")
        if not found:
            return False
        length = next(int(line[15:]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length:"))
        if len(body) < length:
            return False
        if not head.startswith(b"HTTP/1.1 200") or b'"refusal":{' in body:
            raise Refused((head[:200] + body[:500]).decode(errors="replace"))
        connection.reply, connection.incoming = body[:length], body[length:]
        return True


def saturate(port: int, makers: list[Callable[[int], bytes | None]], seconds: float = 1e9) -> tuple[int, float]:
    """Every connection sends its next request as soon as the last is answered: (answers, s).

    They begin one after another, as hosts do: of many at the same instant, one of the server's processes takes all.
    """
    poster = Poster(port, makers)
    begun, answered, open_ones = time.monotonic(), 0, 0
    waiting = deque(poster.connections)
    while waiting or open_ones:
        if waiting:
            open_ones += poster.send_next(waiting.popleft(), 0.0)
        for connection in list(poster.answers(APART_S if waiting else 1.0)):
            answered += 1
            if time.monotonic() - begun > seconds or not poster.send_next(connection, 0.0):
                open_ones -= 1
    took_s = time.monotonic() - begun
    poster.close()
    return answered, took_s
