"""Schedules through the API, from outside."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.test import Client
from pytest_django import DjangoAssertNumQueries

from webapp.core.models import User
from webapp.hosts.models import Target
from webapp.plans.models import PlanVersion
from webapp.schedules.models import Schedule
from webapp.schedules.tests.clock import Clock, clock
from webapp.tests.factories.hosts import a_target
from webapp.tests.factories.people import a_user
from webapp.tests.factories.plans import a_version
from webapp.tests.factories.schedules import a_group, a_schedule

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("broker")]
NOON = datetime(2026, 3, 10, 12, tzinfo=UTC)
ROOT = "/api/v1/schedules"


@pytest.fixture(autouse=True)
def at_noon() -> Iterator[Clock]:
    with clock(NOON) as made:
        yield made


@pytest.fixture
def person() -> User:
    return a_user("olga")


@pytest.fixture
def client(person: User) -> Client:
    made = Client()
    made.force_login(person)
    return made


@pytest.fixture
def target() -> Target:
    return a_target()


@pytest.fixture
def version() -> PlanVersion:
    return a_version()


def body(version: PlanVersion, target: Target, **changes: Any) -> dict[str, Any]:
    fields = {"name": "nightly", "plan": version.plan.slug, "targets": [str(target)], "trigger": "cron"}
    return fields | {"cron": "0 22 * * *", "time_zone": "Europe/Berlin"} | changes


def send(client: Client, method: str, path: str, content: object = None) -> tuple[int, Any]:
    answer = client.generic(method, f"{ROOT}{path}", json.dumps(content or {}), content_type="application/json")
    return answer.status_code, answer.json() if answer.content else None


def test_a_schedule_is_made_read_changed_and_deleted(client: Client, version: PlanVersion, target: Target) -> None:
    window = {"days": [0, 1, 2, 3, 4], "opens": "22:00:00", "closes": "06:00:00"}
    status, made = send(client, "POST", "", body(version, target, window=window, priority="high", deadline_s=28800))
    assert status == 201
    assert made["when"] == "At 22:00 every day (Europe/Berlin)"
    assert (made["window"], made["priority"], made["owner"]) == (window, "high", "olga")
    assert made["next_due_at"] == "2026-03-10T21:00:00Z"
    assert send(client, "GET", f"/{made['id']}") == (200, made)
    status, changed = send(client, "PUT", f"/{made['id']}", body(version, target, cron="0 3 * * *"))
    assert (status, changed["window"], changed["next_due_at"]) == (200, None, "2026-03-11T02:00:00Z")
    assert send(client, "DELETE", f"/{made['id']}") == (204, None)
    assert send(client, "GET", "")[1]["items"] == []
    assert [one["name"] for one in send(client, "GET", "?deleted=true")[1]["items"]] == ["nightly"]
    assert send(client, "POST", f"/{made['id']}/restore")[1]["enabled"] is False


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"cron": "0 0 30 2 *"}, "cron_refused"),
        ({"time_zone": "Mars/Olympus"}, "time_zone_refused"),
        ({"window": {"days": [], "opens": "22:00", "closes": "06:00"}}, "window_refused"),
        ({"trigger": "once", "once_at": "2026-03-10T11:00:00Z"}, "time_passed"),
        ({"trigger": "once", "once_at": "2026-03-12T11:00:00"}, "time_refused"),
        ({"trigger": "once", "once_at": "9999-12-31T23:59:59-12:00"}, "time_refused"),
        ({"targets": []}, "targets_refused"),
        ({"group": "none"}, "group_unknown"),
        ({"after_run": 77, "trigger": "after_run"}, "run_unknown"),
        ({"after_schedule": 77, "trigger": "after_schedule"}, "schedule_unknown"),
        ({"dry_run": True}, "request_refused"),
        ({"priority": "urgent"}, "request_refused"),
        ({"deadline_s": 10**30}, "limit_refused"),
    ],
)
def test_what_cannot_be_is_refused_and_nothing_is_made(
    client: Client, version: PlanVersion, target: Target, changes: dict[str, Any], code: str
) -> None:
    status, said = send(client, "POST", "", body(version, target, **changes))
    assert (status in (404, 422), said["code"]) == (True, code)
    assert not Schedule.objects.exists()


def test_a_preview_says_the_next_five_due_times_and_saves_nothing(
    client: Client, version: PlanVersion, target: Target
) -> None:
    status, said = send(client, "POST", "/preview", body(version, target))
    assert (status, said["when"], said["overwrites"]) == (200, "At 22:00 every day (Europe/Berlin)", [])
    assert said["due"] == [f"2026-03-{day}T21:00:00Z" for day in range(10, 15)]
    assert not Schedule.objects.exists()


def test_a_preview_is_refused_as_saving_is(client: Client, version: PlanVersion, target: Target) -> None:
    wrong = body(version, target) | {"targets": [str(a_target(kind="slot"))]}
    assert send(client, "POST", "", wrong)[1]["code"] == "targets_refused"
    assert send(client, "POST", "/preview", wrong)[1]["code"] == "targets_refused"


def test_what_became_of_each_due_time_can_be_read(client: Client, at_noon: Clock, target: Target, person: User) -> None:
    schedule = a_schedule(person, targets=[target])
    at_noon.to(NOON + timedelta(hours=9))
    at_noon.away = {target.host.slug}
    status, _ = send(client, "POST", f"/{schedule.pk}/run-now")
    assert status == 202
    at_noon.after(seconds=1)
    status, found = send(client, "GET", f"/{schedule.pk}/occurrences")
    assert [(one["state"], one["reason_code"]) for one in found["items"]] == [("started", "")]
    at_noon.after(minutes=5)
    send(client, "POST", f"/{schedule.pk}/run-now")
    at_noon.after(seconds=5)
    assert (
        send(client, "GET", f"/{schedule.pk}/occurrences?state=missed")[1]["items"][0]["reason_code"] == "still_going"
    )


def test_a_group_is_named_by_its_slug(client: Client, version: PlanVersion, target: Target) -> None:
    a_group(target)
    status, made = send(client, "POST", "", body(version, target, targets=[], group="lab", group_order="one_by_one"))
    assert (status, made["group"], made["group_order"], made["targets"]) == (201, "lab", "one_by_one", [str(target)])


def test_a_list_takes_the_same_number_of_queries_however_long_it_is(
    client: Client, person: User, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    for number in range(5):
        a_schedule(person, name=f"schedule {number}")
    with django_assert_num_queries(6):
        assert len(send(client, "GET", "")[1]["items"]) == 5


@pytest.mark.parametrize("name", ["since", "before"])
def test_it_refuses_a_time_without_a_zone(client: Client, person: User, name: str) -> None:
    schedule = a_schedule(person)
    assert client.get(f"{ROOT}/{schedule.pk}/occurrences", {name: "2026-03-10T12:00:00Z"}).status_code == 200
    assert client.get(f"{ROOT}/{schedule.pk}/occurrences", {name: "2026-03-10T12:00:00"}).status_code == 422
