"""Trees are built after what real hosts show under /sys; the values are those of such drives."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from worker.kernel import sysfs, usage
from worker.kernel.sysfs import is_stable, shortened
from worker.kernel.tests.tree import Tree


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    """nvme0n1 with p1 (in md0, under dm-0) and p2; sda by SAS; sdb by SATA without a world-wide name."""
    tree = Tree(tmp_path)
    nvme = {"device__model": "SAMSUNG MZQL21T9HCJR-00A07", "device__serial": "S64GNE0R123456"}
    nvme |= {
        "device__firmware_rev": "GDC5602Q",
        "device__transport": "pcie",
        "wwid": "eui.36344730523123450025384500000001",
    }
    node = tree.add(
        "nvme0n1", "pci0000:00/nvme/nvme0", "259:0", size="3750748848", queue__scheduler="[none] kyber", **nvme
    )
    place = str(node.relative_to(tree.sys / "devices"))
    tree.add("nvme0n1p1", place, "259:1", partition="1")
    tree.add("nvme0n1p2", place, "259:2", partition="2")
    tree.add("md0", "virtual/block", "9:0", md__level="raid1")
    tree.add("dm-0", "virtual/block", "253:0", dm__uuid="LVM-abc", dm__name="vg-root")
    tree.put_on("md0", "nvme0n1p1")
    tree.put_on("dm-0", "md0")
    sas = {"device__vendor": "SEAGATE", "device__model": "ST2400MM0129", "device__rev": "C003"}
    tree.add("sda", "pci0/host0/port-0:0/end_device-0:0/block", "8:0", device__wwid="naa.5000c500a1b2c3d4", **sas)
    sata = {"device__vendor": "ATA", "device__model": "INTEL SSDSC2KB96"}
    tree.add("sdb", "pci0/ata1/host1/block", "8:16", device__wwid="t10.ATA     INTEL", **sata)
    (tree.sys / "class/block/sdb/device/vpd_pg80").write_bytes(b"\x00\x80\x00\x0cWBM0A1B2    ")
    tree.add("vda", "pci0/virtio1/block", "254:0")
    return tree


def test_it_names_drives_by_what_stays_with_them(tree: Tree) -> None:
    ids = {name: sysfs.stable_id(name, tree.sys) for name in sysfs.names(tree.sys)}
    assert ids == {
        "nvme0n1": "nvme-eui.36344730523123450025384500000001",
        "nvme0n1p1": "nvme-eui.36344730523123450025384500000001-part1",
        "nvme0n1p2": "nvme-eui.36344730523123450025384500000001-part2",
        "md0": "name:md0",
        "dm-0": "dm-uuid-LVM-abc",
        "sda": "wwn-0x5000c500a1b2c3d4",
        "sdb": "sata-INTEL_SSDSC2KB96_WBM0A1B2",
        "vda": "name:vda",
    }
    assert not is_stable(ids["vda"])


def test_it_spells_the_uuid_of_an_array_as_udev_does(tree: Tree) -> None:
    tree.add("md1", "virtual/block", "9:1", md__uuid="8f911652-ec15-0ca8-42d5-279ee9f807ba")
    assert sysfs.stable_id("md1", tree.sys) == "md-uuid-8f911652:ec150ca8:42d5279e:e9f807ba"


def test_it_reads_model_serial_firmware_and_transport(tree: Tree) -> None:
    nvme = [read("nvme0n1p1", tree.sys) for read in (sysfs.model, sysfs.serial, sysfs.firmware, sysfs.transport)]
    assert nvme == ["SAMSUNG MZQL21T9HCJR-00A07", "S64GNE0R123456", "GDC5602Q", "nvme"]
    assert (sysfs.model("sda", tree.sys), sysfs.transport("sda", tree.sys)) == ("SEAGATE ST2400MM0129", "sas")
    assert (sysfs.serial("sdb", tree.sys), sysfs.transport("sdb", tree.sys)) == ("WBM0A1B2", "sata")


def test_a_partition_has_the_logical_blocks_of_its_disk(tree: Tree) -> None:
    (tree.sys / "class/block/nvme0n1/queue/logical_block_size").write_text("4096\n")
    assert [sysfs.logical_block_bytes(name, tree.sys) for name in ("nvme0n1", "nvme0n1p1", "vda")] == [4096, 4096, None]


def test_it_follows_what_lies_above_and_below(tree: Tree) -> None:
    assert set(sysfs.above("nvme0n1", tree.sys)) == {"nvme0n1p1", "nvme0n1p2", "md0", "dm-0"}
    assert sysfs.below("dm-0", tree.sys) == ("md0", "nvme0n1p1", "nvme0n1")
    assert sysfs.above("nvme0n1p2", tree.sys) == ()


@pytest.mark.parametrize("name", ["sda", "nvme0n1p2", "cciss!c0d0p1", "etherd!e1.0"])
def test_a_node_has_the_name_of_its_device(name: str) -> None:
    """The kernel writes ! for a / in the path."""
    assert sysfs.name_in(sysfs.device_path(name)) == name


def test_it_finds_a_drive_under_another_kernel_name(tree: Tree) -> None:
    drive = sysfs.read_device("nvme0n1", tree.sys)
    assert sysfs.find(drive.stable_id, "sda", tree.sys) == "nvme0n1"
    assert sysfs.find(drive.stable_id, "gone", tree.sys) == "nvme0n1"
    assert sysfs.find("wwn-0xabsent", "nvme0n1", tree.sys) is None


def test_it_keeps_long_ids_apart() -> None:
    first, second = (shortened("loop:/" + "x" * 200 + end) for end in "ab")
    assert (len(first), first != second) == (100, True)


def test_it_refuses_names_that_lead_elsewhere() -> None:
    for name in ("..", "../../etc", "", "a/b"):
        with pytest.raises(ValueError, match="kernel name"):
            sysfs.node(name)


MOUNTS = """\
22 1 253:0 / / rw,relatime shared:1 - ext4 /dev/mapper/vg-root rw,errors=remount-ro
23 22 0:40 / /mnt/with\\040space rw - btrfs /dev/null rw,space_cache
"""


def test_it_finds_the_hosts_own_disks_under_raid_and_lvm(tree: Tree, tmp_path: Path) -> None:
    proc = tmp_path / "proc"
    (proc / "self").mkdir(parents=True)
    (proc / "self/mountinfo").write_text(MOUNTS)
    (proc / "swaps").write_text(
        "Filename Type Size Used Priority\n/swap\\040file file 1 0 -2\n/dev/dm-9 partition 1 0 -2\n"
    )
    seen = usage.read_usage(tree.sys, proc)
    assert seen.root_disks(tree.sys) == {"dm-0", "md0", "nvme0n1p1", "nvme0n1"}
    assert seen.swap_files == ("/swap file",)
    assert seen.swaps == ("dm-9",)
    assert usage.read_mounts(MOUNTS)[1].point == "/mnt/with space"


def test_it_knows_every_device_of_a_mounted_btrfs(tree: Tree, tmp_path: Path) -> None:
    for name in ("sda", "sdb"):
        (tree.sys / f"fs/btrfs/1234/devices/{name}").mkdir(parents=True)
    assert usage.btrfs_members(tree.sys) == {"sda", "sdb"}


def test_it_refuses_a_mount_table_it_does_not_understand() -> None:
    with pytest.raises(ValueError, match="invalid line"):
        usage.read_mounts("22 1 253:0 /\n")


def test_a_btrfs_that_is_unmounted_during_the_read_is_left_out(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("1234/devices/sda", "5678/devices/sdb"):
        (tree.sys / "fs/btrfs" / name).mkdir(parents=True)
    read_folder = Path.iterdir

    def unmount_first(folder: Path) -> Iterator[Path]:
        if "1234" in folder.parts:
            shutil.rmtree(folder)
        return read_folder(folder)

    monkeypatch.setattr(Path, "iterdir", unmount_first)
    assert usage.btrfs_members(tree.sys) == {"sdb"}


def test_only_the_node_of_a_block_device_names_one(tmp_path: Path) -> None:
    """A character device may have the same numbers."""
    (tmp_path / "dev/block").mkdir(parents=True)
    numbers = sysfs.numbers_of(Path("/dev/null").stat().st_rdev)
    (tmp_path / "dev/block" / numbers).symlink_to(tmp_path)
    assert sysfs.name_of(numbers, tmp_path) == tmp_path.name
    assert [sysfs.device_at(path, tmp_path) for path in ("/dev/null", str(tmp_path), "/nowhere")] == ["", "", ""]
