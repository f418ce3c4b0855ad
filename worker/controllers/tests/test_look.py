"""What is read from the documented output of several generations of each tool. Not tried on real hardware."""

from pathlib import Path

import pytest

from worker import controllers
from worker.contract.inventory import Battery, Controller, PhysicalDrive, VirtualDrive
from worker.controllers.tests.tools import DOCUMENTED, install, printing

TIB, GIB = 2**40, 2**30


def look(directory: Path, monkeypatch: pytest.MonkeyPatch, program: str, recorded: str, driver: str) -> Controller:
    printing(directory, monkeypatch, program, recorded)
    told = controllers.read_controllers([driver])
    ((_, found),) = told.controllers
    return found


def test_it_reads_storcli_of_2014(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = look(tmp_path, monkeypatch, "storcli64", "storcli-1.14-9266.json", "megaraid_sas")
    assert (found.address, found.tool, found.number, found.model, found.serial, found.subsystem) == (
        "0000:02:00.0", "storcli 1.14.12", "0", "LSI MegaRAID SAS 9266-8i", "SV12345678", "1000:9266",
    )  # fmt: skip
    assert (found.firmware, found.bios) == ("3.340.05-2930", "5.42.00.1_4.12.05.00_0x05210000")
    assert (found.driver_version, found.cache_bytes) == ("06.700.06.00-rc1", GIB)
    assert found.battery == Battery(kind="BBU iBBU08", state="Dgd (Needs Attention)")
    (drive,) = found.virtual_drives
    assert drive == VirtualDrive(
        number="0", target="0", level="RAID5", strip_bytes=65536, spans=1, size_bytes=round(1.635 * TIB), state="Optl",
        write_cache="write back", write_cache_now="write through", read_ahead="read ahead", io_policy="direct",
        disk_cache="unchanged", drives=("252:0", "252:1", "252:2", "252:3"),
    )  # fmt: skip
    assert found.physical_drives[2] == PhysicalDrive(
        slot="252:2", model="ST3600057SS", serial="6SL02ABC", firmware="0008", state="Onln",
        size_bytes=0x45DD2FB0 * 512, medium="HDD", interface="SAS", link_bits_per_s=6_000_000_000,
    )  # fmt: skip


def test_it_reads_storcli_7(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = look(tmp_path, monkeypatch, "storcli64", "storcli-7.1017-9361.json", "megaraid_sas")
    assert found.battery == Battery(kind="CacheVault CVPM02", state="Optimal")
    (drive,) = found.virtual_drives
    assert (drive.wwn, drive.name) == ("wwn-0x600605b010cbe11029aeeba55d3ea3e6", "data")
    assert (drive.write_cache, drive.write_cache_now) == ("always write back", "always write back")
    assert (drive.read_ahead, drive.io_policy, drive.disk_cache) == ("none", "cached", "disabled")
    assert [(d.slot, d.state) for d in found.physical_drives][2:] == [("252:2", "Onln"), ("252:3", "UGood")]


def test_it_reads_perccli(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = look(tmp_path, monkeypatch, "perccli64", "perccli-7.1910-H740P.json", "megaraid_sas")
    assert (found.address, found.tool) == ("0000:18:00.0", "perccli 007.1910.0000.0000")
    (drive,) = found.virtual_drives
    assert (drive.number, drive.level, drive.drives) == ("239", "RAID1", ("64:0", "64:1"))
    assert (drive.write_cache, drive.write_cache_now, drive.disk_cache) == ("write back", "write back", "enabled")
    assert found.physical_drives[0].link_bits_per_s == 12_000_000_000


def test_it_reads_megacli_8(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = look(tmp_path, monkeypatch, "MegaCli64", "megacli-8.07", "megaraid_sas")
    assert (found.address, found.tool, found.number, found.model) == (
        "0000:02:00.0", "MegaCli", "0", "LSI MegaRAID SAS 9266-8i",
    )  # fmt: skip
    assert (found.firmware, found.subsystem, found.cache_bytes) == ("3.220.35-1998", "1000:9266", GIB)
    assert found.battery == Battery(kind="iBBU08", state="Learning, learn cycle active")
    data, mirror = found.virtual_drives
    assert (data.level, data.strip_bytes, data.name, data.bad_battery) == ("RAID5", 65536, "data", "not cached")
    assert (data.write_cache, data.write_cache_now, data.read_ahead) == ("write back", "write through", "adaptive")
    assert (data.io_policy, data.disk_cache) == ("direct", "unchanged")
    assert data.drives == ("252:0", "252:1", "252:2", "252:3")
    assert (mirror.number, mirror.target, mirror.level, mirror.strip_bytes) == ("1", "3", "RAID10", 2**20)
    assert (mirror.write_cache, mirror.write_cache_now, mirror.bad_battery) == (
        "always write back", "always write back", "cached",
    )  # fmt: skip
    sas, sata, spare = found.physical_drives[0], found.physical_drives[4], found.physical_drives[-1]
    assert (sas.model, sas.serial, sas.firmware) == ("SEAGATE ST3600057SS", "6SL00ABC", "0008")
    assert (sata.model, sata.serial, sata.firmware) == ("INTEL SSDSC2BB480G4", "CVPR12340ABC", "D2010370")
    assert (sata.medium, sata.size_bytes, sata.link_bits_per_s) == ("SSD", 0x37E436B0 * 512, 6_000_000_000)
    assert (spare.slot, spare.state, spare.model) == (":8", "Unconfigured(good), Spun Up", "short")


def test_it_reads_megacli_of_2009(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = look(tmp_path, monkeypatch, "MegaCli", "megacli-4.00", "megaraid_sas")
    assert (found.address, found.model, found.cache_bytes) == ("0000:03:00.0", "PERC 6/i Integrated", 256 * 2**20)
    assert found.battery == Battery(kind="BBU", state="Absent")
    (drive,) = found.virtual_drives
    assert (drive.level, drive.strip_bytes, drive.size_bytes) == ("RAID1", 65536, 69376 * 2**20)
    assert (drive.write_cache, drive.read_ahead, drive.disk_cache) == ("write through", "none", "disabled")
    assert drive.drives == ("32:0", "32:1")
    assert found.physical_drives[1].serial == "3LQ2DZ31"


def test_a_controller_without_any_drive_is_one_all_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bare = (DOCUMENTED / "megacli-4.00/AdpAllInfo").read_text()
    install(tmp_path, monkeypatch, "MegaCli", f"print({bare!r})")
    ((_, found),) = controllers.read_controllers(["megaraid_sas"]).controllers
    assert (found.model, found.virtual_drives, found.physical_drives) == ("PERC 6/i Integrated", (), ())
    lines = (DOCUMENTED / "ssacli-4.21-P420i.txt").read_text().partition("   Array: A")[0]
    install(tmp_path, monkeypatch, "ssacli", f"print({lines!r})")
    ((_, other),) = controllers.read_controllers(["hpsa"]).controllers
    assert (other.model, other.virtual_drives) == ("Smart Array P420i", ())


def test_it_reads_hpacucli(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = look(tmp_path, monkeypatch, "hpacucli", "hpacucli-8-P410i.txt", "hpsa")
    assert (found.address, found.number, found.model, found.firmware) == ("", "0", "Smart Array P410i", "5.70")
    assert (found.cache_bytes, found.battery) == (512 * 2**20, Battery(kind="Capacitors", state="OK"))
    (drive,) = found.virtual_drives
    assert (drive.level, drive.strip_bytes, drive.device) == ("RAID10", 131072, "cciss/c0d0")
    assert (drive.write_cache, drive.write_cache_now) == ("write back", "write back")
    assert drive.drives == ("1I:1:1", "1I:1:2")
    assert found.physical_drives[0].model == "HP EG0146FAWHU"
    assert found.physical_drives[0].link_bits_per_s == 6_000_000_000


def test_it_reads_ssacli(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = look(tmp_path, monkeypatch, "ssacli", "ssacli-4.21-P420i.txt", "hpsa")
    assert (found.address, found.cache_bytes, found.driver_version) == ("0000:02:00.0", GIB, "3.4.20")
    assert found.battery == Battery(kind="Capacitors", state="Failed (Replace Batteries)")
    fast, slow = found.virtual_drives
    assert (fast.wwn, fast.name, fast.strip_bytes) == ("wwn-0x600508b1001c52a1b2c3d4e5f6071829", "fast", 262144)
    assert (fast.write_cache, fast.write_cache_now, fast.disk_cache) == ("write back", "write through", "enabled")
    assert (slow.write_cache, slow.write_cache_now, slow.strip_bytes) == ("write through", "write through", 65536)
    assert fast.drives == slow.drives == ("1I:2:1", "1I:2:2")
    assert [(d.slot, d.medium, d.interface) for d in found.physical_drives] == [
        ("1I:2:1", "SSD", "SATA"), ("1I:2:2", "SSD", "SATA"), ("1I:2:3", "HDD", "SAS"),
    ]  # fmt: skip


def test_it_reads_areca_of_2009(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = look(tmp_path, monkeypatch, "cli64", "areca-1.8-1680", "arcmsr")
    assert (found.model, found.firmware, found.bios) == ("ARC-1680", "V1.46 2009-01-06", "V1.45 2008-11-07")
    assert (found.cache_bytes, found.battery) == (512 * 2**20, Battery(kind="battery", state="charged"))
    (drive,) = found.virtual_drives
    assert (drive.level, drive.strip_bytes, drive.size_bytes) == ("RAID6", 131072, 192_000_000_000)
    assert (drive.target, drive.write_cache, drive.read_ahead) == ("00/00/00", "write back", "")
    assert found.physical_drives == (
        PhysicalDrive(
            slot="1", model="MTRON MSP-SATA7535", serial="0HN12345678", firmware="0.20R1", state="NORMAL",
            size_bytes=32_000_000_000, interface="SATA", link_bits_per_s=1_500_000_000,
        ),
    )  # fmt: skip


def test_it_reads_areca_with_enclosures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = look(tmp_path, monkeypatch, "cli64", "areca-2.1-1882", "arcmsr")
    assert found.battery == Battery(kind="battery", state="Not Installed")
    (drive,) = found.virtual_drives
    assert (drive.number, drive.level, drive.strip_bytes) == ("2", "RAID10", 65536)
    assert (drive.target, drive.write_cache) == ("00/00/01", "write through")
    (disk,) = found.physical_drives
    assert (disk.slot, disk.link_bits_per_s) == ("Enclosure#2 SLOT 06", 6_000_000_000)


def test_it_starts_nothing_where_no_controller_has_a_tool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    printing(tmp_path, monkeypatch, "storcli64", "storcli-1.14-9266.json")
    assert controllers.read_controllers(["mpt3sas", "ahci"]) == controllers.ToolAnswers()


def test_it_takes_the_first_tools_word_for_a_controller_that_two_know(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    printing(tmp_path, monkeypatch, "storcli64", "storcli-1.14-9266.json")
    printing(tmp_path, monkeypatch, "MegaCli64", "megacli-8.07")
    told = controllers.read_controllers(["megaraid_sas"])
    assert [name for name, _ in told.controllers] == ["storcli"]
    assert told.problems == {"megaraid_sas": "perccli is not installed on this host."}
