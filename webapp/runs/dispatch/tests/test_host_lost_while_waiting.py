"""A run on several hosts waits for one of them, and one of its hosts goes away and comes back.

The run keeps its place in the queue: it starts once, on all its hosts, before the runs that came after it.
"""

from collections.abc import Callable
from datetime import timedelta

import pytest
from django.utils import timezone

from webapp.hosts.models import Host, HostState, Target
from webapp.hosts.services import revoke_host
from webapp.runs.dispatch.dispatcher import dispatch_host
from webapp.runs.dispatch.host_queues import queues
from webapp.runs.dispatch.tests.test_ahead import active, drives, end, started  # noqa: F401 - fixture
from webapp.runs.models import Attempt, Run, RunState
from webapp.runs.tasks import tick

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("broker")]


def be_silent(host: Host) -> None:
    Host.objects.filter(pk=host.pk).update(last_seen_at=timezone.now() - timedelta(hours=1))


def be_in_maintenance(host: Host) -> None:
    Host.objects.filter(pk=host.pk).update(state=HostState.MAINTENANCE)


def come_back(host: Host) -> None:
    Host.objects.filter(pk=host.pk).update(state=HostState.ACTIVE, last_seen_at=timezone.now())


def places(run: Run) -> list[str]:
    return [queue.host.slug for queue in queues() for entry in queue.entries if entry.run == run]


def dispatch(*targets: Target) -> None:
    for target in targets:
        dispatch_host(target.host_id)


@pytest.mark.parametrize("leave", [be_silent, be_in_maintenance])
@pytest.mark.parametrize("gone", [0, 1], ids=["the busy host", "the idle host"])
def test_the_run_keeps_its_place(
    drives: list[Target],  # noqa: F811 - fixture
    leave: Callable[[Host], None],
    gone: int,
) -> None:
    busy, wide = started(drives[0], runtime="10m"), started(*drives[:2])
    position = wide.queue_position
    leave(drives[gone].host)
    later = started(drives[1 - gone])
    dispatch(*drives[:2])
    assert active(wide) == 0
    end(busy)
    end(later)
    come_back(drives[gone].host)
    after = started(*drives[:2])
    dispatch(*drives[:2], *drives[:2])
    assert [active(run) for run in (wide, after)] == [2, 0]
    wide.refresh_from_db()
    assert wide.queue_position == position
    hosts = Attempt.objects.filter(run=wide).values_list("host", flat=True)
    assert sorted(hosts) == sorted(drive.host_id for drive in drives[:2])
    assert places(wide) == sorted(drive.host.slug for drive in drives[:2])


def test_a_revoked_host_frees_the_others(drives: list[Target]) -> None:  # noqa: F811 - fixture
    """The trials with this host are cancelled. Those without it are measured."""
    busy = started(drives[0], runtime="10m")
    wide = started(*drives[:2], hosts_at_once="1, 2")
    later = started(drives[1], runtime="2h")
    assert [active(run) for run in (busy, wide, later)] == [1, 0, 0]
    revoke_host(host=drives[0].host, by=None)
    tick()
    end(wide)
    wide.refresh_from_db()
    assert wide.state == RunState.DONE
    assert list(wide.trials.order_by("index").values_list("state", "reason_code")) == [
        ("cancelled", "host_revoked"), ("done", ""), ("cancelled", "host_revoked"),
    ]  # fmt: skip
    assert active(later) == 1
