"""Maintenance windows on pages and in the API."""

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import time_machine
from django.test import Client
from django.utils import timezone

from webapp.hosts.models import Host, MaintenanceWindow
from webapp.tests.factories.hosts import a_host, storage1_scratch
from webapp.tests.factories.plans import first_look
from webapp.tests.factories.runs import first_look_run

MANAGE = "/hosts/storage1/manage/"
WEEKLY: dict[str, Any] = {
    "day": ["5", "6"],
    "opens": "22:00",
    "closes": "06:00",
    "zone": "Europe/Berlin",
    "note": "Backups",
}
SINGLE: dict[str, Any] = {"starts": "2026-03-24T10:00", "ends": "2026-03-24T12:30", "zone": "Europe/Berlin", "note": ""}
MONDAY_NOON = datetime(2026, 3, 23, 12, 0, tzinfo=UTC)


@pytest.fixture
def host(db: None) -> Host:
    return a_host("storage1")


def open_now(host: Host, note: str = "Firmware") -> MaintenanceWindow:
    now = timezone.now()
    return MaintenanceWindow.objects.create(
        host=host, starts_at=now - timedelta(hours=1), ends_at=now + timedelta(hours=1), note=note
    )


def text_of(client: Client, address: str) -> str:
    return client.get(address).content.decode()


@time_machine.travel(MONDAY_NOON, tick=False)
def test_it_adds_weekly_and_single_windows_and_lists_them(operator: Client, host: Host) -> None:
    assert "storage1 has no maintenance windows." in text_of(operator, MANAGE)
    answer = operator.post("/hosts/storage1/windows/weekly/", WEEKLY, follow=True)
    assert answer.redirect_chain[-1][0] == f"{MANAGE}#windows"
    assert "The maintenance window was added: 22:00 to 06:00, Sat and Sun (Europe/Berlin)." in answer.content.decode()
    operator.post("/hosts/storage1/windows/single/", SINGLE)
    page = text_of(operator, MANAGE)
    assert "22:00 to 06:00, Sat and Sun (Europe/Berlin)" in page
    assert '<time datetime="2026-03-28T21:00:00+00:00"' in page  # the next opening
    assert "2026-03-24 09:00 to 2026-03-24 11:30 UTC" in page
    history = text_of(operator, "/hosts/storage1/")
    assert "Maintenance window added" in history
    assert "22:00 to 06:00, Sat and Sun (Europe/Berlin)." in history
    with time_machine.travel(MONDAY_NOON + timedelta(days=2), tick=False):
        assert "ended</span>" in text_of(operator, MANAGE)


@time_machine.travel(MONDAY_NOON, tick=False)
@pytest.mark.parametrize(
    ("form", "changes", "words"),
    [
        ("weekly", {"day": []}, "choose at least one day"),
        ("weekly", {"day": ["7"]}, "from 0 (Monday) to 6 (Sunday)"),
        ("weekly", {"day": ["x"]}, "from 0 (Monday) to 6 (Sunday)"),
        ("weekly", {"opens": "25:00"}, "such as 22:00"),
        ("weekly", {"opens": ""}, "such as 22:00"),
        ("weekly", {"zone": "Mars"}, "is not a time zone"),
        ("weekly", {"note": "x" * 501}, "501 characters"),
        ("weekly", {"note": "a\0b"}, "NUL character"),
        ("single", {"starts": "soon"}, "such as 2026-01-31 22:00"),
        ("single", {"starts": "", "ends": ""}, "such as 2026-01-31 22:00"),
        ("single", {"ends": "2026-03-24T09:00"}, "its end is not after its start"),
        ("single", {"starts": "2026-03-01T09:00", "ends": "2026-03-02T09:00"}, "its end has passed"),
        ("single", {"starts": "0001-01-01T00:00"}, "within ten years of now"),
        ("single", {"ends": "9999-12-31T23:59"}, "within ten years of now"),
        ("single", {"zone": "<b>"}, "“&lt;b&gt;” is not a time zone"),
    ],
)
def test_it_says_at_the_form_why_not_and_keeps_what_was_typed(
    operator: Client, host: Host, form: str, changes: dict[str, object], words: str
) -> None:
    given = {"weekly": WEEKLY, "single": SINGLE}[form] | {"note": "Typed before"} | changes
    answer = operator.post(f"/hosts/storage1/windows/{form}/", given)
    page = answer.content.decode()
    assert answer.status_code == 422
    assert words in page
    assert "note" in changes or "Typed before" in page
    assert not MaintenanceWindow.objects.exists()


def test_it_deletes_what_was_confirmed(operator: Client, viewer: Client, host: Host) -> None:
    window = open_now(host)
    page = text_of(operator, MANAGE)
    assert f'data-dialog="delete-window-{window.pk}"' in page
    assert "open now" in page
    seen = text_of(viewer, MANAGE)
    assert "open now" in seen
    assert "delete-window" not in seen
    assert "Add weekly window" not in seen
    other = a_host("storage2")
    assert operator.post(f"/hosts/{other.slug}/windows/{window.pk}/delete/").status_code == 404
    answer = operator.post(f"/hosts/storage1/windows/{window.pk}/delete/", follow=True)
    assert "The maintenance window was deleted" in answer.content.decode()
    assert operator.post(f"/hosts/storage1/windows/{window.pk}/delete/").status_code == 404


