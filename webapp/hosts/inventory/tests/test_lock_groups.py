"""Targets that share a drive share a key, on one host and on several."""

from collections.abc import Sequence
from typing import Any

import pytest
from msgspec.structs import replace

from webapp.core.errors import Refusal
from webapp.hosts.inventory import lock_groups
from webapp.hosts.inventory.lock_groups import in_virtual_drives, sharing
from webapp.hosts.models import Host
from webapp.tests.factories.hosts import a_drive, a_host, a_target
from worker.contract.inventory import (
    BlockDevice,
    Controller,
    FileSystem,
    Inventory,
    PhysicalDrive,
    PolicyTarget,
    VirtualDrive,
)
from worker.contract.tests.examples import HELLO
from worker.contract.workload import TargetKind

A, B = Host(slug="a"), Host(slug="b")


def lock_keys(host: Host, target: PolicyTarget, inventory: Inventory) -> list[str]:
    (found,) = lock_groups.lock_keys(host, [target], inventory)
    return found


def device(name: str, stable_id: str, parents: Sequence[str] = ()) -> BlockDevice:
    return BlockDevice(
        name=name, path=f"/dev/{name}", kind="disk", major_minor="8:0", stable_id=stable_id, parents=tuple(parents)
    )


def inventory(*devices: BlockDevice) -> Inventory:
    facts = HELLO.inventory
    return Inventory(
        hostname="h", distribution="", hypervisor="", cpu=facts.cpu, memory_bytes=1, kernel=facts.kernel,
        block_devices=devices,
    )  # fmt: skip


def directory(on: str) -> PolicyTarget:
    return PolicyTarget(id="d", kind=TargetKind.DIRECTORY, path="/srv/d", stable_id="dir:/srv/d", device=on)


def block(name: str, stable_id: str) -> PolicyTarget:
    return PolicyTarget(id="b", kind=TargetKind.BLOCK, path=f"/dev/{name}", stable_id=stable_id, device=name)


def test_a_lun_that_two_hosts_see_is_one_drive() -> None:
    facts = inventory(device("sda", "wwn-0x5000"))
    assert lock_keys(A, block("sda", "wwn-0x5000"), facts) == lock_keys(B, block("sda", "wwn-0x5000"), facts)


def test_a_drive_its_partition_and_a_directory_on_it_are_one() -> None:
    facts = inventory(device("sda", "wwn-0x5000"), device("sda1", "wwn-0x5000-part1", ["sda"]))
    for target in (block("sda", "wwn-0x5000"), block("sda1", "wwn-0x5000-part1"), directory("sda1")):
        assert lock_keys(A, target, facts) == ["wwn-0x5000"]


def test_two_paths_to_one_lun_are_one() -> None:
    facts = inventory(device("sda", "wwn-1"), device("sdb", "wwn-1"), device("dm-0", "dm-mpath", ["sda", "sdb"]))
    assert lock_keys(A, block("dm-0", "dm-mpath"), facts) == ["wwn-1"]


def test_a_volume_on_an_array_has_every_member() -> None:
    facts = inventory(
        device("sdb", "wwn-2"), device("sda", "wwn-1"), device("sda1", "wwn-1-part1", ["sda"]),
        device("md0", "md-uuid", ["sda1", "sdb"]), device("dm-0", "dm-lv", ["md0"]),
    )  # fmt: skip
    for target in (block("dm-0", "dm-lv"), directory("md0")):
        assert lock_keys(A, target, facts) == ["wwn-1", "wwn-2"]


def test_a_directory_on_a_file_system_over_several_drives_has_every_one() -> None:
    facts = inventory(device("sda", "wwn-1"), device("sdb", "wwn-2"), device("sdc", "wwn-3"))
    root = FileSystem(kind="ext4", devices=("sdc",), points=("/",), options="rw")
    btrfs = FileSystem(kind="btrfs", devices=("sda", "sdb"), points=("/mnt", "/srv"), options="rw")
    other = FileSystem(kind="xfs", devices=("sdc",), points=("/srv/data",), options="rw")
    facts = replace(facts, file_systems=(root, btrfs, other))
    assert lock_keys(A, directory(""), facts) == ["wwn-1", "wwn-2"]


def test_namespaces_of_one_nvme_drive_share_it() -> None:
    first, second = (
        replace(device(name, f"nvme-eui.{name}"), transport="nvme", model="MZ", serial="S1")
        for name in ("nvme0n1", "nvme0n2")
    )
    ours = lock_keys(A, block("nvme0n1", "nvme-eui.nvme0n1"), inventory(first, second))
    theirs = lock_keys(B, block("nvme0n2", "nvme-eui.nvme0n2"), inventory(first, second))
    assert set(ours) & set(theirs) == {"nvme-drive:MZ:S1"}
    assert ours != theirs


def controller(**changes: Any) -> Controller:
    slots = ("252:0", "S0", ""), ("252:1", "S1", ""), ("252:2", "", ""), ("252:3", "S3", "sdd")
    physical = tuple(PhysicalDrive(slot=slot, serial=serial, device=device) for slot, serial, device in slots)
    shown = ("sda", "0", ("252:0", "252:1")), ("sdb", "1", ("252:1", "252:2")), ("sdc", "2", ("252:2",))
    virtual = tuple(VirtualDrive(number=number, device=device, drives=drives) for device, number, drives in shown)
    return Controller(**{
        "address": "0000:03:00.0", "tool": "storcli", "virtual_drives": virtual, "physical_drives": physical, **changes
    })  # fmt: skip


