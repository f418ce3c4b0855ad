"""Which partition it is, and what a policy protects on a disk."""

from pathlib import Path
from typing import Any

import pytest

from worker import guard
from worker.contract.workload import WriteStep
from worker.engines.base import size_of
from worker.guard.blocks import write_problem
from worker.guard.protection import refuse_protected
from worker.guard.refusal import GuardRefused
from worker.guard.tests import rig
from worker.guard.tests.refused import refusal
from worker.kernel import sysfs
from worker.kernel.signatures import identity, part_uuid
from worker.kernel.sysfs import MAX_ID, is_part_of, shortened
from worker.kernel.tests import formats
from worker.kernel.tests.tree import Tree
from worker.policy import Policy
from worker.recipes.steps import step_stream

pytestmark = rig.needs_root
TABLES = ["gpt", "PMBR", "dos"]
FIRST, SECOND = "1d2b3c4d-0000-4000-8000-000000000001", "1d2b3c4d-0000-4000-8000-000000000002"


def entry(path: str, file: Path, **more: Any) -> dict[str, Any]:
    return {**rig.block(path, file), "id": Path(path).name, "stable_id": identity(Path(path).name), **more}


def code(allowed: Policy, target: int = 0) -> str:
    try:
        with guard.admit(
            rig.stream(allowed, writes=True, target=target), allowed, (allowed.targets[target].arming_serial,)
        ):
            return ""
    except GuardRefused as refused:
        return refused.code


def test_a_partition_is_known_by_its_uuid_start_and_size(tmp_path: Path, device: str, file: Path) -> None:
    part = rig.partition(device, f"start=2048, size=65536, uuid={FIRST}")
    name = Path(part).name
    assert (part_uuid(name), identity(name)) == (FIRST, shortened(f"loop:{file}-part1:{FIRST}@2048+65536"))
    allowed = rig.load(tmp_path, entry(part, file, destroy=True))
    assert code(allowed) == ""
    for row in (
        f"start=2048, size=65536, uuid={SECOND}",
        f"start=4096, size=65536, uuid={FIRST}",
        f"start=2048, size=32768, uuid={FIRST}",
    ):
        rig.partition(device, row)
        assert code(allowed) == "guard_serial_changed", row
    rig.partition(device, f"start=2048, size=65536, uuid={FIRST}")
    assert code(allowed) == ""


def test_a_table_that_the_kernel_has_not_read_counts(tmp_path: Path, device: str, file: Path) -> None:
    """The kernel keeps the old partitions while one of them is in use."""
    part = rig.partition(device, f"start=2048, size=65536, uuid={FIRST}")
    allowed = rig.load(tmp_path, entry(part, file, destroy=True))
    options = ("--quiet", "--no-reread", "--no-tell-kernel", "--label", "gpt", device)
    rig.run("sfdisk", *options, given=f"start=2048, size=65536, uuid={SECOND}\n")
    assert code(allowed) == "guard_serial_changed"


def test_a_dos_partition_is_known_by_its_disk(tmp_path: Path, device: str, file: Path) -> None:
    part = rig.partition(device, label="dos")
    allowed = rig.load(tmp_path, entry(part, file, destroy=True))
    assert part_uuid(Path(part).name).endswith("-01")
    assert code(allowed) == ""
    rig.partition(device, label="dos")  # a new table has a new id
    assert code(allowed) == "guard_serial_changed"


def test_a_partition_without_a_uuid_is_never_overwritten(tmp_path: Path, device: str, file: Path) -> None:
    rig.run("addpart", device, "1", "2048", "65536")
    allowed = rig.load(tmp_path, entry(f"{device}p1", file, destroy=True))
    assert allowed.targets[0].identity == shortened(f"loop:{file}-part1:@2048+65536")
    assert code(allowed) == "guard_partition"
    with guard.admit(rig.stream(allowed), allowed, ()):
        pass


def test_it_takes_the_uuid_of_a_recorded_tree_from_the_kernel(tmp_path: Path) -> None:
    tree = Tree(tmp_path)
    tree.add("sda", "pci0/host0/block", "8:0", device__wwid="naa.5000c500a1b2c3d4")
    facts = {"partition": "1", "start": "2048", "size": "4096", "uevent": f"PARTN=1\nPARTUUID={FIRST.upper()}"}
    tree.add("sda1", "pci0/host0/block/sda", "8:1", **facts)
    assert identity("sda1", tree.sys) == f"wwn-0x5000c500a1b2c3d4-part1:{FIRST}@2048+4096"
    assert (identity("sda", tree.sys), sysfs.stable_id("sda1", tree.sys)) == (
        "wwn-0x5000c500a1b2c3d4", "wwn-0x5000c500a1b2c3d4-part1",
    )  # fmt: skip


