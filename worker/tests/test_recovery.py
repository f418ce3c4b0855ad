"""The worker is stopped, or fails, while it cleans up at its start."""

import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from worker.orders.executor import Executor
from worker.service import Service
from worker.tests.service import Bench


class Cause(Exception):
    pass


def fail(*_: object) -> None:
    raise Cause


@pytest.fixture
def service(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Service:
    monkeypatch.setattr("worker.service.examine_types", lambda: None)
    monkeypatch.setattr(signal, "signal", lambda *_: None)
    bench = Bench(tmp_path, "")
    bench.peer.down()
    return Service(bench.paths, bench._enrolment(bench.peer.keys, "redis://127.0.0.1:1/0"))


def recovering(monkeypatch: pytest.MonkeyPatch, action: Callable[..., object]) -> None:
    monkeypatch.setattr(Executor, "recover", action)


def test_an_error_is_raised_as_it_is(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    recovering(monkeypatch, fail)
    with pytest.raises(Cause):
        service.run()


def test_sigterm_ends_it_with_status_0(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    recovering(monkeypatch, lambda _: service._on_signal(signal.SIGTERM, None))
    assert service.run() == 0
