"""A WSGI application for tests of the worker: it needs neither Django nor a database."""

import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any

SLOW_S = 1.0  # of an expensive request
FALSE_SESSION, REFUSAL_S = "sessionid=false", 0.1  # a query, on a busy machine
PAGE_S = 0.03  # of CPU time, of a page
LARGE = 4_000_000  # bytes; more than the kernel buffers for a client that does not read


continued = threading.Event()


class Streaming:
    """Like Django's StreamingHttpResponse. Its second part exists only after a request for /continue."""

    streaming = True

    def __iter__(self) -> Iterator[bytes]:
        yield b"first"
        continued.wait(20)
        yield b"second"

    def close(self) -> None:
        continued.clear()


def application(environ: dict[str, Any], start_response: Callable[..., object]) -> Iterable[bytes]:
    path = environ["PATH_INFO"]
    if path == "/file":
        start_response("200 OK", [("Content-Length", str(LARGE))])
        return environ["wsgi.file_wrapper"](_file())  # type: ignore[no-any-return]
    body = environ["wsgi.input"].read()
    if FALSE_SESSION in environ.get("HTTP_COOKIE", ""):
        time.sleep(REFUSAL_S)  # stands for work
        start_response("302 Found", [("Location", "/login/")])
        return []
    start_response("200 OK", [("Content-Type", "text/plain")])
    if path == "/explore/":
        time.sleep(SLOW_S)  # stands for work
    if path == "/page":
        _work(PAGE_S)
    if path == "/stream":
        return Streaming()
    if path == "/continue":
        continued.set()
    if path == "/large":
        return (b"x" * 100_000 for _ in range(LARGE // 100_000))
    return [str(len(body)).encode()]


def _work(seconds: float) -> None:
    until = time.thread_time() + seconds
    while time.thread_time() < until:
        pass


def _file() -> Any:
    fd = os.memfd_create("file")
    os.truncate(fd, LARGE)
    return os.fdopen(fd, "rb")
