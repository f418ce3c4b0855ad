"""The calendar of schedules, and what other pages say about schedules."""

from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo

import pytest
import time_machine
from django.test import Client
from django.utils import timezone

from webapp.core.models import User
from webapp.hosts.maintenance_windows import add_single_window, add_weekly_window
from webapp.plans.models import PlanVersion
from webapp.results.models import known
from webapp.runs.models import Run
from webapp.runs.reasons import AT_DEADLINE, WINDOW_CLOSED
from webapp.runs.services import cancel_run
from webapp.schedules.models import Occurrence, Schedule
from webapp.schedules.reasons import timed
from webapp.schedules.services import make_due
from webapp.screens.schedules import calendar_view
from webapp.screens.schedules.calendar_view import SHOWN_A_DAY, month_days, one_day
from webapp.screens.schedules.trend import trend
from webapp.screens.tests.schedule_pages import ended, missed, page_of
from webapp.tests.factories.hosts import a_drive, a_host, storage1_scratch
from webapp.tests.factories.plans import first_look
from webapp.tests.factories.runs import first_look_run
from webapp.tests.factories.schedules import a_group, a_schedule

NOW = datetime(2026, 11, 18, 12, 0, tzinfo=UTC)  # a Wednesday


@pytest.fixture
def now() -> Iterator[datetime]:
    with time_machine.travel(NOW, tick=False):
        yield NOW


@pytest.fixture
def olga(now: datetime, operator: Client) -> User:
    return User.objects.get(username="olga")


@pytest.fixture
def version(db: None) -> PlanVersion:
    return first_look()


@pytest.fixture
def nightly(olga: User, version: PlanVersion) -> Schedule:
    return a_schedule(olga, version=version, targets=[storage1_scratch(a_host("storage1"))])


def hourly(olga: User, version: PlanVersion, cron: str = "0 * * * *") -> Schedule:
    target = storage1_scratch(a_host("storage2"))
    return a_schedule(olga, name="hourly", version=version, targets=[target], cron=cron, time_zone="UTC")


def test_weeks_begin_on_monday_and_today_is_marked(operator: Client, nightly: Schedule) -> None:
    page = page_of(operator, "/schedules/calendar/")
    assert "November 2026" in page
    assert page.index('scope="col">Mon') < page.index('scope="col">Sun')
    assert page.count('<span class="calendar-today">Today</span>') == 1
    assert page.count('aria-current="date"') == 1
    assert "?month=2026-10" in page
    assert "?month=2026-12" in page
    month = month_days(2026, 11, timezone.get_current_timezone(), NOW)
    assert {week[0].date.weekday() for week in month.weeks} == {0}


def test_it_shows_what_is_due_what_ran_and_what_was_missed_and_why(operator: Client, nightly: Schedule) -> None:
    run = ended(nightly, 2)
    missed(nightly, 24, "storage1 was away.")
    page = page_of(operator, "/schedules/calendar/?month=2026-11")
    assert f"run {run.number}, done" in page
    assert "Missed in November 2026" in page
    assert "storage1 was away." in page
    assert page.count('<span class="calendar-state">due</span>') == 19  # to the grid's last day, 6 December
    assert "storage1 was away." in page_of(operator, "/schedules/calendar/?day=2026-11-17")


def test_days_are_those_of_the_viewers_time_zone(operator: Client, nightly: Schedule) -> None:
    operator.cookies["timezone"] = "Asia/Tokyo"
    page = page_of(operator, "/schedules/calendar/?day=2026-11-20")
    assert "06:00</time>" in page  # 22:00 in Berlin on the day before
    assert "Times in Asia/Tokyo" in page


def test_an_hourly_schedule_neither_fills_the_day_nor_hides_others(
    operator: Client, nightly: Schedule, olga: User, version: PlanVersion
) -> None:
    hourly(olga, version)
    day = one_day((NOW + timedelta(days=2)).date(), timezone.get_current_timezone(), NOW)
    assert len(day.shown) == SHOWN_A_DAY
    assert "nightly" in [entry.schedule.name for entry in day.shown]
    assert (day.more, day.unlisted) == (19, 0)
    assert "and 19 more" in page_of(operator, "/schedules/calendar/")


def test_a_line_for_every_minute_is_counted_to_a_limit(operator: Client, olga: User, version: PlanVersion) -> None:
    hourly(olga, version, "* * * * *")
    day = one_day((NOW + timedelta(days=2)).date(), timezone.get_current_timezone(), NOW)
    assert (len(day.entries), day.unlisted) == (24, 1416)
    assert "and 1,434 more" in page_of(operator, "/schedules/calendar/")
    page = page_of(operator, "/schedules/calendar/?day=2026-11-20")
    assert "Only the first 24 due times of each schedule are listed" in page
    assert 'href="?day=2026-11-20&amp;list=all#day">and 1,416 more</a>' in page
    listed = page_of(operator, "/schedules/calendar/?day=2026-11-20&list=all")
    assert listed.count('<td class="nowrap">Due</td>') == 1440
    assert "are listed" not in listed


