"""Lines of a worker's log: each kept once, the newest ones only, and never a reason to refuse a report."""

import uuid

import pytest

from webapp.core.throttle import Rate
from webapp.hosts import services
from webapp.hosts.models import WorkerLogLine
from webapp.hosts.selectors import log_lines
from webapp.hosts.services import keep_log
from webapp.tests.factories.hosts import a_host, a_host_with_token
from webapp.worker_api.tests.posting import post
from worker.contract.reports import LogLevel, LogLine, Report, WorkerLog
from worker.contract.tests.examples import AT

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("broker")]


def lines(*numbers: int, session: str = "s", level: LogLevel = LogLevel.INFO, **more: str) -> WorkerLog:
    made = (LogLine(number=n, at=AT, level=level, text=more.get("text", f"line {n}"), attempt=more.get("attempt", ""))
            for n in numbers)  # fmt: skip
    return WorkerLog(session=session, lines=tuple(made))


def test_it_keeps_a_line_once_however_often_it_comes() -> None:
    host, token = a_host_with_token()
    for shipped in (lines(1, 2), lines(1, 2, 3), lines(1, session="after-a-restart")):
        assert post("report", Report(log=shipped), token).status_code == 200
    assert WorkerLogLine.objects.filter(host=host).count() == 4


def test_it_keeps_the_newest_lines_of_each_host(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(services, "LINES_KEPT", 10)
    host, other = a_host(), a_host()
    keep_log(host=other, shipped=lines(1))
    for first in range(0, 30, 5):
        keep_log(host=host, shipped=lines(*range(first, first + 5)))
    assert [line.number for line in log_lines(host)] == list(range(29, 19, -1))
    assert log_lines(other).count() == 1


def test_it_takes_what_postgresql_or_the_calendar_cannot() -> None:
    _, token = a_host_with_token()
    bad = WorkerLog(session="s", lines=(LogLine(number=1, at=1e30, level=LogLevel.ERROR, text="a\0b", attempt="?"),))
    assert post("report", Report(log=bad), token).status_code == 200
    line = WorkerLogLine.objects.get()
    assert (line.text, line.attempt, line.level) == ("a�b", None, "error")
    huge = WorkerLog(session="s", lines=(LogLine(number=2**63 - 1, at=AT, level=LogLevel.INFO, text="x"),))
    assert post("report", Report(log=huge), token).status_code == 200


def test_it_filters_by_level_and_order() -> None:
    host, attempt = a_host(), uuid.uuid4()
    keep_log(host=host, shipped=lines(1))
    keep_log(host=host, shipped=lines(2, level=LogLevel.WARNING))
    keep_log(host=host, shipped=lines(3, level=LogLevel.ERROR, attempt=str(attempt)))
    assert [line.number for line in log_lines(host, level="warning")] == [3, 2]
    assert [line.number for line in log_lines(host, attempt=attempt)] == [3]
    assert log_lines(host, level="nonsense").count() == 3


def test_lines_that_come_too_fast_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """PostgreSQL keeps deleted rows on disk until a vacuum, so what is written counts, not what stays."""
    clock = [0.0]
    monkeypatch.setattr(services, "RATE", Rate(burst=200_000, per_s=1_000, clock=lambda: clock[0]))
    host, other = a_host(), a_host()
    for first in range(0, 4_000, 200):
        keep_log(host=host, shipped=lines(*range(first, first + 200), text="x" * 1800))
    stored = list(WorkerLogLine.objects.filter(host=host).values_list("number", flat=True).order_by("id"))
    assert stored == list(range(101))  # a hundred of 2,000 bytes, and one that says that others are left out
    assert WorkerLogLine.objects.get(host=host, number=100).level == "warning"
    keep_log(host=other, shipped=lines(1))
    assert log_lines(other).count() == 1
    clock[0] += 4.5
    keep_log(host=host, shipped=lines(5_000, 5_001, 5_002, text="x" * 1800))
    assert {5_000, 5_001, 5_002} <= set(WorkerLogLine.objects.filter(host=host).values_list("number", flat=True))
    assert WorkerLogLine.objects.get(host=host, number=5_002).level == "warning"
