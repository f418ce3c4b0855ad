"""Slow clients against a real gunicorn with the server's settings, plain and with TLS."""

import http.client
import json
import socket
import ssl
import statistics
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress

import pytest

from webapp.deploy.certificates import ensure
from webapp.serving.places import MAX_WAITING_OF_CLIENT, RUNNING
from webapp.serving.tests.application import LARGE, SLOW_S
from webapp.tests.system import await_true

pytestmark = pytest.mark.slow
SLOW = 300  # clients; a process has 256 threads, of which 192 exchange data
SLOW_READERS = 100  # fewer: each response takes work to make
LIMIT_S = 3.0  # for the median request of another client: a busy machine may delay a single one
GRACE_S = 3.0  # of quick_limits

Server = tuple[int, ssl.SSLContext | None]


@pytest.fixture(scope="module", params=["plain", "tls"])
def server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("gunicorn")
    options, trust = [], None
    if request.param == "tls":
        ensure(folder, folder, ["127.0.0.1"])
        options = ["--certfile", str(folder / "server.crt"), "--keyfile", str(folder / "server.key")]
        trust = ssl.create_default_context(cafile=str(folder / "ca.crt"))
    with socket.create_server(("127.0.0.1", 0), backlog=2048) as listener:
        port = listener.getsockname()[1]
        command = [
            sys.executable, "-m", "gunicorn", "webapp.serving.tests.application", "--config",
            "python:webapp.serving.tests.quick_limits", "--bind", f"fd://{listener.fileno()}", *options,
        ]  # fmt: skip
        with (folder / "log").open("w") as log:
            child = subprocess.Popen(command, pass_fds=[listener.fileno()], stderr=log)
    try:
        await_true(lambda: _answers((port, trust)), limit_s=30, what="gunicorn answers")
        yield port, trust
    finally:
        child.terminate()
        child.wait(40)
    assert "Traceback" not in (folder / "log").read_text()


def _answers(server: Server) -> bool:
    try:
        return _ask(server, b"") == 0
    except OSError:
        return False


def _ask(server: Server, body: bytes) -> int:
    """The number of bytes that the server has received."""
    connection = _connection(server)
    try:
        connection.request("POST", "/", body)
        return int(connection.getresponse().read())
    finally:
        connection.close()


def _connection(server: Server) -> http.client.HTTPConnection:
    port, trust = server
    if trust:
        return http.client.HTTPSConnection("127.0.0.1", port, timeout=20, context=trust)
    return http.client.HTTPConnection("127.0.0.1", port, timeout=20)


def _raw(server: Server, start: bytes, *, encrypt: bool = True) -> socket.socket:
    port, trust = server
    client = socket.socket()
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    client.settimeout(5)
    client.connect(("127.0.0.1", port))
    if trust and encrypt:
        client = trust.wrap_socket(client, server_hostname="127.0.0.1")
    client.sendall(start)
    return client


