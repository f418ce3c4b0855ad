"""Which absence of a host is announced, and how often."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.utils import timezone

from webapp.core import health
from webapp.core.models import Heartbeat
from webapp.hosts.models import Host, HostState
from webapp.notices import tasks
from webapp.notices.models import Event, Notice
from webapp.notices.tasks import AWAY_AFTER, GAP_LIMIT, Watch, announce_absent_hosts
from webapp.tests.factories.hosts import a_host
from webapp.tests.factories.notices import a_plan, a_subscription

pytestmark = pytest.mark.django_db

NOW = timezone.now()
MINUTE = timedelta(minutes=1)
LONG_AGO = NOW - AWAY_AFTER - MINUTE


class Server:
    """A server that has heard from its hosts for some time, by its own clock."""

    def __init__(self, watched: timedelta = AWAY_AFTER) -> None:
        self._now_s = 0.0
        self._watch = Watch(lambda: self._now_s)
        for _ in range(int(watched / GAP_LIMIT) + 1):
            self._watch.tick()
            self._now_s += GAP_LIMIT.total_seconds()
        self._now_s = watched.total_seconds()

    def tick(self, now: datetime = NOW) -> None:
        announce_absent_hosts(now, self._watch)

    def wait(self, time: timedelta) -> None:
        for _ in range(int(time / MINUTE)):
            self._now_s += MINUTE.total_seconds()
            self._watch.tick()


def announced() -> list[bool]:
    """`away` of each notice, oldest first."""
    return [notice.payload["detail"]["away"] for notice in Notice.objects.order_by("created_at")]


def newest() -> Notice:
    return Notice.objects.latest("created_at")


def hear(*hosts: Host, at: datetime) -> None:
    Host.objects.filter(pk__in=[host.pk for host in hosts]).update(last_seen_at=at)


def test_an_absence_is_announced_once_and_so_is_the_return() -> None:
    a_subscription(events=[Event.AWAY])
    a_subscription(events=[Event.ENDED])
    a_subscription(events=[Event.AWAY], plan=a_plan())
    host = a_host(last_seen_at=LONG_AGO)
    a_host(last_seen_at=NOW)
    server = Server()
    for _ in range(2):
        server.tick()
    assert announced() == [True]
    assert Notice.objects.get().payload["detail"]["host"] == host.slug
    hear(host, at=NOW)
    for _ in range(2):
        server.tick()
    assert announced() == [True, False]
    assert (newest().subject, newest().payload["detail"]["hosts"]) == (f"Host {host} is back", [host.slug])


@pytest.mark.parametrize("changes", [{"state": HostState.MAINTENANCE}, {"state": HostState.REVOKED}])
def test_a_host_that_may_be_away_is_not_announced(changes: dict[str, Any]) -> None:
    a_subscription(events=[Event.AWAY])
    a_host(last_seen_at=LONG_AGO, **changes)
    Server().tick()
    assert announced() == []


def test_a_server_that_was_away_itself_waits() -> None:
    a_subscription(events=[Event.AWAY])
    a_host(last_seen_at=LONG_AGO)
    Server(AWAY_AFTER - MINUTE).tick()
    assert announced() == []


def hosts_that_fell_silent_at_once() -> Sequence[Host]:
    """The first has been silent for long enough; the last was heard a minute later, in turn."""
    return [a_host(f"rack-{number}", last_seen_at=LONG_AGO + number * MINUTE / 2) for number in range(4)]


def test_hosts_that_fall_silent_at_once_get_one_notice_that_names_the_server() -> None:
    a_subscription(events=[Event.AWAY])
    hosts = hosts_that_fell_silent_at_once()
    a_host("in-maintenance", last_seen_at=LONG_AGO, state=HostState.MAINTENANCE)
    server = Server()
    for minutes in range(3):
        server.tick(NOW + minutes * MINUTE)
    assert announced() == [True]
    away = newest()
    assert away.subject.startswith("4 hosts are away at once since ")
    assert "the server itself, its network or Redis may be the cause" in away.text
    assert away.text.endswith("Hosts: rack-0, rack-1, rack-2, rack-3.")
    assert (away.payload["detail"]["host"], len(away.payload["detail"]["hosts"])) == (None, 4)
    assert away.payload["url"].endswith("/hosts/")
    hear(*hosts, at=NOW + 20 * MINUTE)
    for _ in range(2):
        server.tick(NOW + 20 * MINUTE)
    assert announced() == [True, False]
    assert newest().subject.startswith("4 hosts were away from ")
    assert "The server itself, its network or Redis may have been the cause." in newest().text
    assert "heard from none of these hosts for 29 min 30 s. " in newest().text


def test_a_host_that_stays_silent_after_the_others_is_announced_on_its_own_later() -> None:
    a_subscription(events=[Event.AWAY])
    hosts = hosts_that_fell_silent_at_once()
    server = Server()
    server.tick()
    hear(*hosts[1:], at=NOW + 20 * MINUTE)
    server.tick(NOW + 20 * MINUTE)
    server.wait(AWAY_AFTER - MINUTE)
    hear(*hosts[1:], at=NOW + 29 * MINUTE)
    server.tick(NOW + 29 * MINUTE)
    assert announced() == [True, False]
    server.wait(MINUTE)
    server.tick(NOW + 30 * MINUTE)
    assert (announced(), newest().subject) == ([True, False, True], "Host rack-0 is away")


def test_hosts_are_announced_one_by_one_while_another_is_heard() -> None:
    a_subscription(events=[Event.AWAY])
    hosts_that_fell_silent_at_once()
    a_host("in-maintenance", last_seen_at=NOW, state=HostState.MAINTENANCE)
    Server().tick(NOW + MINUTE)
    assert sorted(Notice.objects.values_list("subject", flat=True)) == [f"Host rack-{n} is away" for n in range(4)]


def test_a_host_that_has_long_been_silent_is_not_part_of_it() -> None:
    a_subscription(events=[Event.AWAY])
    hosts_that_fell_silent_at_once()
    a_host("old", last_seen_at=LONG_AGO - timedelta(days=2))
    Server().tick()
    assert sorted(notice.subject[:25] for notice in Notice.objects.all()) == [
        "4 hosts are away at once ",
        "Host old is away",
    ]


@pytest.mark.parametrize(("stopped_for", "told"), [(AWAY_AFTER, True), (AWAY_AFTER - MINUTE, False)])
def test_a_server_that_was_stopped_says_so_when_it_runs_again(stopped_for: timedelta, told: bool) -> None:
    a_subscription(events=[Event.AWAY])
    a_host()
    Heartbeat.objects.create(name=health.NOTICES, at=timezone.now() - stopped_for)
    for _ in range(2):
        announce_absent_hosts(timezone.now(), Watch())  # a new process
    assert [notice.subject[:28] for notice in Notice.objects.all()] == ["The server was stopped from "] * told


def test_a_tick_notes_its_time_after_it_asked_for_that_of_the_last_one(monkeypatch: pytest.MonkeyPatch) -> None:
    a_subscription(events=[Event.AWAY])
    Heartbeat.objects.create(name=health.NOTICES, at=timezone.now() - 2 * AWAY_AFTER)
    monkeypatch.setattr(tasks, "announce_absent_hosts", lambda now: announce_absent_hosts(now, Watch()))
    monkeypatch.setattr(tasks, "deliver", lambda: None)
    for _ in range(2):
        tasks.tick()
    assert Notice.objects.count() == 1
    last = health.last(health.NOTICES)
    assert last
    assert timezone.now() - last < AWAY_AFTER


def test_a_clock_that_jumps_is_no_stop_of_the_server() -> None:
    a_subscription(events=[Event.AWAY])
    Heartbeat.objects.create(name=health.NOTICES, at=timezone.now() - AWAY_AFTER)
    Server().tick(timezone.now())
    assert announced() == []


def test_a_gap_begins_the_watch_anew() -> None:
    times = iter([1000.0, 1030.0, 1031.0 + GAP_LIMIT.total_seconds()])
    watch = Watch(lambda: next(times))
    assert [watch.tick().total_seconds() for _ in range(3)] == [0, 30, 0]
