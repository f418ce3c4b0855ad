"""Folders after what Linux shows of a two-socket server: a MegaRAID 9266-8i and an NVMe drive that lost two lanes."""

import struct
from pathlib import Path

import pytest

from worker.contract.inventory import PciFunction
from worker.kernel import pci, sysfs

ROOT = "devices/pci0000:00/0000:00:02.0"


def put(at: Path, **files: str) -> None:
    at.mkdir(parents=True, exist_ok=True)
    for name, value in files.items():
        (at / name).write_text(value + "\n")


def add(sys: Path, place: str, **files: str) -> Path:
    at = sys / place
    put(at, vendor="0x1000", device="0x005b", subsystem_vendor="0x1000", subsystem_device="0x9266", **files)
    link = sys / "bus/pci/devices" / at.name
    link.parent.mkdir(parents=True, exist_ok=True)
    link.symlink_to(at)
    return at


def link(now: str, lanes: str, most: str, max_lanes: str) -> dict[str, str]:
    return {
        "current_link_speed": f"{now} GT/s PCIe", "current_link_width": lanes, "max_link_speed": f"{most} GT/s PCIe",
        "max_link_width": max_lanes,
    }  # fmt: skip


def config(control: int, able: int) -> bytes:
    """A configuration space whose second capability is PCI Express."""
    space = bytearray(256)
    space[0x34] = 0x40
    space[0x40:0x42] = bytes((0x01, 0x60))  # power management, then on to 0x60
    space[0x60:0x62] = bytes((0x10, 0x00))
    struct.pack_into("<I", space, 0x64, able)
    struct.pack_into("<H", space, 0x68, control << 5)
    return bytes(space)


@pytest.fixture
def sys(tmp_path: Path) -> Path:
    root = tmp_path / "sys"
    add(root, ROOT, **{"class": "0x060400", "numa_node": "0", **link("5.0", "8", "8.0", "16")})
    raid = add(
        root,
        f"{ROOT}/0000:02:00.0",
        **{"class": "0x010400", "numa_node": "1", "irq": "30", **link("5.0", "8", "5.0", "8")},
    )
    for number in ("62", "63"):
        put(raid / "msi_irqs", **{number: "msix"})
    (raid / "config").write_bytes(config(control=1, able=2))
    put(root / "module/megaraid_sas", version="07.719.03.00-rc1")
    put(root / "bus/pci/drivers/megaraid_sas")
    (raid / "driver").symlink_to(root / "bus/pci/drivers/megaraid_sas")
    put(raid / "host0/scsi_host/host0", version_fw="3.190.15-1686", board_name="LSI MegaRAID SAS 9266-8i")
    disk = raid / "host0/target0:2:0/0:2:0:0/block/sda"
    put(disk, dev="8:0", size="1000")
    (root / "class/block").mkdir(parents=True)
    (root / "class/block/sda").symlink_to(disk)
    add(
        root,
        "devices/pci0000:80/0000:80:01.0",
        **{"class": "0x060400", "numa_node": "1", **link("8.0", "2", "8.0", "8")},
    )
    nvme = "devices/pci0000:80/0000:80:01.0/0000:81:00.0"
    add(root, nvme, **{"class": "0x010802", "numa_node": "-1", "irq": "0", **link("8.0", "2", "16.0", "4")})
    add(root, "devices/pci0000:00/0000:00:1f.3", **{"class": "0x0c0500", "irq": "16"})
    return root


def by_address(sys: Path) -> dict[str, PciFunction]:
    return {found.address: found for found in pci.functions(sys)}


