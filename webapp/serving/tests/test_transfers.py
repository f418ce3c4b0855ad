"""Which connections are cut, by the clock and by what is under way. The sockets are real."""

import socket
import threading
from dataclasses import dataclass

import pytest

from webapp.serving import transfers
from webapp.serving.transfers import GRACE_S, MAX_BYTES, MIN_BYTES_PER_S, Transfers


@dataclass
class Connection:
    sock: socket.socket
    client: socket.socket

    def is_cut(self) -> bool:
        self.client.setblocking(False)
        try:
            return self.client.recv(1) == b""
        except BlockingIOError:
            return False


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    at = [0.0]
    monkeypatch.setattr(transfers, "now", lambda: at[0])
    return at


def _begin(all_: Transfers, size: int | None = None, *, pause: bool = False) -> Connection:
    """A transfer in a thread of its own, which ends without ending the transfer."""
    connection = Connection(*socket.socketpair())

    def work() -> None:
        all_.begin(connection)
        if size is not None:
            all_.wait_for(size)
        if pause:
            all_.pause()
        begun.set()
        hold.wait(10)

    begun, hold = threading.Event(), threading.Event()
    threading.Thread(target=work, daemon=True).start()
    begun.wait(10)
    return connection


def test_it_cuts_a_request_that_has_not_begun_in_time(clock: list[float]) -> None:
    found = Transfers()
    connection = _begin(found)
    clock[0] = GRACE_S - 1
    assert found.cut_late() == 0
    assert not connection.is_cut()
    clock[0] = GRACE_S
    assert found.cut_late() == 1
    assert connection.is_cut()


def test_a_long_body_and_a_long_response_have_more_time(clock: list[float]) -> None:
    found = Transfers()
    connection = _begin(found, 100 * MIN_BYTES_PER_S)
    clock[0] = GRACE_S + 99
    assert found.cut_late() == 0
    clock[0] = GRACE_S + 100
    assert found.cut_late() == 1
    assert connection.is_cut()


def test_it_never_cuts_while_the_server_works(clock: list[float]) -> None:
    found = Transfers()
    connection = _begin(found, 10, pause=True)
    clock[0] = 1e6
    assert found.cut_late() == 0
    assert not connection.is_cut()


def test_it_cuts_the_oldest_of_too_many(clock: list[float], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transfers, "MAX_TRANSFERS", 3)
    found = Transfers()
    connections = []
    for second in range(4):
        clock[0] = float(second)
        connections.append(_begin(found))
    assert [each.is_cut() for each in connections] == [True, False, False, False]


def test_it_cuts_the_oldest_if_bodies_take_too_much(clock: list[float]) -> None:
    found = Transfers()
    first = _begin(found, MAX_BYTES // 2)
    clock[0] = 1.0
    second = _begin(found, MAX_BYTES // 2)
    assert not first.is_cut()
    clock[0] = 2.0
    third = _begin(found, 1000)
    assert [each.is_cut() for each in (first, second, third)] == [True, False, False]


def test_bodies_that_django_works_on_count_and_are_not_cut(clock: list[float]) -> None:
    found = Transfers()
    assert found.has_room(MAX_BYTES)
    busy = _begin(found, MAX_BYTES // 2, pause=True)
    assert found.has_room(MAX_BYTES // 2)
    assert not found.has_room(MAX_BYTES // 2 + 1)
    first = _begin(found, MAX_BYTES // 2)
    second = _begin(found, 1000)
    assert [each.is_cut() for each in (busy, first, second)] == [False, True, False]
