"""What counts as a signature on a device."""

import os
import random
from pathlib import Path

import pytest

from worker.guard.tests import rig
from worker.kernel import signatures
from worker.kernel.tests import formats

MIB = rig.MIB
SIZE = 64 * MIB


def types(path: Path) -> list[str]:
    with path.open("rb") as file:
        found = signatures.read_signatures(file.fileno(), os.fstat(file.fileno()).st_size)
    return list(dict.fromkeys(each.type for each in found))


@pytest.mark.parametrize(
    ("pieces", "type_"),
    [
        (formats.md_1(SIZE, "1.0"), "linux_raid_member"),
        (formats.md_1(SIZE, "1.1"), "linux_raid_member"),
        (formats.md_1(SIZE, "1.2"), "linux_raid_member"),
        (formats.md_0(SIZE), "linux_raid_member"),
        (formats.intel(SIZE), "isw_raid_member"),
        (formats.lvm2(), "LVM2_member"),
        (formats.zfs_label(SIZE, 0), "zfs_member"),
        (formats.zfs_label(SIZE, 3), "zfs_member"),
        (((4096 + 24, bytes.fromhex("c68573f666ce90a9d96a60cf803df7ef")),), "bcachefs"),
        (((0, b"bluestore block device\n"),), "ceph_bluestore"),
        (((0, b"LUKS\xba\xbe\x00\x02"),), "crypto_LUKS"),
    ],
)
def test_it_finds_members_at_both_ends_of_a_device(tmp_path: Path, pieces: formats.Pieces, type_: str) -> None:
    disk = rig.sparse(tmp_path / "disk", SIZE)
    assert types(disk) == []
    formats.write(str(disk), pieces)
    assert types(disk) == [type_]


def test_a_label_of_zfs_without_an_uberblock_is_what_wipefs_leaves(tmp_path: Path) -> None:
    disk = rig.sparse(tmp_path / "disk", SIZE)
    formats.write(str(disk), formats.zfs_label(SIZE, 0, uberblocks=0))
    assert types(disk) == []
    formats.write(str(disk), formats.zfs_label(SIZE, 1, uberblocks=100))
    assert types(disk) == ["zfs_member"]


def test_it_finds_several_signatures_that_contradict_each_other(tmp_path: Path) -> None:
    """A file system that was made over a GPT leaves the backup at the end."""
    disk = rig.sparse(tmp_path / "disk", SIZE)
    rig.run("sfdisk", "--quiet", "--label", "gpt", str(disk), given=",\n")
    assert types(disk) == ["gpt", "PMBR"]
    backup = disk.read_bytes()[-33 * 512 :]
    rig.run("mkfs.ext4", "-q", "-F", str(disk))
    formats.write(str(disk), ((0, bytes(512)), (SIZE - len(backup), backup)))
    assert types(disk) == ["ext4", "gpt"]
    rig.run("mkswap", str(disk))
    assert {"swap", "gpt"} <= set(types(disk))


def test_many_copies_of_one_signature_hide_no_other_one(tmp_path: Path) -> None:
    disk = rig.sparse(tmp_path / "disk", SIZE)
    pieces = [piece for number in range(4) for piece in formats.zfs_label(SIZE, number, uberblocks=128)]
    rig.run("sfdisk", "--quiet", "--label", "dos", str(disk), given="start=60000\n")
    formats.write(str(disk), tuple(pieces))
    assert set(types(disk)) == {"zfs_member", "dos"}


def test_two_bytes_are_no_signature(tmp_path: Path) -> None:
    disk = rig.sparse(tmp_path / "disk", SIZE)
    noise = random.Random(1)
    formats.write(str(disk), ((0, noise.randbytes(MIB)), (SIZE - MIB, noise.randbytes(MIB))))
    for pieces in (((510, b"\x55\xaa"),), ((1024, b"H+"),), ((1024, b"HX"),)):
        formats.write(str(disk), pieces)
        assert types(disk) == []


def test_it_finds_a_volume_of_hfs_plus(tmp_path: Path) -> None:
    disk = rig.sparse(tmp_path / "disk", SIZE)
    formats.write(str(disk), ((1024, b"H+\x00\x04"), (1024 + 40, (4096).to_bytes(4, "big"))))
    assert types(disk) == ["hfsplus"]


def test_it_knows_the_names_that_it_reports() -> None:
    known = [
        signatures.is_known(name) for name in ("ext4", "gpt", "PMBR", "LVM2_member", "bcachefs", "lvm2", "md raid")
    ]
    assert known == [True, True, True, True, True, False, False]


def test_it_raises_for_what_it_cannot_read(tmp_path: Path) -> None:
    fd = os.open(tmp_path, os.O_RDONLY)
    with pytest.raises(OSError, match=r"\w"):
        signatures.read_signatures(fd, SIZE)
    os.close(fd)
