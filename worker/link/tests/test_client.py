import socket
import threading
import time
from collections.abc import Iterator

import pytest

from worker.contract.greetings import Enrol
from worker.link.client import Client, Refused, Unreachable
from worker.link.session import encode_report
from worker.tests.peer import ENROLMENT_TOKEN, TOKEN, Peer

ENROL = Enrol(token=ENROLMENT_TOKEN, hostname="store-1", worker_version="0", oldest_contract=1, newest_contract=1)


@pytest.fixture
def peer() -> Iterator[Peer]:
    peer = Peer()
    yield peer
    peer.down()


def test_it_enrols(peer: Peer) -> None:
    reply = Client(peer.url).enrol(ENROL)
    assert (reply.host_name, reply.host_token) == ("store-1", TOKEN)


def test_it_gives_the_servers_words_when_refused(peer: Peer) -> None:
    with pytest.raises(Refused, match="token is not known") as caught:
        Client(peer.url, "wrong").report(encode_report([], []))
    assert (caught.value.code, caught.value.status, caught.value.about_token) == ("bad_token", 401, True)


def test_it_fetches_a_new_token_and_goes_on_with_it(peer: Peer) -> None:
    client = Client(peer.url, TOKEN)
    peer.token_due = True
    client.use_token(client.new_token().host_token)
    client.report(encode_report([], []))
    assert peer.token != TOKEN
    assert not peer.token_due


def test_it_repeats_what_was_under_way_with_the_old_token_when_the_new_one_came(peer: Peer) -> None:
    """The other thread has used the new token in between, so the server does not know the old one any more."""
    client = Client(peer.url, TOKEN)
    sent: list[dict[str, str]] = []
    exchange = client._exchange

    def late(url: str, body: bytes, headers: dict[str, str]) -> tuple[int, bytes]:
        sent.append(headers)
        if len(sent) == 1:
            peer.token = "the-new-token-of-the-test"
            client.use_token(peer.token)
        return exchange(url, body, headers)

    client._exchange = late  # type: ignore[method-assign]
    client.report(encode_report([], []))
    assert [headers["Authorization"] for headers in sent] == [f"Bearer {TOKEN}", f"Bearer {peer.token}"]


def test_it_says_who_cannot_be_reached(peer: Peer) -> None:
    peer.down()
    with pytest.raises(Unreachable, match=rf"127\.0\.0\.1:{peer.port}.*refused"):
        Client(peer.url, TOKEN).report(encode_report([], []))
    peer.up()


def test_it_keeps_its_connection(peer: Peer) -> None:
    client = Client(peer.url, TOKEN)
    for _ in range(5):
        client.report(encode_report([], []))
    assert peer._server is not None
    assert len(peer._server._connections) == 1


def test_it_waits_no_longer_than_its_limit() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        client = Client(f"http://127.0.0.1:{silent.getsockname()[1]}", TOKEN, answer_limit_s=0.2)
        began = time.monotonic()
        with pytest.raises(Unreachable, match="timed out"):
            client.report(encode_report([], []))
        assert time.monotonic() - began < 2


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n<html>hi!",
        b"HTTP/1.1 404 Not Found\r\nContent-Length: 2\r\n\r\nno",
        b"HTTP/1.1 302 Found\r\nLocation: http://example.org/\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n",
        b"nonsense\r\n\r\n",
    ],
)
def test_it_takes_an_answer_that_is_none_of_ours_for_no_answer(answer: bytes) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        threading.Thread(target=_answer_once, args=(other, answer), daemon=True).start()
        with pytest.raises(Unreachable):
            Client(f"http://127.0.0.1:{other.getsockname()[1]}", TOKEN, answer_limit_s=2).report(encode_report([], []))


def _answer_once(server: socket.socket, answer: bytes) -> None:
    connection, _ = server.accept()
    with connection:
        connection.recv(65536)
        connection.sendall(answer)


def test_it_shows_no_token() -> None:
    assert "secret" not in repr(Client("http://127.0.0.1:1", "secret-token"))
