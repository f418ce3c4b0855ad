"""Every difference between two inventories, as typed differences and as rows of a table."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from webapp.hosts.inventory.diff import TableRow, table
from worker.contract.inventory import Inventory
from worker.contract.tests.example_inventory import INVENTORY

replace = msgspec.structs.replace
(DRIVE,) = INVENTORY.block_devices


def with_drives(*drives: object) -> Inventory:
    return replace(INVENTORY, block_devices=drives)


def test_it_says_nothing_of_what_stayed() -> None:
    assert table(INVENTORY, INVENTORY) == []


def test_it_names_where_what_from_and_to() -> None:
    kernel = replace(INVENTORY.kernel, release="6.12.1")
    after = replace(INVENTORY, kernel=kernel, block_devices=(replace(DRIVE, firmware="NEW", read_only=True),))
    drive = f"Block device {DRIVE.name} ({DRIVE.model}, {DRIVE.serial})"
    assert table(INVENTORY, after) == [
        TableRow("Host", "kernel, release", INVENTORY.kernel.release, "6.12.1"),
        TableRow(drive, "firmware", DRIVE.firmware, "NEW"),
        TableRow(drive, "read only", "no", "yes"),
    ]


def test_a_drive_that_moved_is_the_same_and_one_that_was_exchanged_is_not() -> None:
    moved = table(INVENTORY, with_drives(replace(DRIVE, name="nvme1n1")))
    assert [(one.what, one.before, one.after) for one in moved] == [("name", DRIVE.name, "nvme1n1")]
    other = replace(DRIVE, stable_id="eui.2", serial="OTHER")
    assert [(one.before, one.after) for one in table(INVENTORY, with_drives(other))] == [
        ("", "removed"), ("", "added"),
    ]  # fmt: skip


def test_things_that_are_alike_are_told_apart_by_their_order() -> None:
    assert table(with_drives(DRIVE, DRIVE), with_drives(DRIVE, DRIVE)) == []
    assert len(table(with_drives(DRIVE, DRIVE), with_drives(DRIVE))) == 1


@given(st.sampled_from([field.name for field in msgspec.structs.fields(type(DRIVE))]))
def test_no_fact_of_a_drive_is_left_out(name: str) -> None:
    """Whatever an inventory learns to say: it shows."""
    plain = msgspec.to_builtins(DRIVE)
    changed = {**plain, name: _other(plain.get(name))}
    before = msgspec.to_builtins(INVENTORY) | {"block_devices": [plain]}
    after = before | {"block_devices": [changed]}
    try:
        pair = [msgspec.convert(one, Inventory) for one in (before, after)]
    except msgspec.ValidationError:
        return  # a fact whose values are not guessed here
    assert table(*pair)


def _other(value: object) -> object:
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return value + 1
    return [] if isinstance(value, list) else "other"


def test_memory_that_moves_between_nodes_is_no_change() -> None:
    (node,) = INVENTORY.numa_nodes
    less = replace(INVENTORY, numa_nodes=(replace(node, memory_bytes=node.memory_bytes // 2),))
    assert table(INVENTORY, less) == []
    assert table(INVENTORY, replace(INVENTORY, numa_nodes=(replace(node, cpus="0-15"),)))


@pytest.mark.parametrize(("factor", "changes"), [(0.95, 0), (1.05, 0), (0.85, 1), (1.15, 1)])
def test_a_balloon_changes_no_host_and_a_memory_module_does(factor: float, changes: int) -> None:
    after = replace(INVENTORY, memory_bytes=int(factor * INVENTORY.memory_bytes))
    assert len(table(INVENTORY, after)) == changes
