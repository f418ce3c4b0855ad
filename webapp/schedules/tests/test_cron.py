"""Cron lines: due times across clock changes, words, and what is refused."""

from datetime import UTC, date, datetime, time, timedelta
from itertools import islice, takewhile
from zoneinfo import ZoneInfo

import pytest

from webapp.core.errors import Refusal
from webapp.schedules.timing import checked_line, count_of_line, due_times, in_words

BERLIN = ZoneInfo("Europe/Berlin")


def local(line: str, after: datetime, count: int = 3) -> list[str]:
    return [f"{due.astimezone(BERLIN):%d %H:%M %Z}" for due in islice(due_times(line, BERLIN, after), count)]


def test_due_times_keep_the_local_time_when_clocks_are_set() -> None:
    before = datetime(2026, 3, 28, 12, tzinfo=UTC)
    assert local("0 22 * * *", before) == ["28 22:00 CET", "29 22:00 CEST", "30 22:00 CEST"]


def test_a_time_that_does_not_exist_is_due_right_after_the_gap() -> None:
    before = datetime(2026, 3, 28, 0, tzinfo=UTC)
    assert local("30 2 * * *", before) == ["28 02:30 CET", "29 03:00 CEST", "30 02:30 CEST"]


def test_a_time_that_exists_twice_is_due_once() -> None:
    before = datetime(2026, 10, 24, 12, tzinfo=UTC)
    assert local("30 2 * * *", before, 2) == ["25 02:30 CEST", "26 02:30 CET"]
    between = datetime(2026, 10, 25, 1, 10, tzinfo=UTC)  # 02:10 for the second time
    assert local("30 2 * * *", between, 1) == ["26 02:30 CET"]


def test_an_hourly_line_is_due_in_both_of_two_equal_hours() -> None:
    before = datetime(2026, 10, 25, 0, tzinfo=UTC)
    assert local("30 * * * *", before) == ["25 02:30 CEST", "25 02:30 CET", "25 03:30 CET"]


def test_a_line_with_a_wildcard_hour_or_minute_follows_the_clock() -> None:
    before = datetime(2026, 3, 28, 12, tzinfo=UTC)
    assert local("*/30 2 * * *", before, 2) == ["30 02:00 CEST", "30 02:30 CEST"]
    before = datetime(2026, 10, 24, 12, tzinfo=UTC)
    twice = ["25 02:00 CEST", "25 02:30 CEST", "25 02:00 CET", "25 02:30 CET"]
    assert local("*/30 2 * * *", before, 4) == twice


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("61 * * * *", "its minute is not valid"),
        ("0 24 * * *", "its hour is not valid"),
        ("0 0 30 2 *", "its day-of-month is not valid"),
        ("0 0 * 13 *", "its month is not valid"),
        ("0 0 * * 9", "its day-of-week is not valid"),
        ("0 22 * *", "it needs five fields: minute, hour, day of the month, month and day of the week"),
        ("@reboot", "it needs five fields"),
        ("* * * * * *", "it needs five fields"),  # seconds
        ("", "it needs five fields"),
        ("0 22 * * * rm -rf /", "it needs five fields"),
        ("٣ 22 * * *", "its minute is not valid"),
    ],
)
def test_what_cannot_be_read_is_refused_by_the_field(line: str, why: str) -> None:
    with pytest.raises(Refusal, match=why) as refused:
        checked_line(line)
    assert refused.value.code == "cron_refused"


def test_a_line_is_kept_with_single_spaces() -> None:
    assert checked_line("  0   22 * *  1-5 ") == "0 22 * * 1-5"


