"""The form of a schedule: what it begins with, what it refuses, what its preview says."""

import re
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from webapp.core.models import User
from webapp.hosts.models import Target
from webapp.plans.models import PlanVersion
from webapp.schedules.models import Schedule, Trigger
from webapp.schedules.services import delete_schedule
from webapp.tests.factories.hosts import a_host, storage1_drive, storage1_scratch
from webapp.tests.factories.plans import first_look
from webapp.tests.factories.results import finish_run
from webapp.tests.factories.runs import first_look_run
from webapp.tests.factories.schedules import a_group, a_schedule
from webapp.tests.pages import without_line_breaks


@pytest.fixture
def olga(operator: Client) -> User:
    return User.objects.get(username="olga")


@pytest.fixture
def target(db: None) -> Target:
    return storage1_scratch(a_host("storage1"))


@pytest.fixture
def typed(target: Target) -> dict[str, Any]:
    """A form that is complete."""
    return {
        "name": "nightly", "version": first_look().pk, "on": "targets", "target": [str(target.pk)],
        "trigger": "cron", "cron": "0 22 * * *", "time_zone": "Europe/Berlin", "start_within": "90",
        "start_unit": "min", "deadline": "", "deadline_unit": "h", "at_deadline": "notify", "overlap": "wait",
        "priority": "1", "note": "Ask first.",
    }  # fmt: skip


def previewed(client: Client, typed: dict[str, Any]) -> dict[str, Any]:
    response = client.post("/schedules/preview/", typed)
    assert response.status_code == 200
    answer: dict[str, Any] = response.json()
    return answer | {"html": without_line_breaks(answer["html"])}


def problems(client: Client, typed: dict[str, Any]) -> dict[str, str]:
    return {one["place"]: one["message"] for one in previewed(client, typed)["problems"]}


def test_it_saves_what_was_typed(operator: Client, typed: dict[str, Any], target: Target) -> None:
    days = {"windowed": "on", "window_opens": "21:00", "window_closes": "06:00", "window_days": ["0", "4"]}
    limits = {"deadline": "2", "at_deadline": "cancel"}
    response = operator.post("/schedules/new/", typed | days | limits)
    saved = Schedule.objects.get()
    assert response.headers["Location"] == f"/schedules/{saved.pk}/"
    assert (saved.name, saved.cron, saved.time_zone, saved.trigger) == (
        "nightly", "0 22 * * *", "Europe/Berlin", Trigger.CRON,
    )  # fmt: skip
    assert list(saved.targets.all()) == [target]
    assert (saved.start_within_s, saved.deadline_s, saved.at_deadline) == (5400, 7200, "cancel")
    assert (saved.overlap, saved.priority, saved.note) == ("wait", 1, "Ask first.")
    assert (saved.window_days, str(saved.window_opens), str(saved.window_closes)) == ([0, 4], "21:00:00", "06:00:00")


def test_the_page_of_a_plan_leads_to_it_with_version_and_targets(
    operator: Client, target: Target, typed: dict[str, Any]
) -> None:
    page = operator.get(f"/plans/first-look/?target={target.pk}").content.decode()
    assert "/schedules/new/?plan=first-look&amp;version=1&amp;target=storage1%2Fscratch" in page
    operator.cookies["timezone"] = "Asia/Tokyo"
    page = operator.get("/schedules/new/?plan=first-look&version=1&target=storage1/scratch").content.decode()
    assert f'value="{target.pk}" checked' in page
    assert 'value="Asia/Tokyo"' in page
    assert (
        'id="schedule-problems" role="alert" tabindex="-1" hidden' in page
    )  # nobody has typed yet: nothing can be wrong
    assert operator.get("/schedules/new/?plan=nothing").status_code == 404


def test_a_refused_form_keeps_what_was_typed(operator: Client, typed: dict[str, Any], target: Target) -> None:
    response = operator.post("/schedules/new/", typed | {"cron": "61 22 * * *", "name": "", "note": "Keep this."})
    assert response.status_code == 422
    page = response.content.decode()
    for kept in ('value="61 22 * * *"', "Keep this.", f'value="{target.pk}" checked', 'value="90"'):
        assert kept in page
    assert '<option value="1" selected>High</option>' in page
    assert "Correct 2 fields." in page
    assert not Schedule.objects.exists()


