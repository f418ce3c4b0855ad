"""Posts requests over keep-alive connections and notes each answer: one thread, selectors, no HTTP library.

The client shares the machine with the server and must not be the bottleneck: requests are prepared bytes, and only
status and length of an answer are read.
"""

import selectors
import socket
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

APART_S = 0.003  # between the first requests of two connections


@dataclass
class Connection:
    number: int
    sock: socket.socket = field(init=False)
    waiting: bool = False  # for an answer
    request: bytes = b""  # the last one
    outgoing: bytes = b""
    incoming: bytes = b""
    reply: bytes = b""  # body of the last answer
    due_at: float = 0.0


class Refused(Exception):
    """An answer that is not 200, or a report that the server refused."""


class Client:
    def __init__(self, port: int, connections: int) -> None:
        self._port = port
        self._selector = selectors.DefaultSelector()
        self.connections = [Connection(number) for number in range(connections)]
        for connection in self.connections:
            self._open(connection)

    def _open(self, connection: Connection) -> None:
        connection.sock = socket.create_connection(("127.0.0.1", self._port))
        connection.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection.sock.setblocking(False)
        self._selector.register(connection.sock, selectors.EVENT_READ, connection)

    def close(self) -> None:
        for connection in self.connections:
            connection.sock.close()
        self._selector.close()

    def send(self, connection: Connection, request: bytes) -> None:
        connection.waiting = True
        connection.request = connection.outgoing = request
        self._flush(connection)

    def _flush(self, connection: Connection) -> None:
        try:
            done = connection.sock.send(connection.outgoing)
        except (BlockingIOError, ConnectionError):  # _read notices a broken connection
            done = 0
        connection.outgoing = connection.outgoing[done:]
        events = selectors.EVENT_READ | (selectors.EVENT_WRITE if connection.outgoing else 0)
        self._selector.modify(connection.sock, events, connection)

    def answers(self, wait_s: float) -> Iterator[Connection]:
        """Connections that received an answer within `wait_s`. Raises Refused."""
        for key, events in self._selector.select(max(0.0, wait_s)):
            connection: Connection = key.data
            if events & selectors.EVENT_WRITE:
                self._flush(connection)
            if events & selectors.EVENT_READ and self._read(connection):
                connection.waiting = False
                yield connection

    def _read(self, connection: Connection) -> bool:
        """True if the answer is complete."""
        try:
            data = connection.sock.recv(262144)
        except ConnectionError:
            data = b""
        if not data:
            self._reconnect(connection)
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

    def _reconnect(self, connection: Connection) -> None:
        """The server closed an idle connection: send the unanswered request again, as a host does."""
        if connection.incoming:
            raise Refused("The server closed a connection in the middle of an answer.")
        self._selector.unregister(connection.sock)
        connection.sock.close()
        self._open(connection)
        if connection.waiting:
            self.send(connection, connection.request)


def posts_per_s(port: int, makers: Sequence[Callable[[], bytes]], seconds: float) -> float:
    """Saturate the server: one connection for each maker sends its next request as soon as the last is answered.

    The connections start one after another: if many start at the same instant, one server process accepts them all.
    """
    client = Client(port, len(makers))
    started_at, answered, started = time.monotonic(), 0, 0
    while time.monotonic() - started_at < seconds:
        if started < len(makers):
            client.send(client.connections[started], makers[started]())
            started += 1
        for connection in client.answers(APART_S if started < len(makers) else 1.0):
            answered += 1
            client.send(connection, makers[connection.number]())
    took_s = time.monotonic() - started_at
    while any(connection.waiting for connection in client.connections):
        for _ in client.answers(1.0):
            pass
    client.close()
    return answered / took_s
