"""The common start of a trial on several hosts: waiting for it, and reading the server's clock."""

import threading
import time
from collections.abc import Callable, Iterator
from itertools import chain, repeat

import pytest

from worker.contract.base import Failed
from worker.contract.reports import StartReply
from worker.link.client import Unreachable
from worker.orders import measurement
from worker.orders.measurement import wait_for_start

AHEAD_S = 1e9  # of the server's clock


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measurement, "POLL_S", 0.001)
    monkeypatch.setattr(measurement, "READING_EVERY_S", 0.0)


def server(*, start_in_s: float, not_ready: int = 0, fails: int = 0) -> Callable[[], StartReply]:
    """Knows the start after so many requests."""
    start_at = time.monotonic() + AHEAD_S + start_in_s
    replies = chain(repeat(None, not_ready), repeat(start_at))

    def ask() -> StartReply:
        nonlocal fails
        if fails:
            fails -= 1
            raise Unreachable("no route")
        now = time.monotonic() + AHEAD_S
        return StartReply(received_at=now, sent_at=time.monotonic() + AHEAD_S, start_at=next(replies))

    return ask


def test_it_waits_until_the_start_is_known_and_knows_it_by_its_own_clock() -> None:
    asked_at = time.monotonic()
    start = wait_for_start(server(start_in_s=60, not_ready=3, fails=2), threading.Event(), limit_s=60)
    assert start is not None
    assert abs(start.moment - asked_at - 60) < 5
    assert start.uncertainty_s < 5


def test_the_reading_with_the_shortest_round_trip_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    """A slow answer on the way back seems to show a clock that is ahead by less."""
    delays: Iterator[tuple[float, float]] = iter([(0.0, 0.9), (0.01, 0.01), (0.8, 0.0), *[(0.1, 0.5)] * 20])
    now = 0.0
    monkeypatch.setattr(time, "monotonic", lambda: now)

    def ask() -> StartReply:
        nonlocal now
        there, back = next(delays)
        now += there
        received = now + AHEAD_S
        now += 3.0  # in the server
        sent = now + AHEAD_S
        now += back
        return StartReply(received_at=received, sent_at=sent, start_at=AHEAD_S + 1000)

    start = wait_for_start(ask, threading.Event(), limit_s=60)
    assert start is not None
    assert start.moment == pytest.approx(1000, abs=1e-6)
    assert start.uncertainty_s == pytest.approx(0.01, abs=1e-6)


def test_it_fails_if_other_hosts_are_not_ready_in_time() -> None:
    with pytest.raises(Failed, match="not ready") as failure:
        wait_for_start(server(start_in_s=60, not_ready=10**9), threading.Event(), limit_s=0.01)
    assert failure.value.code == "start_timeout"


def test_it_fails_if_it_learns_of_the_start_too_late() -> None:
    with pytest.raises(Failed, match="too late") as failure:
        wait_for_start(server(start_in_s=-1), threading.Event(), limit_s=60)
    assert failure.value.code == "start_missed"


def test_it_ends_when_the_trial_is_stopped() -> None:
    stopped = threading.Event()
    stopped.set()
    assert wait_for_start(server(start_in_s=60, not_ready=10**9), stopped, limit_s=60) is None
    assert wait_for_start(server(start_in_s=60), stopped, limit_s=60) is None