@pytest.mark.parametrize(
    ("changes", "place", "words"),
    [
        ({"name": " "}, "name", "A schedule needs a name"),
        ({"version": ""}, "version", "Choose a plan."),
        ({"target": []}, "on", "Choose at least one target"),
        ({"on": "group"}, "on", "Choose at least one target"),
        ({"cron": "0 22 * *"}, "cron", "it needs five fields"),
        ({"cron": "0 0 30 2 *"}, "cron", "cannot be used"),
        ({"time_zone": "Berlin"}, "time_zone", "is not a time zone"),
        ({"trigger": "once"}, "once", "Enter a date"),
        ({"trigger": "once", "once_date": "2020-01-01", "once_time": "10:00"}, "once", "has passed"),
        ({"trigger": "once", "once_date": "2027-03-28", "once_time": "02:30"}, "once", "does not exist on 2027-03-28"),
        ({"trigger": "once", "once_date": "9999-12-31", "once_time": "23:30"}, "once", "Choose a"),
        ({"trigger": "after_schedule"}, "after_schedule", "Choose the schedule"),
        ({"trigger": "after_run", "after_run": "7"}, "after_run", "not one of the available choices"),
        ({"windowed": "on", "window_opens": "21:00"}, "window", "Enter when the window closes."),
        ({"windowed": "on", "window_opens": "21:00", "window_closes": "22:00"}, "window", "choose at least one day"),
        (
            {"windowed": "on", "window_opens": "02:00", "window_closes": "03:00", "window_days": ["0"]},
            "window", "does not open between any due time",
        ),
        ({"start_within": "31", "start_unit": "h", "deadline": "30"}, "deadline", "must not be shorter"),
        ({"start_within": ""}, "start_within", "Enter the latest start."),
        ({"start_within": "1000", "start_unit": "h"}, "start_within", "must be 1 minute to 30 days"),
        ({"deadline": "1000"}, "deadline", "must be 1 minute to 30 days"),
        ({"deadline": "soon"}, "deadline", "Enter a whole number."),
        ({"deadline": "0"}, "deadline", "leave the field empty for no deadline"),
        ({"note": "x" * 501}, "note", "the maximum is 500"),
    ],
)  # fmt: skip
def test_every_refusal_stands_beside_its_field(
    operator: Client, typed: dict[str, Any], changes: dict[str, Any], place: str, words: str
) -> None:
    found = problems(operator, typed | changes)
    assert list(found) == [place]
    assert words in found[place]
    assert operator.post("/schedules/new/", typed | changes).status_code == 422
    assert not Schedule.objects.exists()


def test_all_refusals_are_said_at_once(operator: Client, typed: dict[str, Any]) -> None:
    wrong = {"name": "", "target": [], "cron": "x", "time_zone": "Berlin", "deadline": "1000", "note": "x" * 501}
    assert set(problems(operator, typed | wrong)) == {"name", "on", "cron", "time_zone", "deadline", "note"}


def test_a_plan_that_was_deleted_is_refused(operator: Client, typed: dict[str, Any]) -> None:
    plan = PlanVersion.objects.get().plan
    plan.deleted_at = timezone.now()
    plan.save()
    assert list(problems(operator, typed)) == ["version"]


def test_the_preview_shows_the_next_dates_in_both_time_zones(operator: Client, typed: dict[str, Any]) -> None:
    operator.cookies["timezone"] = "Asia/Tokyo"
    html = previewed(operator, typed)["html"]
    assert "At 22:00 every day (Europe/Berlin)" in html
    assert "Due (Asia/Tokyo)" in html
    assert "Schedule time (Europe/Berlin)" in html
    assert html.count("<tr><td>") == 5
    assert "Schedule time (" not in previewed(operator, typed | {"time_zone": "Asia/Tokyo"})["html"]


