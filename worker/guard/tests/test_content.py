"""What a write would overwrite: signatures on real loop devices, their partitions and their disks."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from worker import guard
from worker.contract.inventory import PurgeMethod
from worker.guard import content
from worker.guard.content import SignatureNotNamed
from worker.guard.tests import rig
from worker.guard.tests.refused import refusal
from worker.kernel import sysfs
from worker.kernel.signatures import Signature, identity
from worker.kernel.tests import formats
from worker.kernel.tests.tree import Tree
from worker.link.targets import report_targets
from worker.policy import Policy

pytestmark = rig.needs_root
SIZE = 64 * rig.MIB
LVM = formats.lvm2()


def refused_signatures(allowed: Policy, target: int = 0) -> list[tuple[str, str]]:
    """Devices and types that a write is refused for; [] if it is admitted."""
    stream = rig.stream(allowed, writes=True, target=target)
    armed = (allowed.targets[target].arming_serial,)
    try:
        with guard.admit(stream, allowed, armed):
            return []
    except SignatureNotNamed as refused:
        return list(dict.fromkeys((each.device, each.type) for each in refused.found))


@pytest.mark.parametrize(
    ("pieces", "type_"),
    [
        (LVM, "LVM2_member"),
        (formats.md_1(SIZE, "1.0"), "linux_raid_member"),
        (formats.md_1(SIZE, "1.2"), "linux_raid_member"),
        (formats.intel(SIZE), "isw_raid_member"),
        (formats.zfs_label(SIZE, 3), "zfs_member"),
        (formats.zfs_spare(), "zfs_member"),
        (((0, b"bluestore block device\n"),), "ceph_bluestore"),
    ],
)
def test_it_never_overwrites_a_signature_that_the_policy_does_not_name(
    allowed: Policy, tmp_path: Path, device: str, file: Path, pieces: formats.Pieces, type_: str
) -> None:
    name = Path(device).name
    formats.write(device, pieces)
    assert refused_signatures(allowed) == [(name, type_)]
    with guard.admit(rig.stream(allowed), allowed, ()):
        pass  # reading changes nothing
    armed = (allowed.targets[0].arming_serial,)
    assert refusal(rig.stream(allowed, writes=True), allowed, armed).code == "guard_signature"
    with pytest.raises(SignatureNotNamed), guard.lease_drives(allowed.targets, allowed, armed):
        pass
    target = rig.stream(allowed).target
    with pytest.raises(SignatureNotNamed), guard.lease_drive(target, allowed, armed, PurgeMethod.DISCARD):
        pass
    for named, found in (("ext4", [(name, type_)]), (type_, [])):
        assert refused_signatures(rig.load(tmp_path, named_block(device, file, named))) == found


def named_block(device: str, file: Path, *types: str) -> dict[str, Any]:
    return rig.block(device, file, destroy=True, destroy_signatures=list(types))


@pytest.mark.parametrize("command", [("mkfs.ext4", "-q", "-F"), ("mkswap",), ("mkfs.xfs", "-q"), ("mkfs.btrfs", "-q")])
def test_a_file_system_that_is_not_mounted_is_somebodys_data(
    allowed: Policy, tmp_path: Path, command: tuple[str, ...]
) -> None:
    big = rig.sparse(tmp_path / "big.img", 400 * rig.MIB)
    with rig.loop(big) as device:
        allowed = rig.load(tmp_path, rig.block(device, big, destroy=True))
        assert refused_signatures(allowed) == []
        rig.run(*command, device)
        assert len(refused_signatures(allowed)) == 1


def test_the_line_that_it_gives_permits_what_is_there(allowed: Policy, tmp_path: Path, device: str, file: Path) -> None:
    part = rig.partition(device)
    rig.run("mkfs.ext4", "-q", "-F", part)
    allowed = rig.load(tmp_path, named_block(device, file, "swap"))
    with (
        pytest.raises(SignatureNotNamed) as caught,
        guard.admit(rig.stream(allowed, writes=True), allowed, (allowed.targets[0].arming_serial,)),
    ):
        pass
    offsets = {each.type: each.offset for each in caught.value.found if each.type != "gpt"}
    assert offsets == {"PMBR": 510, "ext4": 1080}
    assert caught.value.line in caught.value.message
    key, _, value = caught.value.line.partition(" = ")
    assert (key, sorted(eval(value))) == ("destroy_signatures", ["PMBR", "ext4", "gpt", "swap"])
    assert refused_signatures(rig.load(tmp_path, named_block(device, file, *eval(value)))) == []


def test_it_finds_members_on_partitions_that_the_kernel_does_and_does_not_know(
    allowed: Policy, tmp_path: Path, device: str, file: Path
) -> None:
    part = rig.partition(device, "start=2048, size=32768", "start=40960, size=32768")
    formats.write(part, LVM)
    formats.write(f"{device}p2", formats.md_1(32768 * 512, "1.0"))
    allowed = rig.load(tmp_path, named_block(device, file, "gpt", "PMBR"))
    name = Path(device).name
    assert refused_signatures(allowed) == [(f"{name}p1", "LVM2_member"), (f"{name}p2", "linux_raid_member")]
    rig.run("partx", "--delete", device)
    assert not sysfs.partitions(name)
    assert refused_signatures(allowed) == [(name, "LVM2_member"), (name, "linux_raid_member")]


@pytest.mark.parametrize(("written", "now", "label"), [(512, 4096, "gpt"), (4096, 512, "gpt"), (512, 4096, "dos")])
def test_it_finds_what_was_written_with_blocks_of_another_size(
    tmp_path: Path, file: Path, written: int, now: int, label: str
) -> None:
    """A drive behind another controller or USB bridge, or one that was reformatted, shows blocks of another size."""
    start = 2048 * 512
    with rig.loop(file, "--sector-size", str(written)) as device:
        row = f"start={start // written}, size={32 * rig.MIB // written}"
        rig.run(
            "sfdisk", "--quiet", "--no-reread", "--no-tell-kernel", "--label", label, device, given=f"{row}\n"
        )  # fmt: skip
    formats.write(str(file), tuple((start + offset, block) for offset, block in LVM))
    with rig.loop(file, "--sector-size", str(now)) as device:
        name = Path(device).name
        tables = {"gpt", "PMBR"} if label == "gpt" else {"dos"}
        found = refused_signatures(rig.load(tmp_path, rig.block(device, file, destroy=True)))
        assert set(found) == {(name, each) for each in ("LVM2_member", *tables)}
        assert refused_signatures(rig.load(tmp_path, named_block(device, file, *tables))) == [(name, "LVM2_member")]


@pytest.mark.parametrize(
    ("pieces", "type_"),
    [(formats.md_1(SIZE, "1.0"), "linux_raid_member"), (formats.intel(SIZE), "isw_raid_member")],
)
def test_it_finds_the_member_whose_partition_is_the_target(
    device: str, file: Path, tmp_path: Path, pieces: formats.Pieces, type_: str
) -> None:
    """md 1.0 and Intel have their metadata at the end of the disk, where the partition table leaves room."""
    part = rig.partition(device)
    entry = {**rig.block(part, file, destroy=True), "stable_id": identity(Path(part).name)}
    allowed = rig.load(tmp_path, entry)
    assert refused_signatures(allowed) == []  # the table of its disk is not overwritten
    formats.write(device, pieces)
    assert refused_signatures(allowed) == [(Path(device).name, type_)]


def test_it_finds_metadata_at_the_end_of_a_drive_with_sectors_of_4_kib(tmp_path: Path, file: Path) -> None:
    with rig.loop(file, "--sector-size", "4096") as device:
        allowed = rig.load(tmp_path, rig.block(device, file, destroy=True))
        assert refused_signatures(allowed) == []
        formats.write(device, formats.intel(SIZE, 4096))
        assert refused_signatures(allowed) == [(Path(device).name, "isw_raid_member")]


def test_it_finds_what_is_in_a_gpt_for_sectors_of_another_size(tmp_path: Path, file: Path) -> None:
    """A bridge of USB shows a drive with sectors of 4 KiB as one with 512 bytes, or the other way round."""
    for written, shown in (("4096", "512"), ("512", "4096")):
        rig.sparse(file)
        with rig.loop(file, "--sector-size", written) as device:
            rig.partition(device, "start=2048, size=4096")
            part = next(iter(sysfs.partitions(Path(device).name)))
            formats.write(f"/dev/{part}", LVM)
            rig.run("partx", "--delete", device)
        with rig.loop(file, "--sector-size", shown) as device:
            rig.run("sh", "-c", f"partx --delete {device} || true")
            name = Path(device).name
            allowed = rig.load(tmp_path, named_block(device, file, "PMBR"))
            assert refused_signatures(allowed) == [(name, "gpt"), (name, "LVM2_member")]


def test_it_finds_what_is_in_partitions_of_partitions(tmp_path: Path, device: str, file: Path) -> None:
    """A partition that was the disk of a virtual machine has a partition table of its own."""
    part = rig.partition(device, "start=2048, size=65536")
    with rig.loop(Path(part)) as inner:
        formats.write(rig.partition(inner, "start=4096, size=16384"), LVM)
        rig.run("partx", "--delete", inner)
    allowed = rig.load(tmp_path, named_block(device, file, "gpt", "PMBR"))
    name = Path(device).name
    assert refused_signatures(allowed) == [(f"{name}p1", "LVM2_member")]
    rig.run("partx", "--delete", device)
    assert refused_signatures(allowed) == [(name, "LVM2_member")]


def _reading(function: Callable[..., object], tree: Tree) -> Callable[..., object]:
    """A function of sysfs that reads the tree."""
    return lambda *given: function(*(each for each in given if each != tree.sys), tree.sys)


def test_layers_explain_their_own_members_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A tree of sysfs as of real hosts, because this needs the kernel's drivers of md and device-mapper."""
    tree = Tree(tmp_path)
    tree.add("sda", "pci0/host0/block", "8:0", size="4096")
    tree.add("sda1", "pci0/host0/block/sda", "8:1", size="2048", partition="1")
    tree.add("md0", "virtual/block", "9:0", size="4096", md__level="raid1")
    tree.add("dm-0", "virtual/block", "253:0", size="4096", dm__uuid="LVM-abc")
    tree.add("dm-1", "virtual/block", "253:1", size="4096", dm__uuid="")
    tree.put_on("md0", "sda1")
    tree.put_on("dm-0", "md0")
    tree.put_on("dm-1", "sda1")
    on = {"sda": ("gpt", "isw_raid_member"), "sda1": ("linux_raid_member", "LVM2_member"), "md0": ("LVM2_member",)}
    for function in ("kind", "attribute", "parents", "partitions", "above", "is_partition"):
        original = getattr(sysfs, function)
        monkeypatch.setattr(sysfs, function, _reading(original, tree))
    monkeypatch.setattr(content, "_open", lambda _name: os.open(os.devnull, os.O_RDONLY))
    monkeypatch.setattr(content, "_read", lambda name, _fd, **_: tuple(
        Signature(type=each, is_table=each == "gpt") for each in on.get(name, ())
    ))  # fmt: skip
    found = {name: [(each.device, each.type) for each in content.signatures_on(name)] for name in ("dm-0", "dm-1")}
    assert found == {
        "dm-0": [("sda1", "LVM2_member"), ("sda", "isw_raid_member")],
        "dm-1": [("sda1", "linux_raid_member"), ("sda1", "LVM2_member"), ("sda", "isw_raid_member")],
    }