def test_virtual_drives_of_a_controller_have_the_physical_drives_behind_them() -> None:
    disks = [device(name, f"wwn-{name}") for name in ("sda", "sdb", "sdc", "sdd")]
    facts = replace(inventory(*disks), controllers=(controller(),))
    keys = {disk.name: set(lock_keys(A, block(disk.name, disk.stable_id), facts)) for disk in disks}
    assert keys["sda"] & keys["sdb"] == {"slot:S1"}
    assert keys["sdb"] & keys["sdc"] == {f"{A.id}:physical:0000:03:00.0/252:2"}
    assert not keys["sda"] & keys["sdc"]
    assert keys["sdd"] == {"wwn-sdd", "slot:S3"}


def test_a_physical_drive_behind_two_controllers_is_one_and_the_slot_that_is_a_target() -> None:
    other = controller(
        address="0000:04:00.0", virtual_drives=(VirtualDrive(number="0", device="sde", drives=("9:9",)),),
        physical_drives=(PhysicalDrive(slot="9:9", serial="S0"),),
    )  # fmt: skip
    disks = [device(name, f"wwn-{name}") for name in ("sda", "sde")]
    facts = replace(inventory(*disks), controllers=(controller(), other))
    ours, theirs = (lock_keys(A, block(name, f"wwn-{name}"), facts) for name in ("sda", "sde"))
    assert set(ours) & set(theirs) == {"slot:S0"}
    slot = PolicyTarget(id="s", kind=TargetKind.SLOT, path="/0000:03:00.0/252:0", stable_id="slot:S0", serial="S0")
    assert lock_keys(B, slot, facts) == ["slot:S0"]
    assert in_virtual_drives(facts) == {"slot:S0", "slot:S1", "physical:0000:03:00.0/252:2"}
    seen = replace(facts, controllers=(controller(tool="sysfs"),))
    assert lock_keys(A, block("sda", "wwn-sda"), seen) == ["wwn-sda"]


def test_local_names_are_different_on_each_host() -> None:
    facts = inventory(device("loop0", "loop:/var/tmp/x"))
    assert lock_keys(A, block("loop0", "loop:/var/tmp/x"), facts) != lock_keys(B, block("loop0", "x"), facts)
    assert lock_keys(A, directory(""), facts) != lock_keys(B, directory(""), facts)


def test_it_survives_devices_that_name_each_other() -> None:
    facts = inventory(device("dm-0", "x", ["dm-1"]), device("dm-1", "y", ["dm-0"]))
    assert lock_keys(A, block("dm-0", "x"), facts)


@pytest.mark.django_db
def test_it_lists_targets_that_share_a_drive() -> None:
    array = a_drive(lock_keys=["wwn-1", "wwn-2"])
    member = a_drive(a_host(), lock_keys=["wwn-2"])
    a_drive(array.host, lock_keys=["wwn-1"], in_policy=False)
    a_target(lock_keys=["wwn-3"])
    assert sharing([array, member]) == {array.pk: [member], member.pk: [array]}
    assert sharing([]) == {}


def test_a_drive_in_a_slot_is_the_same_behind_two_controllers() -> None:
    one, other = (
        PolicyTarget(
            id="s", kind=TargetKind.SLOT, path=f"/0000:0{n}:00.0/252:{n}", stable_id="slot:SER1", serial="SER1"
        )
        for n in (3, 4)
    )
    assert lock_keys(A, one, inventory()) == lock_keys(B, other, inventory()) == ["slot:SER1"]


def layered(width: int, layers: int) -> Inventory:
    """Each device lies on all devices of the layer below it: width ** layers ways to the bottom."""
    names = [[f"d{layer}-{number}" for number in range(width)] for layer in range(layers)]
    below = [[], *names]
    return inventory(*(device(name, f"wwn-{name}", below[layer]) for layer in range(layers) for name in names[layer]))


def test_it_walks_each_device_once_however_many_ways_lead_to_it() -> None:
    facts = layered(width=4, layers=40)
    assert lock_keys(A, block("d39-0", "x"), facts) == [f"wwn-d0-{number}" for number in range(4)]


def test_it_survives_a_device_that_lies_on_itself() -> None:
    facts = inventory(device("sda", "wwn-1", ["sda", "sda", "sdb"]), device("sdb", "wwn-2", ["sda"]))
    assert lock_keys(A, block("sda", "wwn-1"), facts) == ["wwn-1"]


def test_it_refuses_more_drives_than_any_host_has() -> None:
    many = [device(f"s{number}", f"wwn-{number}") for number in range(300)]
    md = device("md0", "md", [disk.name for disk in many])
    with pytest.raises(Refusal, match="300 drives lie under md0"):
        lock_keys(A, block("md0", "md"), inventory(*many, md))


def test_it_bounds_the_work_for_all_targets_of_a_host() -> None:
    facts = layered(width=200, layers=8)
    targets = [block(f"d7-{number}", "x") for number in range(200)]
    with pytest.raises(Refusal, match="too many devices"):
        lock_groups.lock_keys(A, targets, facts)


@pytest.mark.django_db
def test_it_names_only_some_of_many_targets_on_one_drive() -> None:
    targets = [a_drive(lock_keys=["wwn-1"]) for _ in range(lock_groups.MAX_SHARING + 5)]
    assert {len(others) for others in sharing(targets).values()} == {lock_groups.MAX_SHARING}