def test_due_times_of_every_minute_are_counted_by_the_viewers_day(
    operator: Client, olga: User, version: PlanVersion
) -> None:
    schedule = hourly(olga, version, "* * * * 1-5")
    Schedule.objects.filter(pk=schedule.pk).update(time_zone="Asia/Tokyo")
    saturday = one_day(date(2026, 11, 21), ZoneInfo("America/New_York"), NOW)  # Saturday and Sunday in Tokyo
    friday = one_day(date(2026, 11, 20), ZoneInfo("America/New_York"), NOW)  # Friday until midnight in Tokyo
    today = one_day(date(2026, 11, 18), ZoneInfo("America/New_York"), NOW)  # from 07:00
    counted = [len(day.entries) + day.unlisted for day in (saturday, friday, today)]
    assert counted == [0, 10 * 60, 17 * 60]


@pytest.mark.parametrize(("day", "hours"), [(date(2027, 10, 30), 25), (date(2027, 10, 31), 24)])
def test_due_times_are_counted_where_the_hour_before_midnight_is_repeated(
    olga: User, version: PlanVersion, day: date, hours: int
) -> None:
    hourly(olga, version, "* * * * *")
    found = one_day(day, ZoneInfo("Asia/Beirut"), NOW)
    assert len(found.entries) + found.unlisted == hours * 60


def test_the_times_of_a_day_are_in_their_order(
    operator: Client, nightly: Schedule, olga: User, version: PlanVersion
) -> None:
    hourly(olga, version)
    for hours in (3, 1, 2):
        missed(nightly, hours)
    day = one_day(NOW.date(), timezone.get_current_timezone(), NOW)
    assert [entry.at for entry in day.entries] == sorted(entry.at for entry in day.entries)
    assert [entry.missed for entry in day.entries[:4]] == [True, True, True, False]


def test_maintenance_windows_of_hosts_are_shown(operator: Client, nightly: Schedule, olga: User) -> None:
    host = nightly.targets.get().host
    add_weekly_window(host=host, days=[5], opens=time(22), closes=time(6), zone="UTC", note="Backups", by=olga)
    starts = datetime(2026, 11, 10, 8, tzinfo=UTC)
    add_single_window(host=host, starts_at=starts, ends_at=NOW + timedelta(days=1), note="", by=olga)
    saturday = one_day(date(2026, 11, 21), timezone.get_current_timezone(), NOW)
    sunday = one_day(date(2026, 11, 22), timezone.get_current_timezone(), NOW)
    assert saturday.maintenance[0].from_start == datetime(2026, 11, 21, 22, tzinfo=UTC)
    assert saturday.maintenance[0].to_end is None
    assert sunday.maintenance[0].to_end == datetime(2026, 11, 22, 6, tzinfo=UTC)
    page = page_of(operator, "/schedules/calendar/?day=2026-11-21")
    assert "Backups" in page
    assert "all day" in page
    assert "is-maintenance" in page