def test_it_shows_storage_and_the_way_to_it_and_nothing_else(sys: Path) -> None:
    found = by_address(sys)
    assert [(f.address, f.parent, f.kind) for f in found.values()] == [
        ("0000:00:02.0", "", "bridge"),
        ("0000:02:00.0", "0000:00:02.0", "raid"),
        ("0000:80:01.0", "", "bridge"),
        ("0000:81:00.0", "0000:80:01.0", "nvme"),
    ]
    raid = found["0000:02:00.0"]
    assert (raid.vendor_id, raid.device_id, raid.subsystem) == ("1000", "005b", "1000:9266")
    assert (raid.driver, raid.driver_version, raid.firmware) == ("megaraid_sas", "07.719.03.00-rc1", "3.190.15-1686")
    assert (raid.model, raid.numa_node, raid.interrupts) == ("LSI MegaRAID SAS 9266-8i", 1, (62, 63))
    assert found["0000:81:00.0"].numa_node is None


def test_it_reads_links_and_marks_the_degraded_one(sys: Path) -> None:
    found = by_address(sys)
    raid, nvme = found["0000:02:00.0"].link, found["0000:81:00.0"].link
    assert raid is not None
    assert nvme is not None
    assert (raid.transfers_per_s, raid.lanes, raid.max_transfers_per_s, raid.max_lanes) == (5 * 10**9, 8, 5 * 10**9, 8)
    assert (raid.degraded, raid.payload_bytes, raid.max_payload_bytes) == (False, 256, 512)
    assert (nvme.degraded, nvme.lanes, nvme.max_lanes, nvme.payload_bytes) == (True, 2, 4, None)


def test_it_judges_a_link_at_its_lower_end(sys: Path) -> None:
    """The root port runs at half of what it can do, because the card below it can do no more."""
    found = by_address(sys)
    root = found["0000:00:02.0"]
    assert root.link is not None
    assert (root.downstream, root.link.degraded) == (True, None)
    assert not found["0000:02:00.0"].downstream


@pytest.mark.parametrize(("kind", "downstream"), [(4, True), (5, False), (6, True)])
def test_it_tells_the_ports_of_a_switch_apart(sys: Path, kind: int, downstream: bool) -> None:
    space = bytearray(config(1, 2))
    space[0x62] = kind << 4 | 2
    (sys / "devices/pci0000:80/0000:80:01.0/config").write_bytes(bytes(space))
    assert by_address(sys)["0000:80:01.0"].downstream is downstream


def test_it_does_not_call_a_link_degraded_that_is_as_fast_as_the_slower_end(sys: Path) -> None:
    nvme = sys / "devices/pci0000:80/0000:80:01.0/0000:81:00.0"
    put(nvme, current_link_width="4")  # at 8 GT/s: the drive could do 16, the port above cannot
    link = by_address(sys)["0000:81:00.0"].link
    assert link is not None
    assert link.degraded is False
    put(nvme, current_link_speed="Unknown")
    link = by_address(sys)["0000:81:00.0"].link
    assert link is not None
    assert (link.transfers_per_s, link.degraded) == (None, None)


@pytest.mark.parametrize("space", [b"", bytes(64), config(1, 2)[:0x62], bytes([0x40] * 256)])
def test_it_knows_no_payload_where_the_space_is_cut_off_or_goes_round(space: bytes) -> None:
    assert pci.payloads(space) == (None, None)


def test_it_leads_from_a_drive_to_its_controller(sys: Path) -> None:
    assert sysfs.controller("sda", sys) == "0000:02:00.0"
    assert sysfs.transport("sda", sys) == "raid"


def test_it_finds_names_in_the_list_that_lspci_uses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other, maker = "0fff  Other\n\t005b  Wrong\n", "1000  Broadcom / LSI\n\t005b  MegaRAID SAS 2208\n"
    rows = f"# list\n{other}{maker}\t\t1000 9266  9266-8i\n1001  Z\n"
    (tmp_path / "pci.ids").write_text(rows)
    monkeypatch.setattr(pci, "PLACES", (tmp_path / "pci.ids",))
    assert pci.model("1000", "005b") == "Broadcom / LSI MegaRAID SAS 2208"
    assert pci.model("1000", "9266") == pci.model("abcd", "005b") == ""
