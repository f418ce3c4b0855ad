"""Webhooks against a real receiver on loopback."""

import json
import re
import socket
import ssl
import threading
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from django.utils import timezone
from pytest_django import Settings
from urllib3.connection import HTTPSConnection

from webapp.deploy import certificates
from webapp.notices import webhook
from webapp.notices.delivery import send_due
from webapp.notices.models import Failure, Notice, NoticeState
from webapp.notices.tests.receivers import Receiver, receiver, trickle
from webapp.tests.factories.notices import SECRET, a_notice
from webapp.tests.system import ROOT

pytestmark = pytest.mark.django_db


def failure_of(notice: Notice) -> Failure:
    with pytest.raises(Failure) as failed:
        webhook.send(notice)
    return failed.value


def test_it_posts_the_event_as_json(hook: Receiver) -> None:
    notice = a_notice(hook.url)
    webhook.send(notice)
    (request,) = hook.requests
    assert request.path == "/hook?x=1"
    assert request.headers["Content-Type"] == "application/json"
    assert request.headers["Host"] == f"127.0.0.1:{hook.port}"
    assert (request.headers["Sweetspot-Event"], request.headers["Sweetspot-Delivery"]) == ("ended", str(notice.id))
    sent = json.loads(request.body)
    assert set(sent) == {"id", "event", "at", "plan", "run", "subject", "text", "url", "detail"}
    assert (sent["id"], sent["event"], sent["run"]) == (str(notice.id), "ended", 17)
    assert sent["url"].endswith("/runs/17/")


def receiver_of_the_documentation() -> Any:
    """The class in docs/how-to/notices.md, without the line that starts it."""
    text = (ROOT / "docs/how-to/notices.md").read_text()
    (code,) = re.findall(r"```python\n(.*?)```", text, re.S)
    space: dict[str, Any] = {}
    exec(code.partition("HTTPServer((")[0], space)
    space["SECRET"] = SECRET.encode()
    return space["Receiver"]


@pytest.mark.parametrize(("secret", "status"), [(SECRET, 204), ("another secret", 401)])
def test_the_documented_receiver_takes_only_what_is_signed_with_its_secret(
    loopback_allowed: None, monkeypatch: pytest.MonkeyPatch, secret: str, status: int
) -> None:
    handler, statuses = receiver_of_the_documentation(), []

    class Server(ThreadingHTTPServer):
        def __init__(self, address: tuple[str, int], _: Any) -> None:
            super().__init__(address, handler)

    monkeypatch.setattr(handler, "log_request", lambda _, code: statuses.append(code))
    monkeypatch.setattr(webhook, "unsealed", lambda _: secret)
    with receiver(Server) as found:
        notice = a_notice(found.url)
        if status == 204:
            webhook.send(notice)
        else:
            assert failure_of(notice).words == "The receiver answered 401."
    assert statuses == [status]


def test_it_tries_again_after_an_error_with_the_same_delivery_id(hook: Receiver) -> None:
    notice, now = a_notice(hook.url), timezone.now()
    hook.answers = [500]
    assert send_due(now) == 1
    notice.refresh_from_db()
    assert (notice.state, notice.tries, notice.last_error) == ("pending", 1, "The receiver answered 500.")
    assert send_due(now) == 0
    assert send_due(notice.next_try_at) == 1
    notice.refresh_from_db()
    assert (notice.state, notice.tries, notice.last_error) == (NoticeState.SENT, 2, "")
    first, second = hook.requests
    assert first.headers["Sweetspot-Delivery"] == second.headers["Sweetspot-Delivery"] == str(notice.id)
    assert first.body == second.body


@pytest.mark.parametrize(
    ("status", "refused"),
    [(400, True), (404, True), (410, True), (408, False), (425, False), (429, False), (503, False)],
)
def test_it_tells_refusals_from_trouble(hook: Receiver, status: int, refused: bool) -> None:
    hook.answers = [status]
    failure = failure_of(a_notice(hook.url))
    assert (failure.refused, failure.unreachable) == (refused, False)
    assert str(status) in failure.words


