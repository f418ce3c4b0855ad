"""A feature that could not be tried is not taken for a missing one."""

from collections.abc import Iterator

import pytest

from worker.contract.workload import IoEngine
from worker.engines.fio import probe
from worker.process.run import ToolError, ToolOutput

KILLED = "fio was killed together with its supervisor."


class Fio:
    """Answers each call with the next of `answers`, the last one again and again."""

    def __init__(self) -> None:
        self.answers: list[ToolOutput | ToolError] = []
        self.calls = 0

    def ask(self, _program: str, *_arguments: str, **_options: object) -> ToolOutput:
        answer = self.answers[min(self.calls, len(self.answers) - 1)]
        self.calls += 1
        if isinstance(answer, ToolError):
            raise answer
        return answer


@pytest.fixture
def fio(monkeypatch: pytest.MonkeyPatch) -> Iterator[Fio]:
    made = Fio()
    monkeypatch.setattr(probe, "ask", made.ask)
    monkeypatch.setattr(probe, "installation", lambda: "/fio@1")
    for cached in (probe._tried, probe._told_version):
        cached.cache_clear()
    yield made
    for cached in (probe._tried, probe._told_version):
        cached.cache_clear()


WORKS = ToolOutput(0, "", "")
FAILS = ToolOutput(1, "fio: engine libaio not loadable\n", "")


def test_it_is_tried_again_at_once(fio: Fio) -> None:
    fio.answers = [ToolError(KILLED), WORKS]
    assert probe.engine_problem(IoEngine.LIBAIO) == ""


def test_two_failed_tries_are_reported_and_not_cached(fio: Fio) -> None:
    fio.answers = [ToolError(KILLED), ToolError(KILLED), WORKS]
    assert probe.engine_problem(IoEngine.LIBAIO) == f"two tries had no result: {KILLED}"
    assert probe.engine_problem(IoEngine.LIBAIO) == ""


def test_a_missing_engine_is_tried_once(fio: Fio) -> None:
    fio.answers = [FAILS]
    assert probe.engine_problem(IoEngine.LIBAIO) == "fio says: fio: engine libaio not loadable"
    assert probe.engine_problem(IoEngine.LIBAIO) == "fio says: fio: engine libaio not loadable"
    assert fio.calls == 1


def test_an_unknown_version_is_asked_for_again(fio: Fio) -> None:
    fio.answers = [ToolError(KILLED), ToolOutput(0, "fio-3.33\n", "")]
    assert (probe.fio_version(), probe.fio_version(), probe.fio_version()) == ("", "fio-3.33", "fio-3.33")
    assert fio.calls == 2
