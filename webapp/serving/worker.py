"""gunicorn's threaded worker, with limits for slow clients.

gunicorn 27 has no limit for the time in which a client sends a request or takes a response, and its threads wait for
both. Here, many threads exchange data with clients (`threads`), and few run Django (PROCESSING_THREADS). A request
occupies one of the few only when all of it has arrived, until its response is complete. The client gets the first
bytes of a streaming response, such as an export, while Django makes the rest.

    accepted → request is read → Django runs → response is written → kept alive or closed
               (transfer)        (one of few)   (transfer)

Of the few, `webapp.serving.places` leaves most to requests that are answered quickly, and some to everybody else.
"""

import io
import json
import os
import tempfile
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from http import HTTPStatus
from typing import IO, Any

from gunicorn import util
from gunicorn.http.wsgi import FileWrapper
from gunicorn.workers.gthread import TConn, ThreadWorker

from webapp.serving import places
from webapp.serving.transfers import Transfers

# A response that Django writes and the client takes at the same time: its first bytes are sent before its end exists.
#
# Django does not wait for the client: bytes that the client has not taken yet are in a temporary file.

IN_MEMORY_BYTES = 1024 * 1024  # a longer body or response goes to a temporary file
SEND_BYTES = 256 * 1024


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
            chunk = self._file.read(SEND_BYTES)
            self._transfers.wait_for(len(chunk), stored=self._written)
        return chunk

    def close(self) -> None:
        with self._changed:
            self._file.close()


# `worker_api.views` sees an overload if more than its HIGH_LOAD are busy on average. Each keeps a database
# connection.
PROCESSING_THREADS = 16
MAX_BODY_BYTES = 520 * 1024 * 1024  # of an upload of `webapp.imports`; other views have lower limits
STEP_BYTES = 64 * 1024
CLOSED = -1  # the descriptor of a closed socket

Environment = dict[str, Any]
StartResponse = Callable[..., object]
Application = Callable[[Environment, StartResponse], Iterable[bytes]]
Response = Future[tuple[Iterable[bytes], int]]  # its chunks and their size


