"""Users of a drive that reach it by another layer: multipath devices, siblings on one device, exports of the kernel.

Trees of sysfs and configfs are built after those of real hosts where this machine has no such hardware.
"""

import os
from pathlib import Path

import pytest

from worker.guard import blocks, openers
from worker.guard.lease import Lease
from worker.guard.protection import twins
from worker.guard.refusal import GuardRefused
from worker.guard.tests import rig
from worker.guard.tests.paths import WWID, tree_with_paths
from worker.guard.tests.refused import refusal
from worker.inventory.devices import block_devices
from worker.kernel import sysfs, usage
from worker.kernel.tests.tree import Tree
from worker.policy import Policy

MAP = f"mpath-3{WWID[4:]}"
GROUP = "LVM-dS5cXkLCUGRYzVzT"


def tree_of_maps(tmp_path: Path, lower: str, **uuids: str) -> Tree:
    """dm-0 with the UUID `lower` on sda, and further device-mapper devices on dm-0."""
    tree = Tree(tmp_path)
    tree.add("sda", "pci0/host0/port-0:0/end_device-0:0/block", "8:0", size="4096", device__wwid=WWID)
    tree.add("dm-0", "virtual/block", "253:0", size="4096", dm__uuid=lower)
    tree.put_on("dm-0", "sda")
    for number, (name, uuid) in enumerate(uuids.items(), 1):
        tree.add(name.replace("_", "-"), "virtual/block", f"253:{number}", size="2048", dm__uuid=uuid)
        tree.put_on(name.replace("_", "-"), "dm-0")
    return tree


# ---- multipath


def test_it_finds_a_path_that_the_multipath_device_does_not_have(tmp_path: Path) -> None:
    tree = tree_with_paths(tmp_path)
    tree.add("dm-0", "virtual/block", "253:0", size="4096", dm__uuid=MAP)
    tree.put_on("dm-0", "sda")
    tree.add("dm-1", "virtual/block", "253:1", size="2048", dm__uuid=f"{GROUP}volume")
    tree.put_on("dm-1", "dm-0")
    assert [twins(name, tree.sys) for name in ("dm-0", "dm-1")] == [("sdb",), ("sdb",)]


def test_it_finds_a_multipath_device_that_has_lost_all_paths(tmp_path: Path) -> None:
    """A volume above it may still wait for one of them."""
    tree = tree_with_paths(tmp_path)
    tree.add("dm-0", "virtual/block", "253:0", size="4096", dm__uuid=MAP)
    assert [twins(name, tree.sys) for name in ("dm-0", "sda", "sdc")] == [("sda", "sdb"), ("dm-0", "sdb"), ()]


def test_an_nvme_drive_with_two_paths_is_one_device(tmp_path: Path) -> None:
    """Linux 6.x shows the paths of native multipath as hidden disks."""
    tree, wwid = Tree(tmp_path), "eui.36344730523123450025384500000001"
    subsystem = "virtual/nvme-subsystem/nvme-subsys0"
    tree.add("nvme0n1", subsystem, "259:0", wwid=wwid, hidden="0", size="3750748848")
    for number in (0, 1):
        place = f"pci0000:0{number}/nvme/nvme{number}"
        tree.add(f"nvme0c{number}n1", place, f"0:{number}", wwid=wwid, hidden="1", size="3750748848")
        (tree.sys / "devices" / subsystem / f"nvme{number}").symlink_to(tree.sys / "devices" / place)
    assert sysfs.names(tree.sys) == ("nvme0n1",)
    assert twins("nvme0n1", tree.sys) == ()
    no_usage = usage.Usage(mounts=(), swaps=(), swap_files=())
    (drive,) = block_devices(no_usage, tree.sys, open_devices=False)
    assert (drive.path, drive.stable_id) == ("/dev/nvme0n1", f"nvme-{wwid}")


@pytest.mark.parametrize(
    ("wwid", "uuid"),
    [
        ("eui.0025385500000001", "mpath-eui.0025385500000001"),
        ("eui.0025385500000001", "mpath-20025385500000001"),
        ("t10.LAB     VIRTSSD         LABVS0", "mpath-1LAB_VIRTSSD_LABVS0"),
    ],
)
def test_it_knows_the_spellings_of_multipath(tmp_path: Path, wwid: str, uuid: str) -> None:
    tree = Tree(tmp_path)
    tree.add("sda", "pci0/host0/block", "8:0", size="4096", device__wwid=wwid)
    tree.add("dm-0", "virtual/block", "253:0", size="4096", dm__uuid=uuid)
    tree.add("dm-1", "virtual/block", "253:1", size="4096", dm__uuid=f"{uuid}1")
    assert [twins(name, tree.sys) for name in ("sda", "dm-0", "dm-1")] == [("dm-0",), ("sda",), ()]


# ---- device-mapper devices on one device


