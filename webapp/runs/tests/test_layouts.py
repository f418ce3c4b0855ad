"""Runs on pools: what is armed, what is ordered, and which locks stay until the run is closed."""

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone
from msgspec.structs import replace

from webapp.hosts.models import Host, HostState, Target
from webapp.plans.document import Part, PartStream, PlanDocument
from webapp.runs.arming import overwritten
from webapp.runs.dispatch.dispatcher import dispatch_host
from webapp.runs.dispatch.ending import end_attempt
from webapp.runs.dispatch.host_queues import queues
from webapp.runs.dispatch.locks import OLDEST_LOOK_SECONDS, drop_left
from webapp.runs.dispatch.orders import order_for
from webapp.runs.models import Attempt, AttemptKind, AttemptState, Run, TargetLock
from webapp.runs.services import StartRefused, start_run
from webapp.tests.factories.hosts import CAPABILITIES, a_drive, a_host, a_target
from webapp.tests.factories.plans import a_version
from worker.contract.inventory import BlockDevice, Controller, Inventory, PhysicalDrive, VirtualDrive
from worker.contract.orders import TrialOrder
from worker.contract.tests.example_inventory import INVENTORY
from worker.contract.workload import TargetKind
from worker.recipes.layouts.text import write

pytestmark = pytest.mark.django_db
COMMON = {"size": "64m", "runtime": "3", "pattern": "randread"}