class Worker(ThreadWorker):  # type: ignore[misc]  # gunicorn has no types
    def init_process(self) -> None:
        self.transfers = Transfers()
        self.shares = places.Shares()
        self.known = places.KnownIdentities()
        self.places = {
            (kind, is_known): places.Places(kind.wait_s) for kind in places.KINDS for is_known in (True, False)
        }
        self.max_keepalived = self.worker_connections  # the oldest idle one is closed if there are too many
        self.processing = ThreadPoolExecutor(PROCESSING_THREADS, thread_name_prefix="django")
        super().init_process()

    def load_wsgi(self) -> None:
        super().load_wsgi()
        self.application: Application = self.wsgi  # type: ignore[has-type]  # gunicorn's loader has set it
        self.wsgi = self._process

    def handle(self, conn: TConn) -> object:
        """In a thread for clients: read a request, answer it, and close the connection unless it is kept."""
        self.transfers.begin(conn)
        try:
            keeps = super().handle(conn)
            if keeps is False and conn.sock.fileno() != CLOSED:
                # Waits up to two seconds for the client. gunicorn would do it in the thread that accepts connections.
                conn.close(graceful=True)
            return keeps
        finally:
            self.transfers.end()

    def finish_request(self, conn: TConn, fs: "Future[object]") -> None:
        """In the main thread, after `handle`."""
        if conn.sock.fileno() == CLOSED:
            self.nr_conns -= 1
        else:
            super().finish_request(conn, fs)

    def handle_request(self, req: Any, conn: TConn) -> bool:
        headers = dict(req.headers)
        length = int(headers.get("CONTENT-LENGTH", 0))
        if "TRANSFER-ENCODING" in headers:
            return _refuse(conn, req, 411, "length_required", "Send the request with Content-Length, not in chunks.")
        if length > MAX_BODY_BYTES:
            return _refuse(conn, req, 413, "too_large", f"A request may have {MAX_BODY_BYTES >> 20} MiB.")
        if length > IN_MEMORY_BYTES and not self.transfers.has_room(length):
            return _refuse(conn, req, 503, "busy", "The server is busy with other uploads. Try again later.")
        if length:
            req.body = self._body(req, conn, length)
        self.transfers.pause()
        keeps = super().handle_request(req, conn)
        req.body = io.BytesIO()  # nothing is left to be skipped before the next request
        return bool(keeps)

    def _body(self, req: Any, conn: TConn, length: int) -> IO[bytes]:
        if req._expected_100_continue:
            conn.sock.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
            req._expected_100_continue = False
        self.transfers.wait_for(length)
        body = temporary_file()
        while chunk := req.body.read(min(STEP_BYTES, length - body.tell())):
            body.write(chunk)
        if body.tell() < length:
            raise StopIteration  # closes the connection: the client has left, or was cut
        body.seek(0)
        return body

    def _process(self, environ: Environment, start_response: StartResponse) -> Iterable[bytes]:
        """Run Django in one of its threads, to the end of the response."""
        give_back = self._take_place(environ)
        if give_back is None:
            return self._busy(environ["PATH_INFO"], start_response)
        response: Response = Future()
        self.processing.submit(self._respond, environ, start_response, response, give_back)
        chunks, size = response.result()
        self.transfers.wait_for(size)
        return chunks

    def _take_place(self, environ: Environment) -> Callable[[], None] | None:
        """Wait for a place. Call the result at the end of the response; None without a place."""
        identity = places.identity_of(environ)
        if kind := places.kind_of(environ["PATH_INFO"]):
            client, of_kind = places.client_of(environ), self.places[kind, identity in self.known]
            return partial(of_kind.give_back, client) if of_kind.take(client) else None
        return partial(self.shares.leave, identity) if self.shares.enter(identity) else None

    def _busy(self, path: str, start_response: StartResponse) -> Iterable[bytes]:
        body, media_type = _problem(path, "busy", "The server is busy with other requests. Try again in a few seconds.")
        headers = [("Content-Type", media_type), ("Content-Length", str(len(body))), ("Retry-After", "10")]
        start_response("503 Service Unavailable", [*headers, ("Cache-Control", "no-store")])
        self.transfers.wait_for(len(body))
        return [body]

    def _respond(
        self, environ: Environment, start_response: StartResponse, response: Response, give_back: Callable[[], None]
    ) -> None:
        """Set the response's chunks and their size. Files are not read here: the kernel sends them."""
        try:
            chunks = self.application(environ, self._learning(environ, start_response))
            if isinstance(chunks, FileWrapper) and util.has_fileno(chunks.filelike):
                response.set_result((chunks, os.fstat(chunks.filelike.fileno()).st_size))
            elif getattr(chunks, "streaming", False):  # Django's StreamingHttpResponse
                stream = Stream(self.transfers)
                response.set_result((stream, 0))
                stream.fill(chunks)
            else:
                response.set_result(_whole(chunks))
        except BaseException as error:  # noqa: BLE001 - raised in the other thread
            response.set_exception(error)
        finally:
            give_back()

    def _learning(self, environ: Environment, start_response: StartResponse) -> StartResponse:
        """`start_response` that also notes an identity whose question or upload was answered."""

        def start(status: str, headers: list[tuple[str, str]], *more: object) -> object:
            identity = places.identity_of(environ)
            if identity and status.startswith("2") and places.kind_of(environ["PATH_INFO"]) in places.OF_THE_KNOWN:
                self.known.add(identity)
            return start_response(status, headers, *more)

        return start

    def murder_pending(self) -> None:
        """At least once a second, in the main thread."""
        if self.nr_conns >= self.worker_connections:
            self._expire_oldest_idle()
        super().murder_pending()
        if late := self.transfers.cut_late():
            self.log.info("Closed %s connections of clients that are too slow.", late)

    def _expire_oldest_idle(self) -> None:
        for idle in (self.pending_conns, self.keepalived_conns):
            if idle:
                idle[0].timeout = 0.0


def _whole(chunks: Iterable[bytes]) -> tuple[Iterable[bytes], int]:
    file = temporary_file()
    with closing_at_the_end(chunks):
        file.writelines(chunks)
    size = file.tell()
    file.seek(0)
    return _chunks_of(file), size


def _chunks_of(file: IO[bytes]) -> Iterator[bytes]:
    with file:
        while chunk := file.read(STEP_BYTES):
            yield chunk


def _refuse(conn: TConn, req: Any, status: int, code: str, message: str) -> bool:
    """Answer without reading the body."""
    body, media_type = _problem(req.path, code, message)
    head = (
        f"HTTP/1.1 {status} {HTTPStatus(status).phrase}\r\nConnection: close\r\nContent-Type: {media_type}\r\n"
        f"Content-Length: {len(body)}\r\n\r\n"
    )
    util.write_nonblock(conn.sock, head.encode() + body)
    return False


def _problem(path: str, code: str, message: str) -> tuple[bytes, str]:
    """Body and media type of a refusal; under /api/ it is {code, message}, like all its errors."""
    if path.startswith("/api/"):
        return json.dumps({"code": code, "message": message}).encode(), "application/json"
    return message.encode(), "text/plain"