def test_it_follows_no_redirect(hook: Receiver) -> None:
    def redirect(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(302)
        handler.send_header("Location", f"http://127.0.0.1:{hook.port}/elsewhere")
        handler.end_headers()

    hook.answers = [redirect]
    failure = failure_of(a_notice(hook.url))
    assert failure.words.startswith("The receiver answered 302, a redirect.")
    assert [request.path for request in hook.requests] == ["/hook?x=1"]


def silent(handler: BaseHTTPRequestHandler) -> None:
    handler.connection.settimeout(10)
    handler.connection.recv(1)  # until the other side gives up


@pytest.mark.parametrize("slow", [silent, trickle])
def test_it_gives_up_on_a_receiver_that_does_not_answer_in_time(
    hook: Receiver, monkeypatch: pytest.MonkeyPatch, slow: Any
) -> None:
    monkeypatch.setattr(webhook, "LIMIT_S", 0.5)
    hook.answers = [slow]
    failure = failure_of(a_notice(hook.url))
    assert failure.words == f"127.0.0.1:{hook.port} did not answer within 0.5 s."
    assert failure.unreachable


def test_it_reads_no_long_answer(hook: Receiver) -> None:
    broke = threading.Event()

    def endless(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        handler.end_headers()
        with suppress(OSError):
            for _ in range(10_000):
                handler.wfile.write(b"x" * 65536)
            return
        broke.set()

    hook.answers = [endless]
    webhook.send(a_notice(hook.url))
    assert broke.wait(10)


def test_it_says_that_nobody_listens(loopback_allowed: None) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        port = closed.getsockname()[1]
        failure = failure_of(a_notice(f"http://127.0.0.1:{port}/"))
    assert failure.words == f"No connection to 127.0.0.1:{port}: Connection refused."
    assert failure.unreachable


def test_it_uses_no_proxy_of_the_environment(hook: Receiver, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:1/")
    webhook.send(a_notice(hook.url))
    assert len(hook.requests) == 1


def resolves_to(*in_turn: str) -> Any:
    turns = iter(in_turn)

    def getaddrinfo(_host: str, port: int, *_: Any, **__: Any) -> list[Any]:
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (next(turns), port))]

    return getaddrinfo


def test_it_checks_the_address_again_when_it_sends(
    hook: Receiver, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The name led elsewhere when the subscription was saved (DNS rebinding)."""
    settings.WEBHOOK_NETWORKS = []
    notice = a_notice(f"http://hooks.example:{hook.port}/")
    monkeypatch.setattr(socket, "getaddrinfo", resolves_to("127.0.0.1"))
    failure = failure_of(notice)
    assert failure.refused
    assert failure.words.startswith("hooks.example is inside the server's own network.")
    assert hook.requests == []


def test_it_connects_to_the_address_that_it_checked(hook: Receiver, monkeypatch: pytest.MonkeyPatch) -> None:
    """A second look-up would lead elsewhere."""
    notice = a_notice(f"http://hooks.example:{hook.port}/")
    monkeypatch.setattr(socket, "getaddrinfo", resolves_to("127.0.0.1"))
    webhook.send(notice)
    assert hook.requests[0].headers["Host"] == f"hooks.example:{hook.port}"


@pytest.fixture
def encrypted(tmp_path: Path) -> type[ThreadingHTTPServer]:
    """A server with a certificate for hooks.example from an authority of its own, ca.crt in `tmp_path`."""
    certificates.ensure(tmp_path, tmp_path, ["hooks.example"])
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "server.crt", tmp_path / "server.key")

    class Server(ThreadingHTTPServer):
        def get_request(self) -> tuple[Any, Any]:
            sock, address = super().get_request()
            return context.wrap_socket(sock, server_side=True, do_handshake_on_connect=False), address

        def handle_error(self, *_: Any) -> None:
            """A client that hangs up is what some tests are about."""

    return Server


@pytest.mark.parametrize(
    ("trusted", "name", "problem"),
    [
        (True, "hooks.example", ""),
        (False, "hooks.example", "unable to get local issuer certificate"),
        (True, "other.example", "Hostname mismatch"),
    ],
)
def test_it_sends_only_to_a_receiver_whose_certificate_is_right(
    loopback_allowed: None,
    encrypted: type[ThreadingHTTPServer],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    trusted: bool,
    name: str,
    problem: str,
) -> None:
    if trusted:
        monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "ca.crt"))
    with receiver(encrypted) as found:
        notice = a_notice(f"https://{name}:{found.port}/")
        monkeypatch.setattr(socket, "getaddrinfo", resolves_to("127.0.0.1"))
        if not problem:
            webhook.send(notice)
        else:
            assert problem in failure_of(notice).words
    assert len(found.requests) == (0 if problem else 1)


def test_the_common_name_of_a_certificate_is_no_name_of_the_receiver() -> None:
    url = webhook.read_url("https://hooks.example/")
    with socket.socket() as sock:
        connection = webhook._connection(url, sock)
    assert isinstance(connection, HTTPSConnection)
    assert connection.ssl_context is not None
    assert not connection.ssl_context.hostname_checks_common_name