def test_it_says_itself_in_words() -> None:
    assert in_words("0 22 * * 1-5") == "At 22:00 on Monday through Friday"


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("0 3 13 * 5", "At 03:00 on the 13th day of every month, and also on every Friday"),
        ("0 3 13 6 5", "At 03:00 on June 13, and also on every Friday in June"),
        (
            "0 3 1,15 * MON,FRI",
            "At 03:00 on the first and the 15th day of the month, and also on every Monday and Friday",
        ),
        ("0 3 13 * 1-5", "At 03:00 on the 13th day of every month, and also on Monday through Friday"),
        ("0 3 L * 5#1", "At 03:00 on the last day of every month, and also on the first Friday of the month"),
        ("0 3 */2 * 5", "At 03:00 on every second day of the month if it is Friday"),
        ("0 3 13 * *", "At 03:00 on the 13th day of every month"),
    ],
)
def test_days_of_the_month_and_of_the_week_are_joined_as_cron_joins_them(line: str, words: str) -> None:
    assert in_words(line) == words


@pytest.mark.parametrize("line", ["* * * * *", "*/7 3 * * *", "0 3 13 * 5", "30 2 * * *", "0 0 30 2 1"])
@pytest.mark.parametrize(
    ("start", "hours"),
    [
        (datetime(2026, 11, 18, 12, 0, 30, tzinfo=UTC), 60),
        (datetime(2026, 11, 17, 23, 0, tzinfo=UTC), 24),  # a day in Berlin
        (datetime(2026, 10, 24, 22, 0, tzinfo=UTC), 25),  # clocks are set back
        (datetime(2026, 10, 25, 1, 30, tzinfo=UTC), 3),  # from 02:30, the second of two
        (datetime(2026, 3, 28, 23, 0, tzinfo=UTC), 23),  # and forward
    ],
)
def test_due_times_are_counted_as_they_are_listed(line: str, start: datetime, hours: int) -> None:
    end = start + timedelta(hours=hours)
    listed = takewhile(lambda due: due < end, due_times(line, BERLIN, start - timedelta(microseconds=1)))
    assert count_of_line(line, BERLIN, start, end) == sum(1 for _ in listed)


def test_due_times_are_counted_where_the_hour_before_midnight_is_repeated() -> None:
    beirut, midnight = ZoneInfo("Asia/Beirut"), datetime(2026, 10, 24, 22, tzinfo=UTC)
    assert count_of_line("* * * * *", beirut, midnight - timedelta(hours=2), midnight) == 120
    assert count_of_line("* * * * *", beirut, midnight, midnight + timedelta(hours=24)) == 1440


@pytest.mark.parametrize(
    ("line", "zone", "day", "local"),
    [
        ("28 */15 * * *", "Australia/Lord_Howe", date(2026, 4, 5), ["00:28", "15:28"]),  # back by half an hour
        ("15 */12 * * *", "Australia/Lord_Howe", date(2026, 10, 4), ["00:15", "12:15"]),  # forward by half an hour
        ("45 * * * *", "Australia/Lord_Howe", date(2026, 4, 5), ["00:45", "01:45", "01:45", "02:45"]),
        ("*/30 0 8 3 *", "America/Havana", date(2026, 3, 8), []),  # 00:00 to 01:00 does not exist
        ("*/30 0,1 8 3 *", "America/Havana", date(2026, 3, 8), ["01:00", "01:30"]),
        ("20-20/7 */8 * * *", "UTC", date(2026, 3, 8), ["00:20", "08:20", "16:20"]),
    ],
)
def test_a_line_with_a_wildcard_is_due_whenever_the_clock_shows_it(
    line: str, zone: str, day: date, local: list[str]
) -> None:
    place = ZoneInfo(zone)
    start = datetime.combine(day - timedelta(days=1), time(12), place)
    dues = takewhile(lambda due: due.date() <= day, (due.astimezone(place) for due in due_times(line, place, start)))
    assert [f"{due:%H:%M}" for due in dues if due.date() == day][:4] == local


def test_a_time_in_a_gap_before_midnight_is_counted_on_the_next_day() -> None:
    zone = ZoneInfo("America/Nuuk")  # 23:00 to 24:00 does not exist on 25 March 2028
    start, end = (datetime(2028, 3, day, tzinfo=zone) for day in (26, 27))
    assert count_of_line("7,31 23 * * *", zone, start, end) == 3
