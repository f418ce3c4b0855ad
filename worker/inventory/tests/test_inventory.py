import os
import shutil
import time
from pathlib import Path

import pytest

from worker import inventory
from worker.contract.base import encode
from worker.contract.workload import FioWorkload, Pattern, Stream, TargetKind, TargetRef
from worker.guard.tests import rig
from worker.inventory.devices import geometry
from worker.kernel.targets import OpenTarget
from worker.settings.processors import parse_list


def test_it_takes_the_inventory_of_this_host_quickly() -> None:
    started_at = time.monotonic()
    found = inventory.take()
    assert time.monotonic() - started_at < 2
    assert found.cpu.threads == os.cpu_count()
    assert found.kernel.release == os.uname().release
    assert found.memory_bytes > 0
    assert encode(found)


@pytest.mark.root
@pytest.mark.skipif(os.geteuid() != 0, reason="needs root: loop devices")
def test_it_tells_what_a_device_is_and_what_holds_it(tmp_path: Path) -> None:
    file = rig.sparse(tmp_path / "disk.img")
    with rig.loop(file) as device, rig.mounted(device, tmp_path / "point") as point:
        found = next(d for d in inventory.take().block_devices if d.path == device)
        assert (found.kind, found.size_bytes, found.backing_file) == ("loop", 64 * rig.MIB, str(file))
        assert found.stable_id == f"loop:{file}"
        assert found.scheduler in found.schedulers
        assert (found.signature, [(h.kind, h.detail) for h in found.holders]) == (
            "ext4",
            [("mount", f"{point} (ext4)")],
        )


@pytest.mark.root
@pytest.mark.skipif(os.geteuid() != 0, reason="needs root: loop devices")
def test_it_observes_device_and_file_system_under_a_stream(tmp_path: Path) -> None:
    stream = Stream(
        number=3,
        target=TargetRef(id="d", kind=TargetKind.DIRECTORY, path=str(tmp_path), stable_id="dir:x"),
        workload=FioWorkload(pattern=Pattern.READ, runtime_s=1),
    )
    with rig.loop(rig.sparse(tmp_path / "disk.img")) as device, rig.mounted(device, tmp_path / "point") as point:
        name, fd = Path(device).name, os.open(point, os.O_RDONLY)
        try:
            facts = inventory.observed_facts(
                OpenTarget(path=str(point), device=name, directory_fd=fd, target="d"), stream
            )
        finally:
            os.close(fd)
    assert facts["stream.3.file_system"] == "ext4"
    assert "relatime" in facts["stream.3.file_system.options"]
    assert {f"device.{name}.scheduler", f"device.{name}.nr_requests", "kernel.release", "memory.bytes"} <= set(facts)


def test_it_tells_processors_memory_and_file_systems_of_this_host() -> None:
    found = inventory.take()
    online = sum(len(parse_list(node.cpus)) for node in found.numa_nodes)
    assert online in (0, os.cpu_count())
    assert all(words for words in found.cpu.mitigations.values())
    roots = [each for each in found.file_systems if "/" in each.points]
    assert all(each.kind and each.options for each in roots)
    assert {each.controller for each in found.block_devices} - {""} <= {each.address for each in found.pci}


@pytest.mark.root
@pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("mkfs.btrfs"), reason="needs root and btrfs-progs")
def test_it_tells_a_btrfs_over_two_devices_once(tmp_path: Path) -> None:
    with (
        rig.loop(rig.sparse(tmp_path / "a", 256 * rig.MIB)) as one,
        rig.loop(rig.sparse(tmp_path / "b", 256 * rig.MIB)) as two,
    ):
        rig.run("mkfs.btrfs", "-q", "-f", "-d", "raid0", "-m", "raid1", one, two)
        with rig.mounted(one, tmp_path / "point", fresh=False) as point:
            found = [each for each in inventory.take().file_systems if str(point) in each.points]
    assert [(each.kind, each.devices) for each in found] == [("btrfs", tuple(sorted((Path(one).name, Path(two).name))))]
    assert found[0].detail == "data raid0, metadata raid1"


def test_it_reads_the_tables_of_volumes(tmp_path: Path) -> None:
    for name, slaves in (("dm-0", 2), ("dm-1", 1)):
        at = tmp_path / "class/block" / name
        for folder in ("dm", *(f"slaves/sd{number}" for number in range(slaves))):
            (at / folder).mkdir(parents=True)
        (at / "dm/name").write_text(f"vg-{name}\n")
        (at / "dm/uuid").write_text("LVM-abc\n")
    tables = {"vg-dm-0": "0 41943040 striped 2 128 8:0 2048 8:16 2048"}
    striped, unknown = geometry("dm-0", tables, tmp_path), geometry("dm-1", {}, tmp_path)
    assert striped is not None
    assert unknown is not None
    assert (striped.level, striped.members, striped.chunk_bytes, striped.name) == ("striped", 2, 65536, "vg-dm-0")
    assert (unknown.level, unknown.members, unknown.chunk_bytes) == ("lvm", 1, None)


def test_it_reads_how_an_array_is_put_together(tmp_path: Path) -> None:
    at = tmp_path / "class/block/md0/md"
    at.mkdir(parents=True)
    values = {"level": "raid5", "raid_disks": "4", "chunk_size": "524288", "array_state": "clean"}
    for name, value in {**values, "metadata_version": "1.2"}.items():
        (at / name).write_text(value + "\n")
    found = geometry("md0", {}, tmp_path)
    assert found is not None
    assert (found.level, found.members, found.chunk_bytes, found.detail) == ("raid5", 4, 524288, "clean, 1.2")


def test_facts_that_each_build_of_a_layout_draws_again_are_left_out() -> None:
    facts = {"device.md127.model": "md", "stream.0.file_system": "xfs"}
    drawn = {
        "device.md127.stable_id": "md-uuid-3c1c:1", "device.dm-0.below.md127": "md-uuid-3c1c:1",
        "stream.0.file_system.mount": "/var/lib/sweetspot/layouts/k3v9",
    }  # fmt: skip
    assert inventory.same_in_each_build(facts | drawn) == facts
