"""The list of schedules and the page of one: what they show, and what people do there."""

from collections.abc import Callable
from datetime import timedelta
from html import unescape
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from webapp.core.errors import Refusal
from webapp.core.models import User
from webapp.plans.models import PlanVersion
from webapp.plans.services import delete_plan
from webapp.schedules.models import Schedule, Trigger
from webapp.schedules.services import switch_off, switch_on
from webapp.screens.outcome import outcome_of
from webapp.screens.tests.schedule_pages import ended, missed, page_of, posted
from webapp.tests.factories.hosts import a_host, storage1_scratch
from webapp.tests.factories.people import a_user
from webapp.tests.factories.results import finish_run
from webapp.tests.factories.runs import first_look_run
from webapp.tests.factories.schedules import a_group, a_schedule


def once_over(by: User, version: PlanVersion, **changes: Any) -> Schedule:
    """Due once, a day ago."""
    once = {"trigger": Trigger.ONCE, "once_at": timezone.now() + timedelta(hours=1)} | changes
    schedule = a_schedule(by, name="single", version=version, **once)
    ended(schedule, 1)
    Schedule.objects.filter(pk=schedule.pk).update(once_at=timezone.now() - timedelta(days=1), next_due_at=None)
    return schedule


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
    assert outcome_of(run).says
    assert outcome_of(run).says in unescape(page)
    assert 'role="switch" aria-checked="true"' in page
    assert "Times in UTC" in page


def test_the_list_says_why_a_due_time_was_missed(operator: Client, nightly: Schedule) -> None:
    missed(nightly, 3)
    assert "storage1 was away." in page_of(operator, "/schedules/")


def test_the_heading_counts_schedules_and_names_the_next(operator: Client, nightly: Schedule) -> None:
    for address in ("/schedules/", "/schedules/calendar/"):
        context = operator.get(address).context
        assert context["heading"].startswith("One ")
        assert (context["next"].schedule, context["next"].at) == (nightly, nightly.next_due_at)
    switch_off(schedule=nightly, by=nightly.owner)
    off = operator.get("/schedules/").context
    assert off["heading"].startswith("No ")
    assert off["next"] is None
    missed(nightly, 3)
    assert "missed" in operator.get("/schedules/").context["heading"]


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
    assert ">sleeping</a>" not in page_of(operator, "/schedules/?show=on")
    assert ">nightly</a>" not in page_of(operator, "/schedules/?show=off")
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


def test_one_whose_plan_was_deleted_says_so_and_is_not_switched_on(operator: Client, nightly: Schedule) -> None:
    assert "plan of this schedule was deleted" not in page_of(operator, f"/schedules/{nightly.pk}/")
    delete_plan(plan=nightly.version.plan, by=nightly.owner)
    assert "The plan of this schedule was deleted" in page_of(operator, f"/schedules/{nightly.pk}/")
    switch_off(schedule=nightly, by=nightly.owner)
    with pytest.raises(Refusal, match="was deleted"):
        switch_on(schedule=nightly, by=nightly.owner)
