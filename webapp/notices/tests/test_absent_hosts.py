"""Which absence of a host is announced, and how often."""

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from webapp.hosts.models import Host, HostState
from webapp.notices.absent_hosts import AWAY_AFTER, GAP_LIMIT, Watch, announce_absent_hosts
from webapp.notices.models import Event, Notice
from webapp.tests.factories.hosts import a_host
from webapp.tests.factories.notices import a_plan, a_subscription

pytestmark = pytest.mark.django_db

NOW = timezone.now()
LONG_AGO = NOW - AWAY_AFTER - timedelta(minutes=1)


def announced() -> list[bool]:
    """`away` of each notice, oldest first."""
    return [notice.payload["detail"]["away"] for notice in Notice.objects.order_by("created_at")]


def test_an_absence_is_announced_once_and_so_is_the_return() -> None:
    a_subscription(events=[Event.AWAY])
    a_subscription(events=[Event.ENDED])
    a_subscription(events=[Event.AWAY], plan=a_plan())
    host = a_host(last_seen_at=LONG_AGO)
    a_host(last_seen_at=NOW)
    for _ in range(2):
        announce_absent_hosts(NOW, AWAY_AFTER)
    assert announced() == [True]
    assert Notice.objects.get().payload["detail"]["host"] == host.slug
    Host.objects.filter(pk=host.pk).update(last_seen_at=NOW)
    for _ in range(2):
        announce_absent_hosts(NOW, AWAY_AFTER)
    assert announced() == [True, False]
    announce_absent_hosts(NOW + AWAY_AFTER + timedelta(seconds=1), AWAY_AFTER)
    assert announced().count(True) == 3  # both hosts


@pytest.mark.parametrize("changes", [{"state": HostState.MAINTENANCE}, {"state": HostState.REVOKED}])
def test_a_host_that_may_be_away_is_not_announced(changes: dict[str, Any]) -> None:
    a_subscription(events=[Event.AWAY])
    a_host(last_seen_at=LONG_AGO, **changes)
    announce_absent_hosts(NOW, AWAY_AFTER)
    assert announced() == []


def test_a_server_that_was_away_itself_waits() -> None:
    a_subscription(events=[Event.AWAY])
    a_host(last_seen_at=LONG_AGO)
    announce_absent_hosts(NOW, AWAY_AFTER - timedelta(seconds=1))
    assert announced() == []


def test_a_gap_begins_the_watch_anew() -> None:
    watch = Watch()
    assert watch.tick(1000.0) == timedelta(0)
    assert watch.tick(1030.0) == timedelta(seconds=30)
    assert watch.tick(1031.0 + GAP_LIMIT.total_seconds()) == timedelta(0)
