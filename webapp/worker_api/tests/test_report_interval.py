"""Hosts are asked to report less often while the server is busy, and every second again when the load goes."""

import pytest

from webapp.worker_api.views import HIGH_LOAD, LOW_LOAD, MAX_INTERVAL_S, SHARE, ReportInterval

HOSTS = 100


class Played:
    """Reports that keep the process busy with a given load, by a clock that only counts."""

    def __init__(self) -> None:
        self.interval = ReportInterval()
        self.now = self.interval._since

    def play(self, load: float, seconds: float, *, rate: float, hosts: int = HOSTS) -> float:
        """The interval after so many seconds, with reports of the hosts in turn at this rate in 1/s, of which so many
        were worked on at the same time."""
        for number in range(int(seconds * rate)):
            self.now += 1 / rate
            self.interval.add(number % hosts, busy_s=load / rate, now=self.now)
        return self.interval.interval_s


@pytest.fixture
def played() -> Played:
    return Played()


def test_it_is_a_second_while_reports_are_taken_as_they_come(played: Played) -> None:
    assert played.play(1, 60, rate=HOSTS) == 1


def test_all_hosts_report_at_a_share_of_the_rate_that_was_reached_while_reports_piled_up(played: Played) -> None:
    wanted_s = HOSTS / 60 / SHARE
    assert played.play(HIGH_LOAD + 1, 10, rate=60) == pytest.approx(wanted_s, rel=0.05)
    assert played.play(HIGH_LOAD + 1, 60, rate=60) == pytest.approx(wanted_s, rel=0.05)


def test_hosts_that_wait_for_their_first_reply_are_expected(played: Played) -> None:
    """The first reports of 500 hosts take eight seconds. After one second, 60 are known and 120 are expected in two."""
    assert played.play(HIGH_LOAD + 1, 1.5, rate=60, hosts=500) == pytest.approx(180 / 60 / SHARE, rel=0.05)
    assert played.play(HIGH_LOAD + 1, 30, rate=60, hosts=500) == pytest.approx(500 / 60 / SHARE, rel=0.05)


def test_a_host_that_floods_the_server_does_not_keep_the_interval_short(played: Played) -> None:
    for number in range(1200):
        played.now += 1 / 400
        host = number // 10 % HOSTS if number % 10 == 0 else "flood"  # 40 reports a second of the others
        played.interval.add(host, busy_s=(HIGH_LOAD + 1) / 400, now=played.now)
    assert played.interval.interval_s > 1.5


def test_it_grows_while_the_rate_falls_and_has_a_limit(played: Played) -> None:
    before = played.play(HIGH_LOAD + 1, 10, rate=60)
    assert played.play(HIGH_LOAD + 1, 20, rate=30) > 1.5 * before
    assert played.play(HIGH_LOAD + 1, 60, rate=5) == MAX_INTERVAL_S


def test_it_is_a_second_again_within_a_minute_after_the_load_has_gone(played: Played) -> None:
    played.play(HIGH_LOAD + 1, 60, rate=5)
    assert 1 < played.play(0.5, 20, rate=10) < MAX_INTERVAL_S
    assert played.play(0.5, 45, rate=10) == 1


def test_it_stays_where_the_load_is_neither_high_nor_low(played: Played) -> None:
    before = played.play(HIGH_LOAD + 1, 10, rate=60)
    assert before > 1
    assert played.play((HIGH_LOAD + LOW_LOAD) / 2, 60, rate=60) == before


def test_it_is_a_second_again_after_a_silence(played: Played) -> None:
    played.play(HIGH_LOAD + 1, 60, rate=5)
    played.now += 3 * MAX_INTERVAL_S
    assert played.play(0.5, 0.1, rate=10) == 1
