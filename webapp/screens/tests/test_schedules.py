"""The list of schedules and the page of one: what they show, and what people do there."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.test import Client
from django.utils import timezone

from webapp.core.errors import Refusal
from webapp.core.models import User
from webapp.plans.models import PlanVersion
from webapp.plans.services import delete_plan
from webapp.runs.models import Run
from webapp.schedules.models import GroupOrder, Occurrence, Schedule, Trigger
from webapp.schedules.selectors import group_targets
from webapp.schedules.services import delete_schedule, make_due, switch_off, switch_on
from webapp.screens.schedules.cost import run_cost
from webapp.tests.factories.hosts import a_host, storage1_drive, storage1_scratch
from webapp.tests.factories.people import a_user
from webapp.tests.factories.plans import first_look
from webapp.tests.factories.results import finish_run
from webapp.tests.factories.runs import first_look_run
from webapp.tests.factories.schedules import a_group, a_schedule

SERIAL = "S64GNE0R800123"


@pytest.fixture
def olga(operator: Client) -> User:
    return User.objects.get(username="olga")


@pytest.fixture
def version(db: None) -> PlanVersion:
    return first_look()


@pytest.fixture
def nightly(olga: User, version: PlanVersion) -> Schedule:
    return a_schedule(olga, version=version, targets=[storage1_scratch(a_host("storage1"))])


@pytest.fixture
def overwriting(olga: User) -> Schedule:
    drive = storage1_drive(a_host("storage9"))
    version = first_look(slug="overwrites")
    return a_schedule(olga, name="overwrite", version=version, targets=[drive])


def ended(schedule: Schedule, days_ago: int, *, position: int = 0, label: str = "") -> Run:
    """A due time whose run is done."""
    due = timezone.now() - timedelta(days=days_ago)
    target = schedule.targets.first() or storage1_scratch(a_host(f"storage{uuid4().hex[:6]}"))
    run = first_look_run(schedule.version, [target], by=schedule.owner, repeats=1, started_at=due, label=label)
    finish_run(run)
    Occurrence.objects.create(schedule=schedule, due_at=due, position=position, state="ended", run=run, finished_at=due)
    return run


def missed(schedule: Schedule, hours_ago: float, reason: str = "storage1 was away.") -> Occurrence:
    due = timezone.now() - timedelta(hours=hours_ago)
    return Occurrence.objects.create(
        schedule=schedule,
        due_at=due,
        state="missed",
        reason_code="host_unavailable",
        reason_fields={"message": reason},
        finished_at=due,
    )


def page_of(client: Client, url: str) -> str:
    response = client.get(url)
    assert response.status_code == 200
    return response.content.decode()


def posted(client: Client, schedule: Schedule, action: str, **data: object) -> str:
    """What the page says after the action."""
    response = client.post(f"/schedules/{schedule.pk}/{action}/", data, follow=True)
    assert response.status_code == 200
    return response.content.decode()


def test_an_empty_list_says_what_schedules_are_for(operator: Client) -> None:
    page = page_of(operator, "/schedules/")
    assert "A schedule runs a plan at set times" in page
    assert 'href="/plans/"' in page


def test_the_list_says_when_on_what_and_what_came_of_it(operator: Client, nightly: Schedule) -> None:
    run = ended(nightly, 1)
    page = page_of(operator, "/schedules/")
    assert "At 22:00 every day (Europe/Berlin)" in page
    assert "storage1/scratch" in page
    assert f'href="/runs/{run.number}/"' in page
    assert "psync" in page  # the headline of the run
    assert 'role="switch" aria-checked="true"' in page
    assert "Times in UTC" in page


def test_the_list_says_why_a_due_time_was_missed(operator: Client, nightly: Schedule) -> None:
    missed(nightly, 3)
    assert "storage1 was away." in page_of(operator, "/schedules/")


def test_the_list_takes_a_fixed_number_of_queries(
    queries_of: Callable[[str], int], nightly: Schedule, olga: User, version: PlanVersion
) -> None:
    ended(nightly, 1)
    queries_of("/schedules/")  # outcomes are computed once
    before = queries_of("/schedules/")
    for number in range(4):
        target = storage1_scratch(a_host(f"more{number}"))
        ended(a_schedule(olga, name=f"more {number}", version=version, targets=[target]), 1)
    group = a_group(*[storage1_scratch(a_host(f"member{number}")) for number in range(3)])
    missed(a_schedule(olga, name="group", version=version, group=group), 1)
    queries_of("/schedules/")
    assert queries_of("/schedules/") == before


def test_it_filters_by_state_and_owner(operator: Client, nightly: Schedule, version: PlanVersion) -> None:
    other = a_user("otto")
    off = a_schedule(
        other, name="sleeping", version=version, targets=[storage1_scratch(nightly.targets.get().host, "b")]
    )
    switch_off(schedule=off, by=other)
    assert "sleeping" not in page_of(operator, "/schedules/?show=on")
    assert "nightly" not in page_of(operator, "/schedules/?show=off")
    assert "sleeping" not in page_of(operator, "/schedules/?show=mine")
    assert "sleeping" in page_of(operator, "/schedules/")


def test_the_switch_of_the_list_works_and_stays_there(operator: Client, nightly: Schedule) -> None:
    response = operator.post(f"/schedules/{nightly.pk}/off/", {"back": "list"})
    assert response.headers["Location"] == "/schedules/"
    nightly.refresh_from_db()
    assert not nightly.enabled
    assert "is already switched off" in posted(operator, nightly, "off")
    assert "is switched on." in posted(operator, nightly, "on")
    assert "is already switched on" in posted(operator, nightly, "on")


def once_over(by: User, version: PlanVersion, **changes: Any) -> Schedule:
    """Due once, a day ago."""
    once = {"trigger": Trigger.ONCE, "once_at": timezone.now() + timedelta(hours=1)} | changes
    schedule = a_schedule(by, name="single", version=version, **once)
    ended(schedule, 1)
    Schedule.objects.filter(pk=schedule.pk).update(once_at=timezone.now() - timedelta(days=1), next_due_at=None)
    return schedule


def test_one_that_was_due_once_is_finished_when_its_run_is_over(
    operator: Client, nightly: Schedule, olga: User, version: PlanVersion
) -> None:
    once = once_over(olga, version, targets=list(nightly.targets.all()))
    listed = page_of(operator, "/schedules/?show=finished")
    assert "single" in listed
    assert ">Finished</span>" in listed
    assert ">nightly<" not in listed
    assert ">single<" not in page_of(operator, "/schedules/?show=on")
    page = page_of(operator, f"/schedules/{once.pk}/")
    assert 'state-done">Finished</span>' in page
    assert "It was due once, and that run is over." in page
    states = {one["name"]: one["state"] for one in operator.get("/api/v1/schedules").json()["items"]}
    assert states == {"nightly": "on", "single": "finished"}
    once.occurrences.all().delete()  # as old ones are
    assert 'state-done">Finished</span>' in page_of(operator, f"/schedules/{once.pk}/")
    missed(once, 1)
    once.occurrences.update(state="started")
    assert 'state-done">On</span>' in page_of(operator, f"/schedules/{once.pk}/")


def test_one_after_a_run_is_finished_when_its_own_run_is_over(
    operator: Client, nightly: Schedule, olga: User, version: PlanVersion
) -> None:
    targets = list(nightly.targets.all())
    before = first_look_run(version, targets)
    schedule = a_schedule(
        olga, name="after", version=version, targets=targets, trigger=Trigger.AFTER_RUN, after_run=before
    )
    assert 'state-done">On</span>' in page_of(operator, f"/schedules/{schedule.pk}/")
    finish_run(before)
    assert 'state-done">On</span>' in page_of(operator, f"/schedules/{schedule.pk}/")
    missed(schedule, 1)
    assert 'state-done">Finished</span>' in page_of(operator, f"/schedules/{schedule.pk}/")


def test_a_deleted_schedule_can_be_restored(operator: Client, nightly: Schedule) -> None:
    assert "Restore" in posted(operator, nightly, "delete")
    assert ">nightly<" not in page_of(operator, "/schedules/")
    assert "Show deleted (1)" in page_of(operator, "/schedules/")
    assert ">nightly<" in page_of(operator, "/schedules/?show=deleted")
    assert operator.post(f"/schedules/{nightly.pk}/on/").status_code == 404
    assert "was restored. It is switched off." in posted(operator, nightly, "restore")
    assert "is not deleted" in posted(operator, nightly, "restore")


def test_one_that_others_follow_is_not_deleted(operator: Client, nightly: Schedule, olga: User) -> None:
    follower = a_schedule(
        olga, name="drain", version=nightly.version, targets=list(nightly.targets.all()),
        trigger=Trigger.AFTER_SCHEDULE, after_schedule=nightly,
    )  # fmt: skip
    assert "Nothing was changed: Other schedules follow this one: drain" in posted(operator, nightly, "delete")
    page = page_of(operator, f"/schedules/{nightly.pk}/")
    assert "Followed by" in page
    assert f'href="/schedules/{follower.pk}/"' in page


def test_its_page_says_everything_about_it(operator: Client, nightly: Schedule) -> None:
    missed(nightly, 30, "The scheduler did not run.")
    page = page_of(operator, f"/schedules/{nightly.pk}/")
    assert "Runs First look, version 1, on storage1/scratch. At 22:00 every day (Europe/Berlin)." in page
    assert "It is missed if it cannot start within 1 h after the due time." in page
    assert page.count("Schedule time (Europe/Berlin)") == 1
    assert "02:30 becomes 03:00" in page
    assert "The scheduler did not run." in page
    assert "owner olga (you)" in page


def test_due_times_are_shown_in_the_viewers_time_zone(operator: Client, nightly: Schedule) -> None:
    operator.cookies["timezone"] = "America/New_York"
    page = page_of(operator, f"/schedules/{nightly.pk}/")
    assert "Due (America/New_York)" in page
    assert "16:00</time>" in page or "17:00</time>" in page  # in the weeks when only one of both has changed its clocks
    operator.cookies["timezone"] = "Nowhere/At_All"
    assert "Due (UTC)" in page_of(operator, f"/schedules/{nightly.pk}/")


def test_run_now_makes_it_due_and_skip_takes_that_back(operator: Client, nightly: Schedule) -> None:
    assert "The run starts within a few seconds." in posted(operator, nightly, "run")
    waiting = nightly.occurrences.get()
    assert "The occurrence was skipped." in posted(operator, nightly, f"occurrences/{waiting.pk}/skip")
    assert "olga skipped it." in page_of(operator, f"/schedules/{nightly.pk}/")
    assert "The occurrence cannot be skipped: it is missed." in posted(
        operator, nightly, f"occurrences/{waiting.pk}/skip"
    )
    switch_off(schedule=nightly, by=nightly.owner)
    assert "The schedule is switched off." in posted(operator, nightly, "run")


def test_another_person_takes_it_over(admin: Client, nightly: Schedule) -> None:
    assert "Take over" in page_of(admin, f"/schedules/{nightly.pk}/")
    assert "You are now the owner" in posted(admin, nightly, "take-over")
    assert "You own “nightly” already." in posted(admin, nightly, "take-over")
    nightly.refresh_from_db()
    assert nightly.owner.username == "anna"


def test_a_viewer_looks_and_changes_nothing(viewer: Client, nightly: Schedule, overwriting: Schedule) -> None:
    make_due(schedule=nightly, by=nightly.owner)
    waiting = nightly.occurrences.get()
    for url in ("/schedules/", f"/schedules/{nightly.pk}/", f"/schedules/{overwriting.pk}/", "/schedules/calendar/"):
        page = page_of(viewer, url)
        assert f"/schedules/{nightly.pk}/off/" not in page
        assert "/arm/" not in page
        assert "/skip/" not in page
    actions = ("on", "off", "run", "delete", "restore", "take-over", "arm", "disarm", f"occurrences/{waiting.pk}/skip")
    for action in actions:
        assert viewer.post(f"/schedules/{nightly.pk}/{action}/").status_code == 403


def test_one_that_overwrites_says_that_it_will_not_run_until_it_is_armed(
    operator: Client, overwriting: Schedule
) -> None:
    page = page_of(operator, f"/schedules/{overwriting.pk}/")
    assert "so each of them is missed until the schedule is armed" in page
    assert "type its serial" in page
    assert "Nothing was changed: It overwrites drives and is not armed." in posted(operator, overwriting, "on")
    assert "It overwrites drives and is not armed." in page_of(operator, "/schedules/")


def test_arming_names_the_drive_the_person_and_the_end_and_offers_to_switch_on(
    operator: Client, overwriting: Schedule
) -> None:
    until = (timezone.localdate() + timedelta(days=10)).isoformat()
    page = posted(operator, overwriting, "arm", serial=SERIAL, until=until)
    assert f"is armed until the end of {until} (Europe/Berlin). The schedule is still switched off" in page
    assert "by olga until" in page
    assert "The arming covers" in page
    assert "Switch on the armed schedule" in page
    assert "It overwrites drives and is not armed." not in page
    assert "Armed, and not switched on yet." in page_of(operator, "/schedules/")
    assert "is switched on." in posted(operator, overwriting, "on")
    assert "is disarmed" in posted(operator, overwriting, "disarm")
    assert "was not armed" in posted(operator, overwriting, "disarm")


@pytest.mark.parametrize(
    ("serial", "until", "why"),
    [
        ("wrong", "2999-01-01", "Nothing was changed"),
        (SERIAL, "2999-01-01", "within the next 366 days"),
        (SERIAL, "9999-12-31", "choose the last day"),
        (SERIAL, "soon", "choose the last day"),
        (SERIAL, "2001-01-01", "within the next 366 days"),
    ],
)
def test_a_wrong_arming_is_refused(operator: Client, overwriting: Schedule, serial: str, until: str, why: str) -> None:
    response = operator.post(f"/schedules/{overwriting.pk}/arm/", {"serial": serial, "until": until})
    assert response.status_code == 400
    assert why in response.content.decode()
    overwriting.refresh_from_db()
    assert overwriting.armed_until is None


def test_a_wrong_serial_is_said_beside_its_field(operator: Client, overwriting: Schedule) -> None:
    until = (timezone.localdate() + timedelta(days=3)).isoformat()
    response = operator.post(f"/schedules/{overwriting.pk}/arm/", {"serial": "wrong", "until": until})
    page = response.content.decode()
    problem = f'id="schedule-problem-1">This is not the serial of storage9/nvme0. Type {SERIAL}.</div>'
    assert problem in page
    assert 'value="wrong" aria-invalid="true" aria-describedby="schedule-problem-1" autofocus' in page
    assert f'value="{until}"' in page
    assert 'id="until-problem"' not in page
    page = operator.post(f"/schedules/{overwriting.pk}/arm/", {"serial": SERIAL, "until": "soon"}).content.decode()
    assert 'id="until-problem">This date cannot be used' in page
    assert "This is not the serial" not in page


def test_its_page_says_what_a_run_costs_and_that_it_is_due_too_often(
    operator: Client, nightly: Schedule, olga: User, version: PlanVersion
) -> None:
    page = page_of(operator, f"/schedules/{nightly.pk}/")
    assert 'id="run-cost">One run</h2>' in page
    assert "written at most" in page
    assert "runs are due" not in page
    often = a_schedule(
        olga, name="often", version=version, targets=list(nightly.targets.all()), cron="* * * * *", overlap="wait"
    )
    page = page_of(operator, f"/schedules/{often.pk}/")
    assert "A run takes about" in page
    assert "but runs are due every 1 min. A run that is due while an earlier one is going waits for it" in page


def test_the_cost_of_a_group_is_that_of_its_longest_run(operator: Client, olga: User, version: PlanVersion) -> None:
    group = a_group(*[storage1_scratch(a_host(f"storage{number}")) for number in (1, 2)])
    side_by_side = a_schedule(olga, version=version, group=group)
    page = page_of(operator, f"/schedules/{side_by_side.pk}/")
    assert "Of the 2 hosts, storage" in page
    together, in_turn = (
        run_cost(version, group_targets(group), order) for order in (GroupOrder.SIDE_BY_SIDE, GroupOrder.ONE_BY_ONE)
    )
    assert together
    assert in_turn
    assert in_turn.seconds == 2 * together.seconds


def test_its_page_says_that_the_plan_has_a_newer_version(operator: Client, nightly: Schedule) -> None:
    assert "is the newest" not in page_of(operator, f"/schedules/{nightly.pk}/")
    newest = first_look()
    page = page_of(operator, f"/schedules/{nightly.pk}/")
    assert "This schedule runs version 1 of the plan; version 2 is the newest." in page
    assert f'href="/schedules/{nightly.pk}/edit/?version=2">Edit to use version 2</a>' in page
    edit = page_of(operator, f"/schedules/{nightly.pk}/edit/?version=2")
    assert f'name="version" value="{newest.pk}" checked' in edit


def test_an_arming_that_has_ended_is_said(operator: Client, overwriting: Schedule) -> None:
    Schedule.objects.filter(pk=overwriting.pk).update(
        armed_serials=[SERIAL], armed_until=timezone.now() - timedelta(days=1)
    )
    assert "The arming ended on" in page_of(operator, f"/schedules/{overwriting.pk}/")


def test_a_deleted_schedule_says_so(operator: Client, overwriting: Schedule) -> None:
    delete_schedule(schedule=overwriting, by=overwriting.owner)
    page = page_of(operator, f"/schedules/{overwriting.pk}/")
    assert "This schedule was deleted" in page
    assert "Not armed" not in page


def test_the_page_of_one_for_a_group_leads_to_the_group(operator: Client, olga: User, version: PlanVersion) -> None:
    group = a_group(storage1_scratch(a_host("storage1")))
    schedule = a_schedule(olga, version=version, group=group)
    page = page_of(operator, f"/schedules/{schedule.pk}/")
    assert f'href="/groups/{group.slug}/"' in page
    assert "(1 host, side by side)" in page


def test_the_page_of_one_whose_group_was_empty_shows_what_was_missed(
    operator: Client, olga: User, version: PlanVersion
) -> None:
    """An occurrence without a host: of an empty group, or from before the schedule had a group."""
    group = a_group(storage1_scratch(a_host("storage1")))
    schedule = a_schedule(olga, version=version, group=group)
    missed(schedule, 2, "The host group has no hosts.")
    assert "The host group has no hosts." in page_of(operator, f"/schedules/{schedule.pk}/")


def test_its_page_says_that_a_target_is_gone(operator: Client, nightly: Schedule) -> None:
    assert "no longer in the policy" not in page_of(operator, f"/schedules/{nightly.pk}/")
    nightly.targets.update(in_policy=False)
    assert "no longer in the policy of its host" in page_of(operator, f"/schedules/{nightly.pk}/")
    nightly.targets.update(in_policy=True, present=False)
    assert ">absent<" in page_of(operator, f"/schedules/{nightly.pk}/")


def test_one_whose_plan_was_deleted_says_so_and_is_not_switched_on(operator: Client, nightly: Schedule) -> None:
    assert "plan of this schedule was deleted" not in page_of(operator, f"/schedules/{nightly.pk}/")
    delete_plan(plan=nightly.version.plan, by=nightly.owner)
    assert "The plan of this schedule was deleted" in page_of(operator, f"/schedules/{nightly.pk}/")
    switch_off(schedule=nightly, by=nightly.owner)
    with pytest.raises(Refusal, match="was deleted"):
        switch_on(schedule=nightly, by=nightly.owner)
