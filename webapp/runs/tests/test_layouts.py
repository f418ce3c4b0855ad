"""Runs on pools: what is armed, what is ordered, and which locks stay until the run is closed."""

from typing import Any

import pytest

from webapp.core.tests.factories import CAPABILITIES, a_drive, a_host, a_target, a_version
from webapp.hosts.models import Host, Target
from webapp.plans.document import Part, PlanDocument
from webapp.runs.dispatch import dispatch_host
from webapp.runs.ending import end_attempt
from webapp.runs.models import Attempt, AttemptKind, AttemptState, Run, TargetLock
from webapp.runs.orders import order_for
from webapp.runs.services import StartRefused, start_run
from worker.contract.orders import TrialOrder
from worker.contract.workload import TargetKind

pytestmark = pytest.mark.django_db
COMMON = {"size": "64m", "runtime": "3", "pattern": "randread"}


def a_pool(host: Host, drives: list[Target], **changes: Any) -> Target:
    fields = {
        "slug": "rack", "kind": "pool", "path": "/dev", "stable_id": "pool:rack:abc", "destroy": True,
        "drives": [drive.slug for drive in drives], "lock_keys": sorted(key for d in drives for key in d.lock_keys),
    }  # fmt: skip
    return a_target(host, **(fields | changes))


@pytest.fixture
def rack() -> tuple[Target, list[Target]]:
    host = a_host(capabilities=CAPABILITIES | {"layouts": ["md", "xfs"]})
    drives = [a_drive(host) for _ in range(3)]
    return a_pool(host, drives), drives


def start(pool: Target, layout: str, armed: list[Target]) -> Run:
    document = PlanDocument(title="L", common=COMMON, parts=(Part(name="a", factors={"layout": layout}),), repeats=2)
    return start_run(version=a_version(document), targets=[pool], by=None, armed=[d.serial for d in armed])


def test_every_drive_of_the_largest_layout_must_be_armed(rack: tuple[Target, list[Target]]) -> None:
    pool, drives = rack
    with pytest.raises(StartRefused) as refused:
        start(pool, "single / xfs, raid0 x2 chunk 64k / xfs", drives[:1])
    assert refused.value.code == "not_armed"
    assert f"{drives[1].serial} for {drives[1]}" in refused.value.message
    assert drives[2].serial not in refused.value.message
    run = start(pool, "single / xfs, raid0 x2 chunk 64k / xfs", drives[:2])
    assert {(t.destructive, t.attempts_left) for t in run.trials.all()} == {(True, 1)}


def test_a_host_says_what_layouts_it_cannot_build(rack: tuple[Target, list[Target]]) -> None:
    pool, drives = rack
    with pytest.raises(StartRefused, match=r"layouts with btrfs; .*: layouts with lvm"):
        start(pool, "2 legs of single / btrfs, 2 legs of single / lvm stripe 64k", drives)


def test_its_order_names_every_drive_and_its_serial(rack: tuple[Target, list[Target]]) -> None:
    pool, drives = rack
    start(pool, "raid0 x2 chunk 64k / xfs", drives)
    attempt = dispatch_host(pool.host_id)
    assert attempt
    order = order_for(Attempt.objects.select_related("trial__target", "run", "host").get(pk=attempt.pk))
    assert isinstance(order, TrialOrder)
    assert order.layout
    assert [(d.id, d.serial) for d in order.layout.drives] == [(d.slug, d.serial) for d in drives[:2]]
    assert (order.legs[0].target.id, order.legs[0].target.kind) == ("rack", TargetKind.DIRECTORY)
    assert order.arming
    assert order.arming.serials == tuple(drive.serial for drive in drives)


def test_its_drives_stay_locked_between_trials_until_the_run_is_closed(rack: tuple[Target, list[Target]]) -> None:
    pool, drives = rack
    seen_elsewhere = a_drive(lock_keys=drives[0].lock_keys)
    start(pool, "single / xfs", drives)
    for kind in (AttemptKind.TRIAL, AttemptKind.TRIAL, AttemptKind.CLOSE_RUN):
        attempt = dispatch_host(pool.host_id)
        assert attempt
        assert attempt.kind == kind
        assert TargetLock.objects.count() == 3
        plain = PlanDocument(title="P", common=COMMON, parts=(Part(name="a", factors={}),), repeats=1)
        start_run(version=a_version(plain), targets=[seen_elsewhere], by=None)
        assert not seen_elsewhere.host.attempts.exists()
        end_attempt(attempt, AttemptState.DONE)
    assert not TargetLock.objects.exists()
    assert dispatch_host(seen_elsewhere.host_id)


def test_a_lost_close_keeps_the_drives(rack: tuple[Target, list[Target]]) -> None:
    pool, drives = rack
    run = start(pool, "single / xfs", drives)
    for _ in range(2):
        attempt = dispatch_host(pool.host_id)
        assert attempt
        end_attempt(attempt, AttemptState.DONE)
    close = dispatch_host(pool.host_id)
    assert close
    end_attempt(close, AttemptState.LOST, code="lease_expired", message="not heard")
    assert TargetLock.objects.filter(attempt__run=run).count() == 3
