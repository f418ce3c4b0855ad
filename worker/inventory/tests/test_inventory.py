import os
import time
from pathlib import Path

import pytest

from worker import inventory
from worker.contract.base import encode
from worker.contract.workload import Leg, Pattern, TargetKind, TargetRef, Workload
from worker.guard.tests import rig
from worker.inventory.signature import read_signature
from worker.place import Place


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
            "ext2/3/4",
            [("mount", f"{point} (ext4)")],
        )


@pytest.mark.root
@pytest.mark.skipif(os.geteuid() != 0, reason="needs root: loop devices")
def test_it_observes_device_and_file_system_under_a_leg(tmp_path: Path) -> None:
    leg = Leg(
        number=3,
        target=TargetRef(id="d", kind=TargetKind.DIRECTORY, path=str(tmp_path), stable_id="dir:x"),
        workload=Workload(pattern=Pattern.READ, runtime_s=1),
    )
    with rig.loop(rig.sparse(tmp_path / "disk.img")) as device, rig.mounted(device, tmp_path / "point") as point:
        name, fd = Path(device).name, os.open(point, os.O_RDONLY)
        try:
            facts = inventory.observed_facts(Place(path=str(point), device=name, cwd_fd=fd, target="d"), leg)
        finally:
            os.close(fd)
    assert facts["leg.3.file_system"] == "ext4"
    assert "relatime" in facts["leg.3.file_system.options"]
    assert {f"device.{name}.scheduler", f"device.{name}.nr_requests", "kernel.release", "memory.bytes"} <= set(facts)


@pytest.mark.parametrize(
    ("offset", "content", "name"),
    [
        (512, b"EFI PART", "gpt"),
        (-512, b"EFI PART", "gpt (backup)"),
        (512, b"LABELONE", "lvm2"),
        (0, b"LUKS\xba\xbe", "luks"),
        (4096, b"\xfc\x4e\x2b\xa9", "md raid"),
        (-65536, b"\xfc\x4e\x2b\xa9", "md raid"),
        (0x10040, b"_BHRfS_M", "btrfs"),
        (131072 + 4096, bytes.fromhex("0cb1ba0000000000"), "zfs"),
        (510, b"\x55\xaa", "dos partition table"),
        (7, b"nothing known", ""),
    ],
)
def test_it_knows_formats_by_their_magic(tmp_path: Path, offset: int, content: bytes, name: str) -> None:
    path = rig.sparse(tmp_path / "disk", rig.MIB)
    with path.open("r+b") as file:
        file.seek(offset if offset >= 0 else rig.MIB + offset)
        file.write(content)
        file.flush()
        assert read_signature(file.fileno(), rig.MIB) == name
