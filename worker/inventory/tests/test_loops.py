import msgspec
import pytest

from worker.contract.inventory import BlockDevice, FileSystem
from worker.contract.tests.example_inventory import INVENTORY
from worker.inventory.devices import without_foreign_loops


def device(name: str, kind: str, *parents: str) -> BlockDevice:
    return msgspec.structs.replace(INVENTORY.block_devices[0], name=name, kind=kind, parents=parents)


def system(*devices: str) -> FileSystem:
    return FileSystem(kind="ext4", devices=devices, points=("/mnt",), options="rw")


FOUND = msgspec.structs.replace(
    INVENTORY,
    block_devices=(
        device("sda", "disk"),
        device("loop0", "loop"),
        device("loop0p1", "partition", "loop0"),
        device("loop1", "loop"),
        device("dm-0", "dm", "loop1"),
        device("loop2", "loop"),
        device("loop3", "loop"),
    ),
    file_systems=(system("sda"), system("loop0p1"), system("loop2", "loop3")),
)


@pytest.mark.parametrize(
    ("targets", "left_out"),
    [
        ((), {"loop0", "loop0p1"}),
        (("sda", ""), {"loop0", "loop0p1"}),
        (("loop0p1",), set()),
        (("loop0",), set()),
    ],
)
def test_it_leaves_out_loop_devices_that_no_target_and_no_other_device_is_on(
    targets: tuple[str, ...], left_out: set[str]
) -> None:
    kept = without_foreign_loops(FOUND, targets)
    assert {each.name for each in FOUND.block_devices} - {each.name for each in kept.block_devices} == left_out
    assert kept.file_systems == tuple(each for each in FOUND.file_systems if not left_out.issuperset(each.devices))