def a_pool(host: Host, drives: list[Target], **changes: Any) -> Target:
    fields: dict[str, Any] = {
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
    with pytest.raises(StartRefused, match=r"layouts with btrfs .*; .*: layouts with lvm .*"):
        start(pool, "2 drives / btrfs, 2 drives / lvm stripe 64k", drives)


def test_its_order_names_every_drive_and_its_serial(rack: tuple[Target, list[Target]]) -> None:
    pool, drives = rack
    start(pool, "raid0 x2 chunk 64k / xfs", drives)
    attempt = dispatch_host(pool.host_id)
    assert attempt
    order = order_for(Attempt.objects.select_related("trial__target", "run", "host").get(pk=attempt.pk))
    assert isinstance(order, TrialOrder)
    (layout,) = order.layouts
    assert layout.pool == "rack"
    assert [(d.id, d.serial) for d in layout.drives] == [(d.slug, d.serial) for d in drives[:2]]
    assert (order.streams[0].target.id, order.streams[0].target.kind) == ("rack", TargetKind.DIRECTORY)
    assert order.arming
    assert order.arming.serials == tuple(drive.serial for drive in drives)


def test_an_order_of_streams_names_the_layout_of_each_pool(rack: tuple[Target, list[Target]]) -> None:
    pool, (first, second, third) = rack
    Target.objects.filter(pk=pool.pk).update(drives=[first.slug, second.slug])
    back = a_pool(pool.host, [third], slug="back", stable_id="pool:back:abc")
    streams = (
        PartStream(name="wide", factors={"layout": "raid0 x2 chunk 64k / xfs"}),
        PartStream(name="narrow", factors={"layout": "single / xfs"}),
    )
    part = Part(name="a", factors={"streams_on": "each"}, streams=streams)
    version = a_version(PlanDocument(title="L", common=COMMON, parts=(part,), repeats=1))
    with pytest.raises(StartRefused, match=f"{third.serial} for"):
        start_run(version=version, targets=[pool, back], by=None, armed=[first.serial, second.serial])
    armed = [drive.serial for drive in (first, second, third)]
    run = start_run(version=version, targets=[pool, back], by=None, armed=armed)
    assert {*overwritten(run.trials.all())} == {first, second, third}
    attempt = dispatch_host(pool.host_id)
    assert attempt
    order = order_for(Attempt.objects.select_related("trial__target", "run", "host").get(pk=attempt.pk))
    assert isinstance(order, TrialOrder)
    given = [(each.pool, write(each.layout), [drive.serial for drive in each.drives]) for each in order.layouts]
    assert given == [
        ("rack", "raid0 x2 chunk 64k / xfs", armed[:2]),
        ("back", "single / xfs", armed[2:]),
    ]
    assert [(each.name, each.target.id) for each in order.streams] == [("wide", "rack"), ("narrow", "back")]


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
    end_attempt(close, AttemptState.LOST, code="lease_expired", fields={"accepted": True})
    assert TargetLock.objects.filter(attempt__run=run).count() == 3


def fail_close(pool: Target, drives: list[Target]) -> Run:
    """A run whose layout could not be taken down, a while ago."""
    run = start(pool, "single / xfs", drives)
    for state in (AttemptState.DONE, AttemptState.DONE, AttemptState.FAILED):
        attempt = dispatch_host(pool.host_id)
        assert attempt
        end_attempt(attempt, state, code="settings_not_restored", fields={"message": "left: in use"})
    run.refresh_from_db()
    assert (run.state, run.reason_code) == ("failed", "settings_not_restored")
    long_ago = timezone.now() - timedelta(seconds=OLDEST_LOOK_SECONDS + 1)
    Attempt.objects.filter(run=run, kind=AttemptKind.CLOSE_RUN).update(ended_at=long_ago)
    return run


def reading(target: Target) -> Run:
    plain = PlanDocument(title="P", common=COMMON, parts=(Part(name="a", factors={}),), repeats=1)
    return start_run(version=a_version(plain), targets=[target], by=None)


def seen(*devices: tuple[str, str]) -> Inventory:
    """An inventory with these devices and what each lies on."""
    found = tuple(
        BlockDevice(name=name, path=f"/dev/{name}", kind="disk", major_minor="8:0", stable_id=name, parents=(below,))
        for name, below in devices
    )
    return replace(INVENTORY, block_devices=found, file_systems=())


def test_a_layout_that_could_not_be_taken_down_keeps_its_drives_from_other_hosts(
    rack: tuple[Target, list[Target]],
) -> None:
    pool, drives = rack
    elsewhere, apart = a_drive(lock_keys=drives[0].lock_keys), a_drive()
    run = fail_close(pool, drives)
    reading(elsewhere)
    assert not dispatch_host(elsewhere.host_id)
    (queue,) = queues()
    assert f"a layout of run {run.number} that {pool.host}" in queue.entries[0].waits_for
    reading(apart)
    assert dispatch_host(apart.host_id)


def test_its_own_host_goes_on_with_them_and_frees_them_with_its_next_close(rack: tuple[Target, list[Target]]) -> None:
    pool, drives = rack
    fail_close(pool, drives)
    start(pool, "single / xfs", drives)
    for _ in range(3):
        attempt = dispatch_host(pool.host_id)
        assert attempt
        end_attempt(attempt, AttemptState.DONE)
    assert not TargetLock.objects.exists()


def test_they_are_free_once_the_host_says_that_nothing_is_on_them(rack: tuple[Target, list[Target]]) -> None:
    pool, drives = rack
    for number, drive in enumerate(drives):
        Target.objects.filter(pk=drive.pk).update(device=f"sd{number}")
    run = fail_close(pool, drives)
    drop_left(pool.host, seen(("md0", "sd1")))
    assert set(TargetLock.objects.values_list("lock_key", flat=True)) == set(drives[1].lock_keys)
    Attempt.objects.filter(run=run, kind=AttemptKind.CLOSE_RUN).update(ended_at=timezone.now())
    drop_left(pool.host, seen())
    assert TargetLock.objects.exists()  # that look may be older than the failure
    Attempt.objects.filter(run=run, kind=AttemptKind.CLOSE_RUN).update(ended_at=run.created_at - timedelta(hours=1))
    drop_left(a_host(), seen())
    assert TargetLock.objects.exists()
    drop_left(pool.host, seen())
    assert not TargetLock.objects.exists()


def test_a_virtual_drive_that_still_stands_keeps_its_slots(rack: tuple[Target, list[Target]]) -> None:
    pool, drives = rack
    for drive in drives:
        Target.objects.filter(pk=drive.pk).update(lock_keys=[f"slot:{drive.serial}"])
    Target.objects.filter(pk=pool.pk).update(lock_keys=[f"slot:{drive.serial}" for drive in drives])
    run = fail_close(pool, drives)
    Target.objects.filter(pk__in=[drive.pk for drive in drives]).update(kind="slot")
    physical = tuple(PhysicalDrive(slot=f"1:{n}", serial=drive.serial) for n, drive in enumerate(drives))
    virtual = (VirtualDrive(number="0", device="sdx", drives=("1:1",)),)
    stands = Controller(address="a", tool="storcli", physical_drives=physical, virtual_drives=virtual)
    drop_left(pool.host, replace(seen(), controllers=(stands,)))
    assert [lock.lock_key for lock in TargetLock.objects.all()] == [f"slot:{drives[1].serial}"]
    drop_left(pool.host, replace(seen(), controllers=(replace(stands, virtual_drives=()),)))
    assert not TargetLock.objects.filter(attempt__run=run).exists()


def test_a_revoked_host_keeps_nothing_from_others(rack: tuple[Target, list[Target]]) -> None:
    pool, drives = rack
    elsewhere = a_drive(lock_keys=drives[0].lock_keys)
    fail_close(pool, drives)
    Host.objects.filter(pk=pool.host_id).update(state=HostState.REVOKED)
    reading(elsewhere)
    assert dispatch_host(elsewhere.host_id)
