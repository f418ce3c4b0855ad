"""What controller tools tell, related to a folder that looks like /sys: a MegaRAID 9361-8i, a 9300-8i, an ARC-1680."""

from pathlib import Path

import pytest

from worker import controllers
from worker.contract.inventory import Controller, PhysicalDrive
from worker.controllers import ToolAnswers
from worker.controllers.tests.tools import printing
from worker.inventory import devices
from worker.inventory.tests.functions import function, link, put
from worker.kernel import pci
from worker.kernel.usage import Usage

RAID, HBA, ARECA = "0000:03:00.0", "0000:04:00.0", "0000:05:00.0"
UNUSED = Usage(mounts=(), swaps=(), swap_files=())
NAA = "naa.600605b010cbe11029aeeba55d3ea3e6"


def disk(sys: Path, at: Path, name: str, place: str, **facts: str) -> None:
    block = at / place / "block" / name
    put(block, size="2048", dev="8:0")
    put(at / place, state="running", **facts)
    link(block / "device", at / place)
    link(sys / "class/block" / name, block)


@pytest.fixture
def sys(tmp_path: Path) -> Path:
    root = tmp_path / "sys"
    raid = function(root, RAID, "0x010400", "megaraid_sas")
    disk(root, raid, "sda", "host0/target0:2:0/0:2:0:0", wwid=NAA, vendor="AVAGO", model="MR9361-8i")
    disk(root, raid, "sdb", "host0/target0:0:11/0:0:11:0", vendor="ATA", model="INTEL SSDSC2KG019T8")
    (root / "class/block/sdb/device/vpd_pg80").write_bytes(b"\x00\x80\x00\x0aPHYF932345")
    hba = function(root, HBA, "0x010700", "mpt3sas", version_fw="16.00.10.00", version_bios="08.37.00.00")
    place = "host1/port-1:0/end_device-1:0/target1:0:0/1:0:0:0"
    disk(root, hba, "sdc", place, vendor="SEAGATE", model="ST600MM0006", rev="0003")
    put(root / "class/sas_device/end_device-1:0", bay_identifier="5")
    put(hba / "host1/port-1:0/phy-1:0")
    put(root / "class/sas_phy/phy-1:0", negotiated_linkrate="12.0 Gbit")
    return root


def take(sys: Path, told: ToolAnswers) -> dict[str, Controller]:
    found = devices.block_devices(UNUSED, sys, open_devices=False)
    return {each.address: each for each in controllers.take(pci.functions(sys), found, told, sys)}


def test_it_finds_the_disk_of_a_virtual_drive_by_its_name(
    sys: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    printing(tmp_path, monkeypatch, "storcli64", "storcli-7.1017-9361.json")
    found = take(sys, controllers.ask_tools(sys))[RAID]
    assert (found.tool, found.model) == ("storcli 007.1017.0000.0000", "AVAGO MegaRAID SAS 9361-8i")
    assert (found.vendor, found.subsystem, found.driver) == ("1000", "1000:9361", "megaraid_sas")
    assert [drive.device for drive in found.virtual_drives] == ["sda"]
    assert {drive.slot: drive.device for drive in found.physical_drives}["252:3"] == "sdb"  # by its serial number


def test_it_finds_it_by_its_place_where_the_tool_tells_no_name(
    sys: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (sys / "bus/pci/devices" / RAID).rename(sys / "bus/pci/devices/0000:02:00.0")
    old = sys / "devices/pci0000:00" / RAID
    (sys / "bus/pci/devices/0000:02:00.0").unlink()
    moved = old.rename(old.with_name("0000:02:00.0"))
    link(sys / "bus/pci/devices/0000:02:00.0", moved)
    for name, place in (("sda", "host0/target0:2:0/0:2:0:0"), ("sdb", "host0/target0:0:11/0:0:11:0")):
        (sys / "class/block" / name).unlink()
        link(sys / "class/block" / name, moved / place / "block" / name)
        (moved / place / "block" / name / "device").unlink()
        link(moved / place / "block" / name / "device", moved / place)
    printing(tmp_path, monkeypatch, "MegaCli64", "megacli-8.07")
    data, mirror = take(sys, controllers.ask_tools(sys))["0000:02:00.0"].virtual_drives
    assert (data.device, mirror.device) == ("sda", "")  # the other one is at target 3


def test_it_says_why_a_raid_controller_tells_nothing(
    sys: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("worker.process.run._PLACES", ())
    found = take(sys, controllers.ask_tools(sys))[RAID]
    assert (found.tool, found.virtual_drives, found.physical_drives) == ("sysfs", (), ())
    assert found.problem == (
        "storcli is not installed on this host. perccli is not installed on this host. "
        "MegaCli is not installed on this host."
    )


def test_it_reads_a_host_bus_adapter_from_sysfs(sys: Path) -> None:
    found = take(sys, ToolAnswers())[HBA]
    assert (found.tool, found.firmware, found.bios) == ("sysfs", "16.00.10.00", "08.37.00.00")
    assert (found.driver, found.problem) == ("mpt3sas", "")
    assert found.physical_drives == (
        PhysicalDrive(
            slot="bay 5", model="SEAGATE ST600MM0006", firmware="0003", state="running", size_bytes=2**20,
            interface="SAS", link_bits_per_s=12_000_000_000, device="sdc",
        ),
    )  # fmt: skip


def test_a_tool_that_tells_no_address_is_believed_of_the_only_controller_of_its_kind(
    sys: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    areca = function(sys, ARECA, "0x010400", "arcmsr")
    disk(sys, areca, "sdd", "host2/target2:0:0/2:0:0:0", model="ARC-1680-VOL#00")
    printing(tmp_path, monkeypatch, "cli64", "areca-1.8-1680")
    found = take(sys, controllers.ask_tools(sys))[ARECA]
    assert (found.model, found.virtual_drives[0].device) == ("ARC-1680", "sdd")
    function(sys, "0000:06:00.0", "0x010400", "arcmsr")
    both = take(sys, controllers.ask_tools(sys))
    assert both[ARECA].tool == both["0000:06:00.0"].tool == "sysfs"
    assert both[""].problem == "The controller's PCI address is unknown."
