"""Requests: what is repeated, what an error becomes, where the token goes."""

import io
import ssl
import subprocess
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from worker.client import server as server_module
from worker.client.configuration import Configuration
from worker.client.errors import ClientError, ExitCode, Refused, Unreachable, UsageError
from worker.client.server import Request, Server

TOKEN = "secret-token"


class Recorded:
    """A transport that gives the listed answers; the last one again and again."""

    def __init__(self, *answers: tuple[int, bytes] | Exception) -> None:
        self.answers, self.count = answers, 0

    def __call__(self, request: Request) -> tuple[int, bytes]:
        answer = self.answers[min(self.count, len(self.answers) - 1)]
        self.count += 1
        if isinstance(answer, Exception):
            raise answer
        return answer


def server(transport: Recorded) -> Server:
    return Server(Configuration("https://lab.example", TOKEN, ""), transport)


@pytest.fixture(autouse=True)
def no_sleep(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_module, "sleep", lambda _: None)


@pytest.mark.parametrize("outage", [ConnectionResetError("reset"), TimeoutError("timed out"), (503, b"<html>")])
def test_safe_requests_are_repeated_and_others_are_not(outage: Exception | tuple[int, bytes]) -> None:
    recovered = Recorded(outage, outage, (200, b'{"ok": true}'))
    assert server(recovered).get("runs") == {"ok": True}
    down = Recorded(outage)
    with pytest.raises(Unreachable) as error:
        server(down).get("runs")
    assert (down.count, error.value.exit_code) == (5, ExitCode.UNREACHABLE)
    once = Recorded(outage)
    with pytest.raises(Unreachable):
        server(once).post("enrolments", {})
    assert once.count == 1


def test_refusals_are_in_the_servers_words() -> None:
    with pytest.raises(Refused, match=r"^There is no run 9\.$") as refused:
        server(Recorded((404, b'{"code": "run_unknown", "message": "There is no run 9."}'))).get("runs/9")
    assert (refused.value.code, refused.value.exit_code) == ("run_unknown", ExitCode.REFUSED)
    with pytest.raises(Refused, match="does not accept the API token"):
        server(Recorded((401, b'{"code": "not_logged_in", "message": "x"}'))).get("runs")
    with pytest.raises(ClientError, match="Is it a Sweetspot server"):
        server(Recorded((200, b"<html>"))).get("runs")


class Elsewhere(BaseHTTPRequestHandler):
    """Redirects to /stolen, and records who asks. A download ends after the first of its chunks."""

    asked: list[tuple[str, str]] = []

    def do_GET(self) -> None:
        self.asked.append((self.path, self.headers.get("Authorization", "")))
        if self.path.endswith("/results.parquet"):
            self.wfile.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nPAR1\r\n")
            return
        if self.path.endswith("/whole"):
            self.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nPAR1")
            return
        self.send_response(302)
        self.send_header("Location", "/stolen")
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *args: object) -> None: ...


@pytest.fixture
def elsewhere() -> Iterator[str]:
    listening = ThreadingHTTPServer(("127.0.0.1", 0), Elsewhere)
    threading.Thread(target=listening.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{listening.server_port}"
    listening.shutdown()
    listening.server_close()


def test_a_redirect_does_not_take_the_token_along(elsewhere: str) -> None:
    Elsewhere.asked.clear()
    with pytest.raises(ClientError, match="redirects to another address"):
        Server(Configuration(elsewhere, TOKEN, "")).get("runs")
    assert Elsewhere.asked == [("/api/v1/runs", f"Bearer {TOKEN}")]


def test_a_download_that_ends_early_is_an_error(elsewhere: str) -> None:
    with pytest.raises(Unreachable, match="IncompleteRead"):
        Server(Configuration(elsewhere, TOKEN, "")).download("results.parquet", (), io.BytesIO())


def test_a_full_disk_is_no_failure_of_the_network(elsewhere: str) -> None:
    with Path("/dev/full").open("wb", buffering=0) as full, pytest.raises(UsageError, match="cannot be written"):
        Server(Configuration(elsewhere, TOKEN, "")).download("whole", (), full)


@pytest.mark.parametrize(("names", "is_accepted"), [(["-addext", "subjectAltName=DNS:localhost"], True), ([], False)])
def test_a_certificate_must_state_the_name_as_an_alternative_name(
    tmp_path: Path, names: list[str], is_accepted: bool
) -> None:
    """Both have it as common name, which browsers do not read."""
    certificate, key = tmp_path / "server.crt", tmp_path / "server.key"
    files = ["-keyout", str(key), "-out", str(certificate)]
    made = ["openssl", "req", "-x509", "-newkey", "ed25519", "-nodes", "-days", "2", "-subj", "/CN=localhost"]
    subprocess.run([*made, *files, *names], check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    listening = ThreadingHTTPServer(("127.0.0.1", 0), Elsewhere)
    listening.socket = context.wrap_socket(listening.socket, server_side=True, do_handshake_on_connect=False)
    threading.Thread(target=listening.serve_forever, daemon=True).start()
    try:
        client = Server(Configuration(f"https://localhost:{listening.server_port}", TOKEN, str(certificate)))
        error = ClientError if is_accepted else Unreachable
        with pytest.raises(error, match="redirects to another address" if is_accepted else "mismatch"):
            client.get("runs")
    finally:
        listening.shutdown()
        listening.server_close()


def test_a_file_that_is_no_certificate_is_refused() -> None:
    with pytest.raises(ClientError, match="is not a file of PEM certificates"):
        Server(Configuration("https://lab.example", TOKEN, __file__))
