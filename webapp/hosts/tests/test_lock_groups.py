"""What lies on one device shares a lock group, on one host and on several."""

from collections.abc import Sequence

from webapp.hosts.lock_groups import lock_group
from webapp.hosts.models import Host
from worker.contract.inventory import BlockDevice, Inventory, PolicyTarget
from worker.contract.tests.examples import HELLO
from worker.contract.workload import TargetKind

A, B = Host(slug="a"), Host(slug="b")


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


def test_it_is_one_group_for_a_lun_that_two_hosts_see() -> None:
    facts = inventory(device("sda", "wwn-0x5000"))
    assert lock_group(A, block("sda", "wwn-0x5000"), facts) == lock_group(B, block("sda", "wwn-0x5000"), facts)


def test_it_is_one_group_for_a_drive_its_partition_and_a_directory_on_it() -> None:
    facts = inventory(device("sda", "wwn-0x5000"), device("sda1", "wwn-0x5000-part1", ["sda"]))
    groups = {
        lock_group(A, block("sda", "wwn-0x5000"), facts),
        lock_group(A, block("sda1", "wwn-0x5000-part1"), facts),
        lock_group(A, directory("sda1"), facts),
    }
    assert groups == {"wwn-0x5000"}


def test_it_is_one_group_for_two_paths_to_one_lun() -> None:
    facts = inventory(device("sda", "wwn-1"), device("sdb", "wwn-1"), device("dm-0", "dm-mpath", ["sda", "sdb"]))
    assert lock_group(A, block("dm-0", "dm-mpath"), facts) == "wwn-1"


def test_it_is_the_arrays_own_group_over_several_drives() -> None:
    facts = inventory(device("sda", "wwn-1"), device("sdb", "wwn-2"), device("md0", "md-uuid", ["sda", "sdb"]))
    assert lock_group(A, directory("md0"), facts) == f"{A.id}:md-uuid"


def test_it_keeps_hosts_apart_where_the_name_is_local() -> None:
    facts = inventory(device("loop0", "loop:/var/tmp/x"))
    assert lock_group(A, block("loop0", "loop:/var/tmp/x"), facts) != lock_group(B, block("loop0", "x"), facts)
    assert lock_group(A, directory(""), facts) != lock_group(B, directory(""), facts)


def test_it_survives_devices_that_name_each_other() -> None:
    facts = inventory(device("dm-0", "x", ["dm-1"]), device("dm-1", "y", ["dm-0"]))
    assert lock_group(A, block("dm-0", "x"), facts)