def test_it_shows_an_open_window_wherever_the_host_appears(operator: Client, host: Host) -> None:
    target = storage1_scratch(host)
    first_look_run(first_look(), [target], repeats=1, state="done")
    window = open_now(host)
    words = f"maintenance window until {window.ends_at:%Y-%m-%d %H:%M} UTC"
    for address in ("/hosts/", "/hosts/storage1/", MANAGE, "/plans/first-look/", "/runs/"):
        page = text_of(operator, address)
        assert words in page.replace("Maint", "maint"), address
        assert "Firmware" in page, address
    MaintenanceWindow.objects.update(ends_at=timezone.now())
    for address in ("/hosts/", "/hosts/storage1/", "/plans/first-look/", "/runs/"):
        assert "maintenance window until" not in text_of(operator, address).lower(), address


def test_windows_of_more_hosts_take_no_more_queries(queries_of: Callable[[str], int], host: Host) -> None:
    version, pages = first_look(), ("/hosts/", "/runs/", "/plans/first-look/?version=1", "/", "/queue/")
    first_look_run(version, [storage1_scratch(host)], repeats=1)
    open_now(host)
    for number in range(2, 8):
        before = [queries_of(page) for page in pages]  # at last with more hosts than the plan's page previews
        other = a_host(f"storage{number}")
        first_look_run(version, [storage1_scratch(other)], repeats=1)
        open_now(other)
    assert [queries_of(page) for page in pages] == before


def api(client: Client, method: str, path: str, body: object = None) -> tuple[int, Any]:
    data = {} if body is None else {"data": json.dumps(body), "content_type": "application/json"}
    answer = getattr(client, method)(f"/api/v1/{path}", **data)
    return answer.status_code, answer.json() if answer.content else None


@time_machine.travel(MONDAY_NOON, tick=False)
def test_the_api_adds_reads_and_deletes_windows(operator: Client, viewer: Client, host: Host) -> None:
    weekly = {"days": [6, 5], "opens": "22:00", "closes": "06:00", "time_zone": "Europe/Berlin", "note": "Backups"}
    status, made = api(operator, "post", "hosts/storage1/windows", weekly)
    assert status == 201
    assert made == {
        "id": made["id"], "days": [5, 6], "opens": "22:00", "closes": "06:00", "time_zone": "Europe/Berlin",
        "starts_at": None, "ends_at": None, "note": "Backups", "open_now": None,
        "text": "22:00 to 06:00, Sat and Sun (Europe/Berlin)",
        "next": {"opens": "2026-03-28T21:00:00Z", "closes": "2026-03-29T04:00:00Z"},
    }  # fmt: skip
    single = {"starts_at": "2026-03-23T11:00:00+00:00", "ends_at": "2026-03-23T16:00:00+02:00"}
    status, made = api(operator, "post", "hosts/storage1/windows", single)
    assert (status, made["open_now"]["closes"], made["next"]) == (201, "2026-03-23T14:00:00Z", None)
    status, listed = api(viewer, "get", "hosts/storage1/windows")
    assert (status, len(listed)) == (200, 2)
    assert api(viewer, "post", "hosts/storage1/windows", single)[0] == 403
    assert api(operator, "delete", f"hosts/storage1/windows/{made['id']}") == (204, None)
    assert api(operator, "delete", f"hosts/storage1/windows/{made['id']}")[0] == 404
    assert api(operator, "get", "hosts/nowhere/windows")[0] == 404


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"days": [1], "opens": "22:00"},
        {"days": [1], "opens": "22:00", "closes": "06:00", "starts_at": "2030-01-01T00:00:00Z"},
        {"days": [1], "opens": "22:00Z", "closes": "06:00"},
        {"days": ["Monday"], "opens": "22:00", "closes": "06:00"},
        {"days": [1] * 8, "opens": "22:00", "closes": "06:00"},
        {"days": [10**30], "opens": "22:00", "closes": "06:00"},
        {"days": [1], "opens": "22:00", "closes": "06:00", "zone": "UTC"},
        {"days": [1], "opens": "22:00", "closes": "06:00", "time_zone": "a\0"},
        {"days": [1], "opens": "22:00", "closes": "06:00", "note": "a\0"},
        {"days": [1], "opens": "22:00", "closes": "06:00", "note": "\ud800"},
        {"starts_at": "2030-01-01T00:00:00", "ends_at": "2030-01-02T00:00:00"},
        {"starts_at": "0001-01-01T00:00:00+14:00", "ends_at": "9999-12-31T23:59:59-12:00"},
    ],
)
def test_the_api_refuses_hostile_windows_in_words(operator: Client, host: Host, body: object) -> None:
    status, said = api(operator, "post", "hosts/storage1/windows", body)
    assert status == 422, said
    assert not MaintenanceWindow.objects.exists()