# ---- protection


def test_a_partition_without_destroy_is_protected_from_its_disk(tmp_path: Path, device: str, file: Path) -> None:
    part = rig.partition(device, "start=2048, size=32768", "start=40960, size=32768")
    whole = rig.block(device, file, destroy=True, destroy_signatures=TABLES)
    protected, free = entry(part, file), entry(f"{device}p2", file, destroy=True)
    allowed = rig.load(tmp_path, whole, protected, free)
    assert [code(allowed), code(allowed, 2)] == ["guard_protected", ""]
    armed = (allowed.targets[0].arming_serial,)
    for attempt in (
        guard.lease_drives(allowed.targets[:1], allowed, armed),
        guard.admit(rig.stream(allowed, writes=True), allowed, armed),
    ):
        with pytest.raises(GuardRefused) as refused, attempt:
            pass
        assert refused.value.code == "guard_protected"
    with pytest.raises(GuardRefused):
        guard.recheck_drives(allowed.targets[:1], allowed, armed)
    assert "protects" in write_problem(allowed.targets[0], allowed)
    assert code(rig.load(tmp_path, whole, free)) == ""


def test_it_is_protected_although_the_kernel_has_forgotten_it(tmp_path: Path, device: str, file: Path) -> None:
    part = rig.partition(device)
    whole = rig.block(device, file, destroy=True, destroy_signatures=TABLES)
    allowed = rig.load(tmp_path, whole, entry(part, file))
    rig.run("partx", "--delete", device)
    assert code(allowed) == "guard_protected"


def test_a_file_without_destroy_is_protected_by_all_its_paths(tmp_path: Path) -> None:
    folder, other = tmp_path / "images", tmp_path / "other"
    for each in (folder, other):
        each.mkdir(mode=0o755)
    image = rig.sparse(folder / "vm.img")
    image.chmod(0o600)
    files = [{"id": str(place.name), "kind": "file", "path": str(place / "vm.img")} for place in (folder, other)]
    with rig.bound(folder, other):
        for number in (0, 1):
            targets = [{**each, "destroy": index == number} for index, each in enumerate(files)]
            assert code(rig.load(tmp_path, *targets), number) == "guard_protected"
        assert code(rig.load(tmp_path, {**files[0], "destroy": True})) == ""


def is_protected(allowed: Policy, name: str) -> bool:
    """Whether the first target is refused because it covers another one."""
    try:
        refuse_protected(allowed.targets[0], name, allowed)
    except GuardRefused as refused:
        return refused.code == "guard_protected"
    return False


ARRAY = "md-uuid-fa39a135:2df4efa2:a2d4259a:50b480db"


@pytest.mark.parametrize(
    ("stable_id", "pieces", "type_"),
    [
        (ARRAY, formats.md_1(64 * rig.MIB, "1.2"), "linux_raid_member"),
        (f"{ARRAY}-part1:{FIRST}@2048+65536", formats.md_1(64 * rig.MIB, "1.2"), "linux_raid_member"),
        (f"dm-uuid-LVM-{'a' * 64}", formats.lvm2(), "LVM2_member"),
    ],
)
def test_a_stopped_array_or_volume_is_protected_from_its_members(
    tmp_path: Path, device: str, file: Path, stable_id: str, pieces: formats.Pieces, type_: str
) -> None:
    """The policy names the signature of the member, but only destroys what it does not protect."""
    whole = rig.block(device, file, destroy=True, destroy_signatures=[type_])
    absent = {"id": "data", "kind": "block", "path": "/dev/sweetspot-absent", "stable_id": stable_id}
    allowed = rig.load(tmp_path, whole, absent)
    name = Path(device).name
    assert not is_protected(allowed, name)  # nothing of it is on the device
    formats.write(device, pieces)
    assert is_protected(allowed, name)
    assert not is_protected(rig.load(tmp_path, whole, {**absent, "stable_id": "dm-uuid-CRYPT-LUKS2-0-x"}), name)
    assert not is_protected(rig.load(tmp_path, whole), name)


