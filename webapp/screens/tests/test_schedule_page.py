"""The page of a schedule: what it shows, and what people do there."""

from django.test import Client

from webapp.core.models import User
from webapp.plans.models import PlanVersion
from webapp.schedules.models import GroupOrder, Schedule
from webapp.schedules.selectors import group_targets
from webapp.schedules.services import delete_schedule, make_due, switch_off
from webapp.screens.schedules.words import run_cost
from webapp.screens.tests.schedule_pages import missed, page_of, posted
from webapp.tests.factories.hosts import a_host, storage1_scratch
from webapp.tests.factories.plans import first_look
from webapp.tests.factories.schedules import a_group, a_schedule


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