@contextmanager
def _slow(server: Server, start: bytes, drip: Callable[[socket.socket], object], number: int) -> Iterator[None]:
    """That many clients; each does a little every half second, and comes again when its connection was closed."""
    stop = threading.Event()

    def work(part: int) -> None:
        clients: list[socket.socket] = []
        while not stop.is_set():
            with suppress(OSError):  # some are cut at once to make room for others
                while len(clients) < part:
                    clients.append(_raw(server, start))
            clients = [each for each in clients if _does(drip, each)]
            stop.wait(0.5)
        for each in clients:
            each.close()

    threads = [threading.Thread(target=work, args=(number // 4,)) for _ in range(4)]
    for thread in threads:
        thread.start()
    time.sleep(2)  # until the clients have used up all places
    try:
        yield
    finally:
        stop.set()
        for thread in threads:
            thread.join()


def _does(drip: Callable[[socket.socket], object], client: socket.socket) -> bool:
    try:
        drip(client)
    except OSError:
        client.close()
        return False
    return True


def test_a_client_gets_the_start_of_a_stream_before_its_end_exists(server: Server) -> None:
    connection = _connection(server)
    connection.request("GET", "/stream")
    response = connection.getresponse()
    assert response.read(5) == b"first"
    other = _connection(server)
    other.request("GET", "/continue")
    other.getresponse().read()
    assert response.read() == b"second"
    connection.close()
    other.close()


ATTACKS: dict[str, tuple[bytes, Callable[[socket.socket], object]]] = {
    "headers": (b"GET / HTTP/1.1\r\nHost: x\r\n", lambda client: client.sendall(b"X-A: b\r\n")),
    "body": (b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 9000\r\n\r\n", lambda client: client.sendall(b"x")),
    "chunks": (
        b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n",
        lambda client: client.sendall(b"1\r\nx\r\n"),
    ),
    "response": (b"GET /large HTTP/1.1\r\nHost: x\r\n\r\n", lambda client: client.recv(1)),
    "file": (b"GET /file HTTP/1.1\r\nHost: x\r\n\r\n", lambda client: client.recv(1)),
    "end": (b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", lambda client: client.sendall(b"x")),
    "huge bodies": (
        b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 60000000\r\n\r\n",
        lambda client: client.sendall(b"x"),
    ),
}  # fmt: skip


@pytest.mark.parametrize("kind", ATTACKS)
def test_slow_clients_hold_nobody_up(server: Server, kind: str) -> None:
    with _slow(server, *ATTACKS[kind], number=SLOW_READERS if kind == "response" else SLOW):
        assert statistics.median(_seconds_of_a_request(server) for _ in range(10)) < LIMIT_S


def _seconds_of_a_request(server: Server) -> float:
    started_at = time.monotonic()
    assert _ask(server, b"x" * 200_000) == 200_000
    took_s = time.monotonic() - started_at
    time.sleep(0.3)  # spread over the rhythm of the slow clients
    return took_s


@pytest.mark.parametrize("kind", ["headers", "body"])
def test_it_cuts_a_client_that_is_too_slow(server: Server, kind: str) -> None:
    start, drip = ATTACKS[kind]
    client = _raw(server, start)
    started_at = time.monotonic()
    while _does(drip, client):
        time.sleep(0.2)  # the client is slow
        assert time.monotonic() - started_at < GRACE_S + 10
    assert time.monotonic() - started_at > GRACE_S - 1


def test_a_client_that_does_not_encrypt_holds_nobody_up(server: Server) -> None:
    if server[1] is None:
        pytest.skip("for TLS alone")
    silent = [_raw(server, b"\x16", encrypt=False) for _ in range(SLOW)]
    assert statistics.median(_seconds_of_a_request(server) for _ in range(3)) < LIMIT_S
    for each in silent:
        each.close()


def test_expensive_requests_hold_no_short_one_up(server: Server) -> None:
    """40 at once, of one client, while others ask for something short and for something expensive."""

    with ThreadPoolExecutor(41) as pool:
        many = [pool.submit(_explore, server, "many") for _ in range(40)]
        time.sleep(SLOW_S / 2)  # until all of them have arrived
        assert statistics.median(_seconds_of_a_request(server) for _ in range(5)) < LIMIT_S
        started_at = time.monotonic()
        assert _explore(server, "other") == (200, None)
        assert time.monotonic() - started_at < 3 * SLOW_S  # its turn comes next
        answers = Counter(each.result() for each in many)
    assert answers.keys() == {(200, None), (503, "10")}
    assert RUNNING + MAX_WAITING_OF_CLIENT <= answers[200, None] < 20  # a late one may find a place


def test_invented_sessions_hold_no_known_one_up(server: Server) -> None:
    assert _explore(server, "known") == (200, None)
    ends_at = time.monotonic() + 4 * SLOW_S

    def invent(number: int) -> None:
        while time.monotonic() < ends_at:
            _explore(server, f"false-{number}-{time.monotonic()}")

    with ThreadPoolExecutor(60) as pool:
        floods = [pool.submit(invent, number) for number in range(60)]
        time.sleep(SLOW_S)  # until the flood has arrived
        for _ in range(2):
            started_at = time.monotonic()
            assert _explore(server, "known") == (200, None)
            assert time.monotonic() - started_at < 3 * SLOW_S
        for flood in floods:
            flood.result()


def _explore(server: Server, session: str) -> tuple[int, str | None]:
    """Status and Retry-After."""
    connection = _connection(server)
    connection.request("GET", "/explore/", headers={"Cookie": f"sessionid={session}"})
    answer = connection.getresponse()
    answer.read()
    connection.close()
    return answer.status, answer.headers["Retry-After"]


def test_many_requests_whose_answers_nobody_reads_hold_nobody_up(server: Server) -> None:
    """Django would work for 9 s on them."""
    page = b"GET /page HTTP/1.1\r\nHost: x\r\nCookie: sessionid=many\r\n\r\n"
    unread = [_raw(server, page) for _ in range(SLOW)]
    assert statistics.median(_seconds_of_a_request(server) for _ in range(5)) < LIMIT_S
    for client in unread:
        client.close()


def test_it_takes_several_requests_on_one_connection(server: Server) -> None:
    connection = _connection(server)
    for number in (0, 10, 3_000_000, 5):
        connection.request("POST", "/", b"x" * number)
        assert int(connection.getresponse().read()) == number
    for path in ("/large", "/file"):
        connection.request("GET", path)
        assert len(connection.getresponse().read()) == LARGE
    connection.close()


def test_it_asks_for_a_length_and_refuses_too_long_a_request(server: Server) -> None:
    connection = _connection(server)
    connection.request("POST", "/", iter([b"x"]), encode_chunked=True, headers={"Transfer-Encoding": "chunked"})
    assert connection.getresponse().status == 411
    connection.close()
    client = _raw(server, b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 600000000\r\n\r\n")
    assert b"413" in client.recv(100)
    client.close()


def test_it_refuses_in_json_under_api(server: Server) -> None:
    connection = _connection(server)
    connection.request("POST", "/api/v1/imports", headers={"Content-Length": "600000000"})
    answer = connection.getresponse()
    assert (answer.status, answer.headers["Content-Type"]) == (413, "application/json")
    assert json.loads(answer.read()) == {"code": "too_large", "message": "A request may have 520 MiB."}
    connection.close()


def test_it_continues_a_request_that_waits_for_it(server: Server) -> None:
    client = _raw(server, b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n")
    assert client.recv(100).startswith(b"HTTP/1.1 100")
    client.sendall(b"ab")
    answer = client.recv(1000)
    assert b"200 OK" in answer
    assert answer.count(b"HTTP/1.1") == 1
    client.close()


def test_no_header_changes_the_path(server: Server) -> None:
    connection = _connection(server)
    connection.request("POST", "/", b"abc", {"SCRIPT_NAME": "/elsewhere", "PATH_INFO": "/large"})
    response = connection.getresponse()
    assert (response.status, response.read()) == (200, b"3")
    connection.close()