@pytest.mark.parametrize(
    ("wwid", "stable_id", "expected"),
    [
        ("naa.5000c50000002000", "dm-uuid-mpath-35000c50000002000", True),
        ("naa.5000c50000002000", "dm-uuid-part1-mpath-35000c50000002000", True),
        ("eui.0025385b71b0a1c4", "dm-uuid-mpath-eui.0025385b71b0a1c4", True),
        ("naa.5000c50000002000", "dm-uuid-mpath-35000c50000002001", False),
        ("", "dm-uuid-mpath-35000c50000002001", False),
    ],
)
def test_a_multipath_device_without_its_daemon_is_protected_from_its_paths(
    tmp_path: Path, device: str, file: Path, monkeypatch: pytest.MonkeyPatch, wwid: str, stable_id: str, expected: bool
) -> None:
    """Loop devices have no world-wide name."""
    absent = {"id": "data", "kind": "block", "path": "/dev/sweetspot-absent", "stable_id": stable_id}
    allowed = rig.load(tmp_path, rig.block(device, file, destroy=True), absent)
    monkeypatch.setattr(sysfs, "wwid", lambda _name, *_tree: wwid)
    assert is_protected(allowed, Path(device).name) == expected


def test_an_entry_without_destroy_protects_the_same_device_and_the_file_under_it(
    tmp_path: Path, device: str, file: Path
) -> None:
    whole = rig.block(device, file, destroy=True)
    assert code(rig.load(tmp_path, whole, {**rig.block(device, file), "id": "read-only"})) == "guard_protected"
    file.chmod(0o600)
    image = {"id": "image", "kind": "file", "path": str(file)}
    assert code(rig.load(tmp_path, whole, image)) == "guard_protected"
    assert code(rig.load(tmp_path, whole, {**image, "destroy": True})) == ""


def test_a_partition_may_be_overwritten_on_a_disk_that_may_only_be_read(
    tmp_path: Path, device: str, file: Path
) -> None:
    part = rig.partition(device)
    allowed = rig.load(tmp_path, rig.block(device, file), entry(part, file, destroy=True))
    assert code(allowed, 1) == ""


def test_it_finds_the_partitions_of_a_disk_by_shortened_ids() -> None:
    long = "loop:/" + "x" * 150
    assert len(shortened(f"{long}-part1:{FIRST}@2048+1")) == MAX_ID
    assert is_part_of(shortened(f"{long}-part1:{FIRST}@2048+1"), long)
    assert is_part_of(f"wwn-0x5-part1:{FIRST}@2048+1", "wwn-0x5")
    assert is_part_of(shortened(f"{'w' * 70}-part1:{FIRST}@2048+1"), "w" * 70)
    assert not is_part_of(f"wwn-0x55-part1:{FIRST}@2048+1", "wwn-0x5")
    assert not is_part_of(shortened(f"{'w' * 71}-part1:{FIRST}@2048+1"), "w" * 70)


# ---- size


def test_a_partition_has_one_size_everywhere(tmp_path: Path, device: str, file: Path) -> None:
    """16 MiB on a disk of 64 MiB."""
    part = rig.partition(device, "start=2048, size=32768")
    allowed = rig.load(tmp_path, entry(part, file, destroy=True))
    stream = rig.stream(allowed, writes=True, size=None)
    assert guard.survey(allowed.targets[0]).size_bytes == 16 * rig.MIB
    with guard.admit(stream, allowed, (stream.target.stable_id,)) as place:
        assert (place.size_bytes, size_of(stream, place)) == (16 * rig.MIB, 16 * rig.MIB)
    step = WriteStep(times=1, block_bytes=rig.MIB)
    assert step_stream(step, stream, 16 * rig.MIB).workload.moved_bytes == 16 * rig.MIB


@pytest.mark.parametrize(("offset", "size", "fits"), [(4, 12, True), (8, 12, False), (0, 17, False)])
def test_offset_and_size_must_fit_in_the_partition(
    tmp_path: Path, device: str, file: Path, offset: int, size: int, fits: bool
) -> None:
    part = rig.partition(device, "start=2048, size=32768")
    allowed = rig.load(tmp_path, entry(part, file, destroy=True))
    stream = rig.at_offset(rig.stream(allowed, size=size * rig.MIB), offset * rig.MIB)
    if fits:
        with guard.admit(stream, allowed, ()):
            pass
    else:
        assert refusal(stream, allowed).code == "guard_no_space"