def test_it_refuses_what_it_cannot_read(allowed: Policy, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_given: object, **_named: object) -> tuple[()]:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(content, "read_signatures", fails)
    assert refusal(rig.stream(allowed, writes=True), allowed).code == "guard_unreadable"


def test_what_random_data_looks_like_is_erased_before_the_device_is_given_back(allowed: Policy, device: str) -> None:
    """A trial wrote two bytes that look like a journal of ext3; libblkid checks little else of it."""
    ((_, journal),) = formats.accidental_journal()
    before = b"before" * 100
    with guard.admit(rig.stream(allowed, writes=True), allowed, (allowed.targets[0].arming_serial,)) as place:
        formats.write(place.path, ((1024, journal), (SIZE // 2, before)))
    with open(device, "rb") as disk:  # noqa: PTH123 - a device
        assert disk.read(4096)[1024:2048] == journal[:0x38] + b"\0\0" + journal[0x3A:]
        disk.seek(SIZE // 2)
        assert disk.read(len(before)) == before
    assert refused_signatures(allowed) == []


def test_what_was_there_before_a_trial_is_not_erased(tmp_path: Path, device: str, file: Path) -> None:
    rig.run("mkfs.ext4", "-q", "-F", device)
    allowed = rig.load(tmp_path, named_block(device, file, "ext4"))
    assert refused_signatures(allowed) == []
    assert refused_signatures(rig.load(tmp_path, rig.block(device, file, destroy=True))) == [
        (Path(device).name, "ext4")
    ]


def test_a_failed_trial_touches_nothing_afterwards(allowed: Policy, device: str) -> None:
    """Its drive may not answer."""
    with pytest.raises(RuntimeError):
        _fail_after_writing(allowed)
    assert refused_signatures(allowed) == [(Path(device).name, "jbd")]


def _fail_after_writing(allowed: Policy) -> None:
    with guard.admit(rig.stream(allowed, writes=True), allowed, (allowed.targets[0].arming_serial,)) as place:
        formats.write(place.path, formats.accidental_journal())
        raise RuntimeError


def test_the_server_learns_what_a_policy_names_and_what_is_missing(tmp_path: Path, device: str, file: Path) -> None:
    rig.run("mkfs.ext4", "-q", "-F", device)
    for named, count in (((), 1), (("ext4",), 0), (("ext4", "lvm"), 1)):
        (target,) = report_targets(rig.load(tmp_path, named_block(device, file, *named)))
        others = [words for words in target.warnings if "unwritten" not in words and "memory" not in words]
        assert (target.present, target.destroy_signatures, len(others)) == (True, named, count)