def test_the_preview_says_how_each_rule_behaves(operator: Client, typed: dict[str, Any]) -> None:
    html = previewed(operator, typed)["html"]
    assert "90 min after the due time." in html
    assert "The new run starts after it ends, if that is before the latest start." in html
    assert "02:30 becomes 03:00" in html
    assert "only the latest is started" in html
    assert "before waiting runs of normal and low priority" in html
    html = previewed(operator, typed | {"time_zone": "UTC"})["html"]
    assert "02:30" not in html  # its clocks are never changed
    html = previewed(operator, typed | {"trigger": "once", "once_date": "2027-05-01", "once_time": "10:00"})["html"]
    assert "Once at 2027-05-01 10:00 (Europe/Berlin)" in html
    assert "only the latest is started" not in html


def test_the_preview_says_what_the_window_does_to_each_date(operator: Client, typed: dict[str, Any]) -> None:
    """Five consecutive dates are shown. Whatever the day is, some of them are on these days, and some are not."""
    window = {"windowed": "on", "window_opens": "23:00", "window_closes": "06:00", "window_days": ["0", "2", "4"]}
    html = previewed(operator, typed | window | {"start_within": "2", "start_unit": "h"})["html"]
    assert "23:00 to 06:00, Mon, Wed, Fri (Europe/Berlin)" in html
    assert "Outside the window: waits until it opens" in html
    assert "Missed: the window opens after the latest start." in html
    assert "A trial under way goes on to its end" in html.replace("\n", " ")


def test_a_time_that_exists_twice_is_the_first_one(operator: Client, typed: dict[str, Any]) -> None:
    once = {"trigger": "once", "once_date": "2027-10-31", "once_time": "02:30"}
    operator.post("/schedules/new/", typed | once)
    assert Schedule.objects.get().once_at == datetime(2027, 10, 31, 0, 30, tzinfo=UTC)


def test_the_preview_names_the_drives_that_would_be_overwritten(operator: Client, typed: dict[str, Any]) -> None:
    drive = storage1_drive(a_host("storage9"))
    html = previewed(operator, typed | {"target": [str(drive.pk)]})["html"]
    assert "Its runs overwrite drives" in html
    assert drive.serial in html
    page = operator.post("/schedules/new/", typed | {"target": [str(drive.pk)]}, follow=True).content.decode()
    assert "is saved, but switched off: it overwrites drives. Arm it, then switch it on." in page
    assert not Schedule.objects.get().enabled


def test_targets_of_a_host_that_is_away_are_offered(operator: Client, typed: dict[str, Any]) -> None:
    host = a_host("away", last_seen_at=timezone.now() - timedelta(days=2), state="maintenance")
    storage1_scratch(host, present=False)
    storage1_scratch(a_host("gone", state="revoked"))
    page = operator.get("/schedules/new/").content.decode()
    assert "away/scratch" in page
    assert "not present" in page
    assert "gone/scratch" not in page


def test_a_host_group_is_taken_one_host_after_another(operator: Client, typed: dict[str, Any], target: Target) -> None:
    group = a_group(target, storage1_scratch(a_host("storage2")))
    chosen = {"on": "group", "group": group.pk, "group_order": "one_by_one"}
    html = previewed(operator, typed | chosen)["html"]
    assert "The next one starts when the run before has ended or was missed." in html
    operator.post("/schedules/new/", typed | chosen)
    saved = Schedule.objects.get()
    assert (saved.group, saved.group_order, saved.targets.count()) == (group, "one_by_one", 0)


def test_it_may_follow_a_schedule_or_an_open_run(
    operator: Client, typed: dict[str, Any], olga: User, target: Target
) -> None:
    before = a_schedule(olga, name="fill", version=PlanVersion.objects.get(), targets=[target])
    run = first_look_run(PlanVersion.objects.get(), [target], repeats=1)
    page = operator.get("/schedules/new/").content.decode()
    assert "Run 1, First look, running" in page
    follows = {"trigger": "after_schedule", "after_schedule": before.pk, "condition": "any"}
    assert "After each run of schedule “fill”, with any result" in previewed(operator, typed | follows)["html"]
    operator.post("/schedules/new/", typed | {"trigger": "after_run", "after_run": run.number, "condition": "done"})
    saved = Schedule.objects.get(name="nightly")
    assert (saved.after_run, saved.condition) == (run, "done")


