"""Real receivers on loopback: an HTTP server and an SMTP server."""

import threading
import time
from asyncio import Server
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from email import message_from_bytes, policy
from email.message import EmailMessage
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from aiosmtpd.controller import Controller

Answer = int | Callable[[BaseHTTPRequestHandler], None]


@dataclass(frozen=True)
class Request:
    path: str
    headers: dict[str, str]
    body: bytes


@dataclass
class Receiver:
    """What came; `answers` are given in turn, then 204. A function answers by itself."""

    port: int
    requests: list[Request] = field(default_factory=list)
    answers: list[Answer] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/hook?x=1"


@contextmanager
def receiver(server_class: type[ThreadingHTTPServer] = ThreadingHTTPServer) -> Iterator[Receiver]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            found.requests.append(Request(self.path, dict(self.headers), body))
            answer = found.answers.pop(0) if found.answers else 204
            if callable(answer):
                answer(self)
                return
            self.send_response(answer)
            self.send_header("Content-Length", "0")
            self.end_headers()

        do_GET = do_POST  # noqa: N815

        def log_message(self, *_: Any) -> None:
            pass

    server = server_class(("127.0.0.1", 0), Handler)
    found = Receiver(server.server_address[1])
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield found
    finally:
        server.shutdown()
        thread.join(10)
        server.server_close()


def trickle(handler: BaseHTTPRequestHandler) -> None:
    """A header a moment, without end: no single read takes long."""
    handler.wfile.write(b"HTTP/1.1 200 OK\r\n")
    for _ in range(200):
        try:
            handler.wfile.write(b"X-Slow: 1\r\n")
        except OSError:
            return
        time.sleep(0.05)  # the receiver is slow


@dataclass
class Mailbox:
    """What came; `refusals` are answered to recipients in turn before anything is taken."""

    port: int = 0
    messages: list[EmailMessage] = field(default_factory=list)
    recipients: list[Sequence[str]] = field(default_factory=list)
    refusals: list[str] = field(default_factory=list)

    async def handle_RCPT(  # noqa: N802 - aiosmtpd names it
        self, _server: Any, _session: Any, envelope: Any, address: str, _options: Any
    ) -> str:
        if self.refusals:
            return self.refusals.pop(0)
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(  # noqa: N802
        self, _server: Any, _session: Any, envelope: Any
    ) -> str:
        self.messages.append(message_from_bytes(envelope.content, policy=policy.default))
        self.recipients.append(envelope.rcpt_tos)
        return "250 OK"


class AnyPort(Controller):
    """On a port that the system chooses: the base class connects to itself once."""

    def _trigger_server(self) -> None:
        assert isinstance(self.server, Server)
        self.port = self.server.sockets[0].getsockname()[1]
        super()._trigger_server()  # type: ignore[no-untyped-call]


@contextmanager
def mail_server() -> Iterator[Mailbox]:
    mailbox = Mailbox()
    controller = AnyPort(mailbox, hostname="127.0.0.1", port=0)
    controller.start()
    mailbox.port = controller.port
    try:
        yield mailbox
    finally:
        controller.stop()