@pytest.mark.parametrize(
    ("lower", "ours", "beside", "is_shared"),
    [
        (f"{GROUP}origin-real", f"{GROUP}origin", f"{GROUP}snapshot", True),
        ("", "", "", True),  # two linear mappings of one range, by dmsetup
        ("", f"{GROUP}volume", "", True),
        ("", f"{GROUP}volume", f"{GROUP}other", False),
        (f"{GROUP}pool-tpool", f"{GROUP}thin", f"{GROUP}other", False),
        (MAP, f"part1-{MAP}", f"part2-{MAP}", False),
        ("", "CRYPT-PLAIN-a", "CRYPT-PLAIN-b", True),  # cryptsetup open --shared
    ],
)
def test_it_finds_devices_that_share_data(tmp_path: Path, lower: str, ours: str, beside: str, is_shared: bool) -> None:
    tree = tree_of_maps(tmp_path, lower, dm_1=ours, dm_2=beside)
    assert twins("dm-1", tree.sys) == (("dm-2",) if is_shared else ())


@pytest.mark.root
def test_it_holds_a_read_only_twin(device: str, tmp_path: Path) -> None:
    with rig.loop(rig.sparse(tmp_path / "snapshot.img"), "--read-only") as other:
        name, twin = Path(device).name, Path(other).name
        with Lease(device, name=name, twins=(twin,)), pytest.raises(OSError, match="busy"):
            os.open(other, os.O_RDONLY | os.O_EXCL)


# ---- programs below a volume


