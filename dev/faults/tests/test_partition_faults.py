"""What the checks of a partitioned drive see. The drive is a real loop device; a write stands for a wrong worker."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from dev.faults.fault_schedule import ScheduledFault
from dev.faults.partition_faults import MEMBERS, grow_partition, make_member, repartition
from dev.faults.partitioned_drive import FIRST, OTHER, PART_SECTORS, SECTOR, START, PartitionedDrive
from dev.stack import processes
from worker.guard.content import signatures_on
from worker.guard.tests.rig import needs_root
from worker.kernel.signatures import part_uuid

pytestmark = needs_root


@pytest.fixture
def drive(tmp_path: Path) -> Iterator[PartitionedDrive]:
    drive = PartitionedDrive(tmp_path / "partitioned.img")
    yield drive
    processes.run(["partx", "--delete", drive.device])
    processes.run(["losetup", "--detach", drive.device])


def name(drive: PartitionedDrive) -> str:
    return Path(drive.partition).name


def write_at(device: str, offset: int) -> None:
    descriptor = os.open(device, os.O_WRONLY)
    os.pwrite(descriptor, bytes(4096), offset)
    os.fsync(descriptor)
    os.close(descriptor)


def inject(
    fault: Callable[[Any, ScheduledFault], None], drive: PartitionedDrive, meanwhile: Callable[[], object], *,
    choice: float = 0.0,
) -> None:  # fmt: skip
    installation = SimpleNamespace(host=lambda _: SimpleNamespace(partitioned=drive), pause=lambda _: meanwhile())
    fault(installation, ScheduledFault("any", host=0, at_s=0, duration_s=1, choice=choice))


def test_bytes_outside_the_partition_belong_to_somebody_else(drive: PartitionedDrive) -> None:
    write_at(drive.partition, 0)
    assert drive.violations() == []
    write_at(drive.device, (START + PART_SECTORS) * SECTOR)
    assert len(drive.violations()) == 1


def test_another_partition_of_the_same_number_has_them(drive: PartitionedDrive) -> None:
    uuids: list[str] = []
    inject(repartition, drive, lambda: uuids.append(part_uuid(name(drive))))
    assert (uuids, part_uuid(name(drive)), drive.violations()) == ([OTHER], FIRST, [])
    inject(repartition, drive, lambda: write_at(drive.partition, 0))
    assert len(drive.violations()) == 1


def test_a_partition_that_grows_reaches_them_also_while_it_is_in_use(drive: PartitionedDrive) -> None:
    held = os.open(drive.partition, os.O_RDWR | os.O_EXCL)
    inject(grow_partition, drive, lambda: write_at(drive.partition, PART_SECTORS * SECTOR))
    os.close(held)
    assert len(drive.violations()) == 1


@pytest.mark.parametrize("number", range(len(MEMBERS)))
def test_a_member_of_an_array_must_not_be_written_to(drive: PartitionedDrive, number: int) -> None:
    choice, types = number / len(MEMBERS), set[str]()
    inject(make_member, drive, lambda: types.update(each.type for each in signatures_on(name(drive))), choice=choice)
    assert len(types) == 1
    assert types <= {"linux_raid_member", "isw_raid_member"}
    assert not signatures_on(name(drive))
    assert drive.problems == []
    inject(make_member, drive, lambda: write_at(drive.partition, 0), choice=choice)
    assert len(drive.problems) == 1


def test_a_drive_in_use_becomes_no_member(drive: PartitionedDrive) -> None:
    held, paused = os.open(drive.partition, os.O_RDWR | os.O_EXCL), list[int]()
    inject(make_member, drive, lambda: paused.append(1))
    os.close(held)
    assert (paused, drive.problems) == ([], [])
