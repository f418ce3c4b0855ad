"""Hosts are asked to report less often while the server is busy, and every second again when the load goes."""

import pytest

from webapp.worker_api.report_interval import HIGH_LOAD, LOW_LOAD, MAX_INTERVAL_S, ReportInterval


class Played:
    """Reports that keep the process busy with a given load, by a clock that only counts."""

    def __init__(self) -> None:
        self.interval = ReportInterval()
        self.now = self.interval._since

    def play(self, load: float, seconds: float) -> float:
        """The interval after so many seconds in which so many reports were worked on at the same time."""
        for _ in range(int(seconds * 10)):
            self.now += 0.1
            self.interval.add(busy_s=load / 10, now=self.now)
        return self.interval.interval_s


@pytest.fixture
def played() -> Played:
    return Played()


def test_it_is_a_second_while_reports_are_taken_as_they_come(played: Played) -> None:
    assert played.play(1, 60) == 1


def test_it_grows_with_the_load_and_has_a_limit(played: Played) -> None:
    assert 1 < played.play(HIGH_LOAD + 1, 5) <= 1.5**2
    assert played.play(HIGH_LOAD + 1, 60) == MAX_INTERVAL_S


def test_it_is_a_second_again_within_a_minute_after_the_load_has_gone(played: Played) -> None:
    played.play(HIGH_LOAD + 1, 60)
    assert 1 < played.play(1, 20) < MAX_INTERVAL_S
    assert played.play(1, 45) == 1


def test_it_stays_where_the_load_is_neither_high_nor_low(played: Played) -> None:
    before = played.play(HIGH_LOAD + 1, 5)
    assert played.play((HIGH_LOAD + LOW_LOAD) / 2, 60) == before


def test_it_is_a_second_again_after_a_silence(played: Played) -> None:
    played.play(HIGH_LOAD + 1, 60)
    played.now += 3 * MAX_INTERVAL_S
    assert played.play(1, 0.1) == 1