@pytest.mark.root
def test_it_refuses_a_volume_whose_drive_a_program_has_open(
    allowed: Policy, device: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A virtual machine has a drive on which this host has found volumes. Another loop device stands for the drive."""
    image = rig.sparse(tmp_path / "drive.img")
    with rig.loop(image) as drive:
        volume = Path(device).name
        below = sysfs.below
        monkeypatch.setattr(
            sysfs, "below", lambda name, *more: (Path(drive).name,) if name == volume else below(name, *more)
        )
        for path in (drive, str(image)):
            with rig.opened_elsewhere(path) as process:
                refused = refusal(rig.stream(allowed, writes=True), allowed)
                assert (refused.code, f"(process {process})" in refused.message) == ("guard_held", True)
        with rig.loop(image) as other:
            refused = refusal(rig.stream(allowed, writes=True), allowed)
            assert (refused.code, Path(other).name in refused.message) == ("guard_held", True)


@pytest.mark.root
def test_the_daemon_of_a_layer_may_have_its_drives_open(device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = openers.device_identities(Path(device).name)
    with rig.opened_elsewhere(device) as process:
        assert len(openers.openers((), lower=wanted)) == 1
        name = Path(f"/proc/{process}/comm").read_text().strip()
        monkeypatch.setattr(openers, "_LAYER_DAEMONS", (name,))
        assert openers.openers((), lower=wanted) == ()
        assert len(openers.openers(wanted, lower=wanted)) == 1


# ---- other ways to a drive


def test_it_knows_the_character_devices_of_bsg_and_of_nvme_controllers(tmp_path: Path) -> None:
    """Commands that write to the drive can be sent through them."""
    tree = Tree(tmp_path)
    tree.add("sda", "pci0/host0/block", "8:0", device__bsg__entry__dev="250:3")
    controller = tree.add("nvme0n1", "pci0/nvme/nvme0", "259:0").parent
    (controller / "dev").write_text("239:0\n")
    head = tree.add("nvme1n1", "virtual/nvme-subsystem/nvme-subsys1", "259:1").parent
    for number in (1, 2):
        place = tree.sys / f"devices/pci{number}/nvme/nvme{number}"
        place.mkdir(parents=True)
        (place / "dev").write_text(f"239:{number}\n")
        (head / f"nvme{number}").symlink_to(place)
    found = [openers.device_identities(name, tree.sys) for name in ("sda", "nvme0n1", "nvme1n1")]
    assert found == [
        {("block", 8, 0), ("character", 250, 3)},
        {("block", 259, 0), ("character", 239, 0)},
        {("block", 259, 1), ("character", 239, 1), ("character", 239, 2)},
    ]


IBLOCK = """\
Status: ACTIVATED  Max Queue Depth: 0  SectorSize: 512  HwMaxSectors: 4096
        iBlock device: sdb  UDEV PATH: /gone  readonly: 0
        Major: 8 Minor: 16  CLAIMED: IBLOCK
"""
FILEIO = """\
Status: {}  Max Queue Depth: 0  SectorSize: 512  HwMaxSectors: 16384
        TCM FILEIO ID: 0        File: {}  Size: 67108864  Mode: O_DSYNC Async: 0
"""


def configfs(root: Path, **files: str) -> Path:
    for path, content in files.items():
        place = root / path.replace("__", "/")
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(content)
    return root


def test_it_finds_exports_that_name_their_device_only_in_a_description(tmp_path: Path) -> None:
    image = rig.sparse(tmp_path / "an image")
    wanted = openers.identity(image.stat())
    root = configfs(
        tmp_path / "config",
        target__core__iblock_0__x__info=IBLOCK,
        target__core__fileio_0__y__info=FILEIO.format("ACTIVATED", image),
        **{"usb_gadget__g__functions__mass_storage.0__lun.0__file": f"{image}\n"},
    )
    assert openers.exports({("block", 8, 16)}, root) == ("LIO (target/core/iblock_0/x)",)
    users = ("LIO (target/core/fileio_0/y)", "a USB gadget (usb_gadget/g/functions/mass_storage.0/lun.0)")
    assert openers.exports({wanted}, root) == users
    assert openers.exports({("block", 8, 0)}, root, strict=True) == ()


LIO = "target__core__fileio_0__y"
NAMESPACE = "nvmet__subsystems__s__namespaces__1"


@pytest.mark.parametrize(
    ("files", "is_active"),
    [
        ({f"{LIO}__info": FILEIO.format("ACTIVATED", "/gone"), f"{LIO}__enable": "1"}, True),
        ({f"{LIO}__info": FILEIO.format("DEACTIVATED", "/gone"), f"{LIO}__enable": "1"}, True),  # without a LUN
        ({f"{LIO}__info": FILEIO.format("DEACTIVATED", "/gone"), f"{LIO}__enable": "0"}, False),
        ({f"{NAMESPACE}__device_path": "/gone", f"{NAMESPACE}__enable": "1"}, True),
        ({f"{NAMESPACE}__device_path": "/gone", f"{NAMESPACE}__enable": "0"}, False),
    ],
)
def test_an_export_of_something_unknown_may_be_that_of_the_target(
    tmp_path: Path, files: dict[str, str], is_active: bool
) -> None:
    """Its device node was removed, or its path is relative."""
    root = configfs(tmp_path, **files)
    assert openers.exports({("block", 8, 0)}, root) == ()  # for reading
    assert bool(openers.exports({("block", 8, 0)}, root, strict=True)) == is_active


@pytest.mark.root
def test_doctor_and_inventory_show_an_export(allowed: Policy, device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert blocks.survey(allowed.targets[0]).problem == ""
    monkeypatch.setattr(openers, "exports", lambda *_, **_more: ("LIO (x)",))
    assert "LIO (x)" in blocks.survey(allowed.targets[0]).problem


def test_it_knows_parts_of_the_kernel_that_hold_a_device_without_a_trace_in_holders(tmp_path: Path) -> None:
    tree = Tree(tmp_path)
    for name, numbers in (("sda", "8:0"), ("sdb", "8:16"), ("sdc", "8:32"), ("bcache0", "250:0")):
        tree.add(name, "pci0/host0/block", numbers)
    (tree.sys / "class/block/sdb/bcache").mkdir()
    (tree.sys / "class/block/bcache0/bcache").symlink_to(tree.sys / "class/block/sdb/bcache")
    (tmp_path / "proc/fs/jbd2/sda").mkdir(parents=True)
    (tmp_path / "proc/fs/jbd2/sdc-8").mkdir()  # the journal is in the file system
    found = [
        len(tuple(usage.kernel_users(name, tree.sys, tmp_path / "proc"))) for name in ("sda", "sdb", "sdc", "bcache0")
    ]
    assert found == [1, 1, 0, 0]


def test_a_device_in_the_options_of_a_mount_is_mounted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The external log of XFS."""
    tree = Tree(tmp_path)
    tree.add("sda", "pci0/host0/block", "8:0")
    names = {"/dev/sda": "sda", "/dev/sdb": "sdb"}
    monkeypatch.setattr(usage, "_source_name", lambda source, _sys: names.get(source, ""))
    line = "30 1 8:0 / /data rw,noatime - xfs /dev/sda rw,logdev=/dev/sdb,noquota\n"
    found = usage._by_device(usage.read_mounts(line), tree.sys)
    assert {name for name, _ in found} == {"sda", "sdb"}


@pytest.mark.parametrize(("model", "refused"), [("host-managed", True), ("host-aware", False), ("none", False)])
def test_a_drive_whose_zones_must_be_written_in_order_is_refused(
    allowed: Policy, monkeypatch: pytest.MonkeyPatch, model: str, refused: bool
) -> None:
    """A stand-in for the attribute: this machine has neither a zoned drive nor null_blk."""
    attribute = sysfs.attribute
    monkeypatch.setattr(
        sysfs, "attribute", lambda name, path, *more: model if path == "queue/zoned" else attribute(name, path, *more)
    )
    assert bool(blocks.survey(allowed.targets[0]).problem) is refused
    if refused:
        assert refusal(rig.stream(allowed), allowed).code == "guard_zoned"


def test_a_partition_of_kpartx_is_never_overwritten(
    allowed: Policy, device: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    attribute = sysfs.attribute
    monkeypatch.setattr(
        sysfs,
        "attribute",
        lambda name, path, *more: f"part1-{MAP}" if path == "dm/uuid" else attribute(name, path, *more),
    )
    with pytest.raises(GuardRefused) as caught:
        blocks.refuse_unless_destroyable(allowed.targets[0], Path(device).name, (allowed.targets[0].arming_serial,))
    assert caught.value.code == "guard_partition"