def test_editing_shows_what_is_saved_and_offers_the_newest_version(
    operator: Client, typed: dict[str, Any], olga: User, target: Target
) -> None:
    old = PlanVersion.objects.get()
    schedule = a_schedule(olga, version=old, targets=[target], start_within_s=90, deadline_s=3600)
    newest = first_look()
    page = operator.get(f"/schedules/{schedule.pk}/edit/").content.decode()
    assert "First look, version 1" in page
    assert "Use version 2, the newest" in page
    assert '<option value="0" selected>Normal</option>' in page
    assert '<option value="s" selected>seconds</option>' in page
    assert 'value="nightly"' in page
    operator.post(f"/schedules/{schedule.pk}/edit/", typed | {"version": newest.pk, "name": "later"})
    schedule.refresh_from_db()
    assert (schedule.version, schedule.name, schedule.start_within_s) == (newest, "later", 5400)


def test_editing_another_field_keeps_a_time_that_the_form_cannot_show(
    operator: Client, typed: dict[str, Any], olga: User, target: Target
) -> None:
    second = datetime(2027, 10, 31, 1, 30, 30, tzinfo=UTC)  # the second 02:30 of that night in Berlin
    schedule = a_schedule(
        olga, version=PlanVersion.objects.get(), targets=[target], trigger=Trigger.ONCE, once_at=second
    )
    once = {"trigger": "once", "once_date": "2027-10-31", "once_time": "02:30", "name": "renamed"}
    operator.post(f"/schedules/{schedule.pk}/edit/", typed | once)
    schedule.refresh_from_db()
    assert (schedule.name, schedule.once_at) == ("renamed", second)
    operator.post(f"/schedules/{schedule.pk}/edit/", typed | once | {"once_time": "02:31"})
    schedule.refresh_from_db()
    assert schedule.once_at == datetime(2027, 10, 31, 0, 31, tzinfo=UTC)


def test_a_form_that_another_person_overtook_is_not_saved_over_their_change(
    operator: Client, admin: Client, typed: dict[str, Any], olga: User, target: Target
) -> None:
    schedule = a_schedule(olga, version=PlanVersion.objects.get(), targets=[target])
    address = f"/schedules/{schedule.pk}/edit/"
    first, second = base_in(operator.get(address)), base_in(admin.get(address))
    assert first == second
    assert admin.post(address, typed | {"base": second, "cron": "0 5 * * 1"}).status_code == 302
    answer = operator.post(address, typed | {"base": first, "name": "renamed"})
    assert answer.status_code == 422
    assert "another person changed this schedule" in answer.content.decode()
    assert 'value="renamed"' in answer.content.decode()
    schedule.refresh_from_db()
    assert (schedule.name, schedule.cron) == ("nightly", "0 5 * * 1")
    assert operator.post(address, typed | {"base": base_in(answer), "name": "renamed"}).status_code == 302
    schedule.refresh_from_db()
    assert (schedule.name, schedule.cron) == ("renamed", "0 22 * * *")


def base_in(answer: Any) -> str:
    found = re.search(r'name="base" value="(\w+)"', answer.content.decode())
    assert found is not None
    return found[1]


def test_a_schedule_does_not_follow_itself(operator: Client, typed: dict[str, Any], olga: User, target: Target) -> None:
    schedule = a_schedule(olga, version=PlanVersion.objects.get(), targets=[target])
    second = a_schedule(
        olga, name="second", version=PlanVersion.objects.get(), targets=[target], trigger=Trigger.AFTER_SCHEDULE,
        after_schedule=schedule,
    )  # fmt: skip
    circle = typed | {"trigger": "after_schedule", "after_schedule": second.pk, "schedule": schedule.pk}
    assert "would start each other forever" in problems(operator, circle)["after_schedule"]


