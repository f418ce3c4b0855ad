"""When a host is in a maintenance window, and writing windows down."""

from datetime import UTC, datetime, time, timedelta
from typing import Any

import pytest
import time_machine
from django.utils import timezone

from webapp.core.errors import Refusal
from webapp.core.models import AuditEntry
from webapp.hosts.maintenance_windows import (
    KEPT_FOR,
    MAX_WINDOWS,
    add_single_window,
    add_weekly_window,
    coming_spans,
    delete_ended_windows,
    delete_window,
    in_words,
    next_span,
    open_window,
    open_windows,
)
from webapp.hosts.models import Host, MaintenanceWindow
from webapp.tests.factories.hosts import a_host

pytestmark = pytest.mark.django_db
MONDAY_NOON = datetime(2026, 3, 23, 12, 0, tzinfo=UTC)


@pytest.fixture
def host() -> Host:
    return a_host("storage1")


def nightly(host: Host, **changes: Any) -> MaintenanceWindow:
    given: dict[str, Any] = {"days": range(7), "opens": time(22), "closes": time(6), "zone": "Europe/Berlin"}
    return add_weekly_window(host=host, **({"note": "", "by": None} | given | changes))


def once(host: Host, starts_at: datetime, ends_at: datetime, note: str = "") -> MaintenanceWindow:
    return add_single_window(host=host, starts_at=starts_at, ends_at=ends_at, note=note, by=None)


@time_machine.travel(MONDAY_NOON, tick=False)
def test_it_says_until_when_a_window_is_open(host: Host) -> None:
    window = nightly(host, note="Backups")
    assert in_words(window) == "22:00 to 06:00, every day (Europe/Berlin)"
    assert open_window(host.pk) is None
    opens = next_span(window, timezone.now())
    assert opens
    assert opens.opens == MONDAY_NOON.replace(hour=21)
    found = open_window(host.pk, opens.opens)
    assert str(found) == "in a maintenance window until 2026-03-24 05:00 UTC (Backups)"
    assert open_window(host.pk, opens.opens - timedelta(seconds=1)) is None
    assert open_window(host.pk, opens.closes) is None


@time_machine.travel(MONDAY_NOON, tick=False)
def test_of_open_windows_the_one_that_closes_last_counts(host: Host) -> None:
    other, third = a_host("storage2"), a_host("storage3")
    once(host, MONDAY_NOON, MONDAY_NOON + timedelta(hours=1), "short")
    once(host, MONDAY_NOON - timedelta(hours=1), MONDAY_NOON + timedelta(hours=3), "long")
    once(other, MONDAY_NOON + timedelta(hours=1), MONDAY_NOON + timedelta(hours=2))
    assert {pk: window.note for pk, window in open_windows().items()} == {host.pk: "long"}
    assert open_windows([other.pk, third.pk]) == {}
    assert list(open_windows(at=MONDAY_NOON + timedelta(minutes=90))) == [host.pk, other.pk]


def test_open_windows_of_many_hosts_are_one_query(django_assert_num_queries: Any) -> None:
    for number in range(5):
        nightly(a_host(f"h{number}"))
    with django_assert_num_queries(1):
        open_windows()


@time_machine.travel(MONDAY_NOON, tick=False)
def test_it_refuses_windows_that_make_no_sense(host: Host) -> None:
    hour = timedelta(hours=1)

    def refused(add: Any) -> str:
        with pytest.raises(Refusal) as caught:
            add()
        return caught.value.code

    assert refused(lambda: nightly(host, days=[])) == "window_refused"
    assert refused(lambda: nightly(host, days=[7])) == "window_refused"
    assert refused(lambda: nightly(host, closes=time(22))) == "window_refused"
    assert refused(lambda: nightly(host, zone="Mars/Base")) == "time_zone_refused"
    assert refused(lambda: nightly(host, zone="../../etc/passwd")) == "time_zone_refused"
    assert refused(lambda: nightly(host, note="x" * 501)) == "note_too_long"
    assert refused(lambda: nightly(host, note="a\0b")) == "text_refused"
    assert refused(lambda: once(host, MONDAY_NOON, MONDAY_NOON)) == "window_refused"
    assert refused(lambda: once(host, MONDAY_NOON - 2 * hour, MONDAY_NOON - hour)) == "window_refused"
    first, last = datetime(1, 1, 1, tzinfo=UTC), datetime(9999, 12, 31, 23, 59, tzinfo=UTC)
    for starts_at, ends_at in ((first, MONDAY_NOON + hour), (MONDAY_NOON, last), (last, last), (first, last)):
        assert refused(lambda s=starts_at, e=ends_at: once(host, s, e)) == "window_refused"
    assert not MaintenanceWindow.objects.exists()
    assert not AuditEntry.objects.exists()


def test_a_host_has_at_most_so_many_windows(host: Host) -> None:
    for hour in range(MAX_WINDOWS):
        nightly(host, opens=time(hour % 24), closes=time((hour + 1) % 24))
    with pytest.raises(Refusal, match="the maximum is 50"):
        nightly(host)


def test_ended_windows_make_room_and_are_deleted_after_a_month(host: Host) -> None:
    now = timezone.now()
    with time_machine.travel(now, tick=False):
        for number in range(MAX_WINDOWS):
            once(host, now, now + timedelta(hours=1 + number % 2))
    with time_machine.travel(now + timedelta(hours=1), tick=False):
        nightly(host)
        assert host.maintenance_windows.count() == 1 + MAX_WINDOWS // 2
    delete_ended_windows(now + timedelta(hours=1) + KEPT_FOR)
    assert host.maintenance_windows.count() == 1 + MAX_WINDOWS // 2
    delete_ended_windows(now + timedelta(hours=2, seconds=1) + KEPT_FOR)
    assert host.maintenance_windows.get().days


@time_machine.travel(MONDAY_NOON, tick=False)
def test_the_coming_times_of_all_windows_are_known_in_order(host: Host) -> None:
    nightly(host)
    once(host, MONDAY_NOON - timedelta(hours=1), MONDAY_NOON + timedelta(hours=1))
    spans = coming_spans([host.pk, a_host().pk], MONDAY_NOON)[host.pk]
    assert [(span.opens.hour, span.closes.hour) for span in spans[:3]] == [(11, 13), (21, 5), (21, 5)]
    assert 14 <= len(spans) <= 17


def test_it_is_deleted_once(host: Host) -> None:
    window = nightly(host)
    assert delete_window(window=window, by=None)
    assert not delete_window(window=window, by=None)
    (entry,) = AuditEntry.objects.filter(action="host.window_delete")
    assert (entry.label, entry.detail["window"]) == ("storage1", "22:00 to 06:00, every day (Europe/Berlin)")
