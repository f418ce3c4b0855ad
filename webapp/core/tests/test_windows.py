"""Weekly windows: days, midnight, and the nights on which clocks are set."""

from datetime import UTC, datetime, time
from zoneinfo import ZoneInfo

import pytest

from webapp.core.errors import Refusal
from webapp.core.windows import EVERY_DAY, Span, WeeklyWindow, time_zone, weekly_window
from webapp.tests.refusals import refuses

BERLIN = ZoneInfo("Europe/Berlin")
NIGHT = WeeklyWindow(EVERY_DAY, time(22), time(6), BERLIN)


def utc(day: int, hour: int, minute: int = 0, month: int = 3) -> datetime:
    return datetime(2026, month, day, hour, minute, tzinfo=UTC)


def test_a_window_over_midnight_is_open_on_both_sides_of_it() -> None:
    span = Span(utc(10, 21), utc(11, 5))
    assert NIGHT.span_at(utc(10, 21)) == NIGHT.span_at(utc(11, 4, 59)) == span
    assert NIGHT.span_at(utc(11, 5)) is None
    assert NIGHT.span_at(utc(10, 20, 59)) is None
    assert NIGHT.next_span(utc(10, 12)) == span
    assert NIGHT.next_span(utc(10, 21)) == Span(utc(11, 21), utc(12, 5))


def test_it_opens_on_its_days_only() -> None:
    weekend = WeeklyWindow((5,), time(20), time(4), BERLIN)  # Saturday evening into Sunday
    assert weekend.next_span(utc(9, 12)) == Span(utc(14, 19), utc(15, 3))
    assert weekend.span_at(utc(13, 20)) is None


def test_equal_times_mean_a_whole_day() -> None:
    sunday = WeeklyWindow((6,), time(8), time(8), BERLIN)
    assert sunday.next_span(utc(9, 12)) == Span(utc(15, 7), utc(16, 7))


@pytest.mark.parametrize(
    ("day", "month", "hours"),
    [(28, 3, 7.0), (24, 10, 9.0), (10, 3, 8.0)],  # night with one hour less, with one hour more, any other
)
def test_a_night_on_which_clocks_are_set_has_its_real_length(day: int, month: int, hours: float) -> None:
    span = NIGHT.next_span(utc(day, 12, month=month))
    assert span is not None
    assert (span.closes - span.opens).total_seconds() == hours * 3600


def test_a_time_that_does_not_exist_counts_as_the_end_of_the_gap() -> None:
    window = WeeklyWindow(EVERY_DAY, time(2, 30), time(3, 30), BERLIN)  # on 29 March 02:00 is followed by 03:00
    assert window.span_at(utc(29, 0, 59)) is None
    assert window.span_at(utc(29, 1)) == Span(utc(29, 1), utc(29, 1, 30))


def test_a_window_that_lies_within_the_gap_does_not_open_that_day() -> None:
    window = WeeklyWindow(EVERY_DAY, time(2, 15), time(2, 45), BERLIN)
    assert window.next_span(utc(28, 12)) == Span(utc(30, 0, 15), utc(30, 0, 45))


def test_a_time_that_exists_twice_opens_at_the_first_and_closes_at_the_second() -> None:
    window = WeeklyWindow(EVERY_DAY, time(2, 15), time(2, 45), BERLIN)  # on 25 October 03:00 is followed by 02:00
    assert window.span_at(utc(25, 0, 20, month=10)) == Span(utc(25, 0, 15, month=10), utc(25, 1, 45, month=10))


def test_gaps_of_half_an_hour_are_kept_too() -> None:
    lord_howe = WeeklyWindow(EVERY_DAY, time(2, 10), time(4), ZoneInfo("Australia/Lord_Howe"))
    span = lord_howe.next_span(datetime(2026, 10, 3, 3, tzinfo=UTC))
    assert span == Span(datetime(2026, 10, 3, 15, 30, tzinfo=UTC), datetime(2026, 10, 3, 17, tzinfo=UTC))


def test_what_never_opens_is_refused() -> None:
    with pytest.raises(Refusal, match="never opens"):
        weekly_window((), time(22), time(6), BERLIN)
    with pytest.raises(Refusal, match="from 0"):
        weekly_window((7,), time(22), time(6), BERLIN)


def test_a_time_zone_is_known_by_its_name() -> None:
    assert time_zone("Europe/Berlin") == BERLIN
    for name in ("Berlin", "", "../etc/passwd", "Europe/berlin"):
        with refuses("time_zone_refused"):
            time_zone(name)


def test_it_says_itself_in_words() -> None:
    assert str(NIGHT) == "22:00 to 06:00, every day (Europe/Berlin)"
    assert str(WeeklyWindow((0, 2), time(1), time(2), BERLIN)) == "01:00 to 02:00, Mon, Wed (Europe/Berlin)"