def test_a_deleted_schedule_is_not_edited(operator: Client, olga: User, target: Target) -> None:
    schedule = a_schedule(olga, version=first_look(), targets=[target])
    delete_schedule(schedule=schedule, by=olga)
    assert operator.get(f"/schedules/{schedule.pk}/edit/").status_code == 404


def test_without_script_a_button_shows_the_preview(operator: Client, typed: dict[str, Any]) -> None:
    response = operator.post("/schedules/new/", typed | {"do": "preview", "cron": "15 3 * * *"})
    assert response.status_code == 200
    assert "At 03:15 every day (Europe/Berlin)" in response.content.decode()
    assert not Schedule.objects.exists()


def test_a_viewer_sees_the_form_and_its_preview_but_saves_nothing(viewer: Client, typed: dict[str, Any]) -> None:
    page = viewer.get("/schedules/new/").content.decode()
    assert "Only operators can save schedules." in page
    assert previewed(viewer, typed)["problems"] == []
    assert viewer.post("/schedules/new/", typed).status_code == 403
    assert not Schedule.objects.exists()


def test_the_preview_says_what_a_run_costs_and_that_it_is_due_too_often(
    operator: Client, typed: dict[str, Any], target: Target
) -> None:
    html = previewed(operator, typed)["html"]
    assert "written at most" in html
    assert "runs are due" not in html
    html = previewed(operator, typed | {"cron": "*/2 * * * *", "overlap": "skip"})["html"]
    assert "A run takes about" in html
    assert "but runs are due every 2 min. A run that is due while an earlier one is going is missed." in html
    html = previewed(operator, typed | {"cron": "0,1 5 * * *"})["html"]
    assert "but some runs are due only 1 min apart" in html
    html = previewed(operator, typed | {"target": []})["html"]
    assert "written at most" not in html
    assert "Choose a plan and targets to see how long a run takes" in html


@pytest.mark.parametrize(
    "changes",
    [
        {"deadline": "0"},
        {"deadline": "30", "deadline_unit": "min"},
        {"start_within": ""},
        {"windowed": "on", "window_opens": "22:00"},
        {"cron": "x"},
        {"on": "group"},
        {"priority": "x"},
    ],
)
def test_the_preview_says_nothing_that_depends_on_a_refused_field(
    operator: Client, typed: dict[str, Any], changes: dict[str, Any]
) -> None:
    html = previewed(operator, typed | changes)["html"]
    assert "Correct the marked fields to see the preview." in html
    assert "after the due time" not in html
    assert "The run may take as long as it needs." not in html


def test_the_preview_shows_what_does_not_depend_on_a_refused_field(operator: Client, typed: dict[str, Any]) -> None:
    html = previewed(operator, typed | {"name": ""})["html"]
    assert "90 min after the due time." in html
    html = previewed(operator, typed | {"windowed": "on", "window_opens": "22:00"})["html"]
    assert html.count("<tr><td>") == 5
    assert "Correct the window and the latest start to see which of these times they allow." in html


def test_a_schedule_after_a_run_says_that_no_run_is_open(
    operator: Client, typed: dict[str, Any], olga: User, target: Target
) -> None:
    hint = "No run is open, so there is no run to choose."
    assert hint in operator.get("/schedules/new/").content.decode()
    run = first_look_run(PlanVersion.objects.get(), [target], repeats=1)
    assert hint not in operator.get("/schedules/new/").content.decode()
    schedule = a_schedule(
        olga,
        name="after",
        version=PlanVersion.objects.get(),
        targets=[target],
        trigger=Trigger.AFTER_RUN,
        after_run=run,
    )
    finish_run(run)
    kept = typed | {"trigger": "after_run", "after_run": run.number, "schedule": schedule.pk}
    assert problems(operator, kept) == {}


def test_a_refused_form_is_unsaved_and_its_summary_takes_the_focus(operator: Client, typed: dict[str, Any]) -> None:
    page = operator.post("/schedules/new/", typed | {"name": ""}).content.decode()
    assert 'role="alert" tabindex="-1" autofocus>' in page
    assert "data-unsaved" in page
    assert page.count(">Save schedule</button>") == 2
    assert "data-unsaved" not in operator.get("/schedules/new/").content.decode()