def test_it_says_that_it_shows_only_the_latest_occurrences(
    operator: Client, nightly: Schedule, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "Only the latest" not in page_of(operator, "/schedules/calendar/?day=2026-11-18")
    for module in (calendar_view, calendar_view):
        monkeypatch.setattr(module, "MAX_OCCURRENCES", 2)
    monkeypatch.setattr(calendar_view, "MISSED_SHOWN", 1)
    for hours in (1, 2, 3, 30):
        missed(nightly, hours, f"Reason {hours}.")
    page = page_of(operator, "/schedules/calendar/?day=2026-11-18")
    assert "Only the latest 2 occurrences of these weeks are shown." in page
    assert "Only the latest 2 occurrences of this day are shown." in page
    assert "Open a day to see the other 3." in page
    yesterday = page_of(operator, "/schedules/calendar/?day=2026-11-17")
    assert "Reason 30." in yesterday
    assert "occurrences of this day" not in yesterday


def test_missed_occurrences_are_those_of_the_month_in_the_viewers_time_zone(
    operator: Client, nightly: Schedule
) -> None:
    for due, reason in (
        (datetime(2026, 10, 31, 14, 59, tzinfo=UTC), "October in Tokyo."),
        (datetime(2026, 10, 31, 15, 0, tzinfo=UTC), "November in Tokyo."),
    ):
        missed(nightly, (NOW - due) / timedelta(hours=1), reason)
    operator.cookies["timezone"] = "Asia/Tokyo"
    page = page_of(operator, "/schedules/calendar/?month=2026-11")
    listed = page[page.index('id="missed"') :]
    assert "November in Tokyo." in listed
    assert "October in Tokyo." not in listed


def test_a_day_without_due_times_says_so(operator: Client, nightly: Schedule) -> None:
    assert "No schedule was due on this day." in page_of(operator, "/schedules/calendar/?day=2026-11-17")
    Schedule.objects.update(enabled=False, next_due_at=None)
    assert "No schedule is due on this day." in page_of(operator, "/schedules/calendar/?day=2026-11-18")


def test_it_takes_a_fixed_number_of_queries(
    queries_of: Callable[[str], int], nightly: Schedule, olga: User, version: PlanVersion
) -> None:
    ended(nightly, 1)
    before = queries_of("/schedules/calendar/")
    for days in (2, 3, 4):
        ended(nightly, days)
        missed(nightly, 24 * days + 1)
    hourly(olga, version)
    assert queries_of("/schedules/calendar/") == before


@pytest.mark.parametrize(
    "query", ["month=2026-13", "month=x", "day=2026-02-30", "month=0001-01", "month=9999-12", "month=9996-02"]
)
def test_an_address_that_names_no_month_shows_this_month(operator: Client, nightly: Schedule, query: str) -> None:
    assert "November 2026" in page_of(operator, f"/schedules/calendar/?{query}")


def test_the_trend_has_one_value_a_run_and_a_gap_where_a_run_has_none(operator: Client, nightly: Schedule) -> None:
    runs = [ended(nightly, days) for days in (4, 3, 2, 1)]
    runs[1].results.all().delete()
    found = trend(nightly)
    assert found is not None
    (line,) = found.lines
    assert found.metric == "Bandwidth"  # its largest block is 128 KiB
    assert [value.number is None for value in line.values] == [False, True, False, False]
    assert (len(line.dots), len(line.pieces)) == (1, 1)
    page = page_of(operator, f"/schedules/{nightly.pk}/")
    assert "Trend: Bandwidth" in page
    assert "incomplete" in page
    assert f"from {line.first.text} to {line.last.text}" in page


def test_the_trend_is_in_iops_where_every_block_is_small(nightly: Schedule) -> None:
    run = ended(nightly, 1)
    large = run.trials.filter(point__block_size=131072)
    Run.objects.filter(pk=run.pk).update(trial_count=run.trial_count - large.count())
    run.results.filter(trial__in=large).delete()
    numbers = list(run.results.values_list("iops", flat=True))
    found = trend(nightly)
    assert found is not None
    assert found.metric == "IOPS"
    product = 1.0
    for number in numbers:
        product *= known(number) ** (1 / len(numbers))
    assert found.lines[0].last.number == pytest.approx(product)


def test_results_that_are_marked_as_invalid_are_not_in_the_trend(nightly: Schedule) -> None:
    run = ended(nightly, 1)
    run.results.update(invalid=True)
    assert trend(nightly) is None


def test_the_trend_of_a_group_has_a_line_for_each_host(olga: User, version: PlanVersion) -> None:
    group = a_group(*[storage1_scratch(a_host(f"storage{number}")) for number in (1, 2)])
    schedule = a_schedule(olga, version=version, group=group)
    for position, label in enumerate("AB"):
        ended(schedule, 1, position=position, label=label)
    found = trend(schedule)
    assert found is not None
    assert [line.label for line in found.lines] == ["A", "B"]


def test_the_page_of_a_run_says_which_schedule_started_it(operator: Client, nightly: Schedule) -> None:
    run = ended(nightly, 1)
    page = page_of(operator, f"/runs/{run.number}/")
    assert "Started by schedule" in page
    assert f'href="/schedules/{nightly.pk}/"' in page
    other = first_look_run(nightly.version, list(nightly.targets.all()))
    assert "Started by schedule" not in page_of(operator, f"/runs/{other.number}/")


def test_the_page_of_a_run_that_its_window_paused_says_so(operator: Client, nightly: Schedule) -> None:
    run = first_look_run(nightly.version, list(nightly.targets.all()))
    window = {"window": "22:00 to 06:00, every day (UTC)"}
    words = "The window of its schedule is closed (22:00 to 06:00, every day (UTC))."
    Run.objects.filter(pk=run.pk).update(
        state="paused", paused_at=timezone.now(), pause_code=WINDOW_CLOSED, pause_fields=window
    )
    assert words in page_of(operator, f"/runs/{run.number}/")


def test_the_page_of_a_plan_lists_its_schedules(operator: Client, nightly: Schedule) -> None:
    page = page_of(operator, "/plans/first-look/")
    assert "Schedules of this plan" in page
    assert f'href="/schedules/{nightly.pk}/"' in page
    assert "next due" in page


def test_the_list_of_runs_marks_and_finds_those_of_a_schedule(
    operator: Client, nightly: Schedule, olga: User, version: PlanVersion
) -> None:
    targets = list(nightly.targets.all())
    run, other = ended(nightly, 1), ended(a_schedule(olga, name="other", version=version, targets=targets), 1)
    by_hand = first_look_run(version, targets)
    page = page_of(operator, "/runs/")
    assert f'<span class="badge bg-secondary-lt">Schedule</span> <a href="/schedules/{nightly.pk}/">nightly</a>' in page
    assert page.count(">Schedule</span>") == 2

    def listed(query: str) -> set[int]:
        text = page_of(operator, f"/runs/?{query}")
        return {one.number for one in (run, other, by_hand) if f'href="/runs/{one.number}/"' in text}

    assert listed("") == {run.number, other.number, by_hand.number}
    assert listed(f"schedule={nightly.pk}") == {run.number}
    assert listed("schedule=any") == {run.number, other.number}
    assert listed("schedule=none") == set()
    assert f'<option value="{nightly.pk}" selected>nightly</option>' in page_of(
        operator, f"/runs/?schedule={nightly.pk}"
    )
    items = operator.get(f"/api/v1/runs?schedule={nightly.pk}").json()["items"]
    assert [(one["number"], one["schedule"]) for one in items] == [(run.number, nightly.pk)]
    assert operator.get(f"/api/v1/runs/{by_hand.number}").json()["schedule"] is None


def test_the_queue_says_which_scheduled_runs_wait(operator: Client, nightly: Schedule) -> None:
    assert "scheduled run" not in page_of(operator, "/queue/")
    make_due(schedule=nightly, by=nightly.owner)
    Occurrence.objects.update(reason_code="host_unavailable", reason_fields={"message": "storage1 is away."})
    page = page_of(operator, "/queue/")
    waiting = page[page.index('<div id="queue">') :]
    assert "1 scheduled run is waiting" in waiting
    assert f'<a href="/schedules/{nightly.pk}/">nightly</a>' in waiting
    assert "storage1 is away." in waiting
    assert "No run is active or waiting." not in waiting


def test_the_page_of_a_cancelled_run_says_why_without_a_code(operator: Client, nightly: Schedule, olga: User) -> None:
    run = first_look_run(nightly.version, list(nightly.targets.all()))
    why = timed(AT_DEADLINE, nightly, schedule=nightly.name, deadline=timezone.now())
    cancel_run(run=run, by=None, code=why.code, fields=why.fields)
    page = page_of(operator, f"/runs/{run.number}/")
    assert "cancelled the run at its deadline, " in page
    assert "<code>cancelled" not in page


def test_the_page_of_a_plan_has_one_way_to_schedule_it(operator: Client, nightly: Schedule) -> None:
    target = nightly.targets.get()
    assert page_of(operator, f"/plans/first-look/?target={target.pk}").count("Schedule…</a>") == 1


def test_the_overview_says_what_is_due_next_and_what_was_missed(
    operator: Client, nightly: Schedule, olga: User, version: PlanVersion
) -> None:
    for hours in (1, 2, 3, 4, 5, 6, 24 * 8):
        missed(nightly, hours, f"Reason {hours}.")
    hourly(olga, version, "0 */8 * * *")
    page = page_of(operator, "/")
    due_next = page[page.index('id="next"') :].partition("</section>")[0]
    assert due_next.index("hourly") < due_next.index("nightly")
    assert "storage1/scratch" in due_next
    assert "missed" in page.partition("<h1")[2].partition("</h1>")[0]
    assert "Reason 192." not in page


def test_the_overview_without_schedules_says_that_nothing_comes(operator: Client, version: PlanVersion) -> None:
    a_drive(a_host("a"))
    assert "The queue is empty." in page_of(operator, "/")


def test_the_page_of_a_person_says_where_their_schedules_go(admin: Client, nightly: Schedule, olga: User) -> None:
    page = page_of(admin, f"/people/{olga.pk}/")
    assert "1 owned" in page
    assert page.count("You become the owner of 1 schedule. It is switched off and disarmed") == 3
    admin.post(f"/people/{olga.pk}/deactivate/")
    nightly.refresh_from_db()
    assert (nightly.owner.username, nightly.enabled) == ("anna", False)
    assert "become the owner" not in page_of(admin, f"/people/{olga.pk}/")
    assert "Its owner olga may no longer run it." in page_of(admin, "/schedules/")


def test_an_occurrence_whose_run_was_deleted_is_shown(operator: Client, nightly: Schedule) -> None:
    ended(nightly, 1)
    Occurrence.objects.update(run=None)
    assert "Its run was deleted." in page_of(operator, f"/schedules/{nightly.pk}/")
