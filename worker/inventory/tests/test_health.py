"""Outputs in `recorded/` are of smartctl 7.3 and nvme-cli 2.3 on the lab's virtual storage server.

The drives of real makers below are put together after smartmontools' JSON: of an Intel and a Samsung SATA SSD and a
SAS SSD, cut to what is read. They were not tried on such drives.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from worker.inventory import health
from worker.inventory.health import IntelLog, OcpLog, decoded
from worker.process.run import ToolError, ToolOutput

RECORDED = Path(__file__).parent / "recorded"
KNOWN = {"in_smartctl_database": True}


def recorded(name: str, exit_code: int = 0) -> ToolOutput:
    return ToolOutput(exit_code, (RECORDED / name).read_text(), "")


def said(exit_code: int = 0, **keys: Any) -> ToolOutput:
    return ToolOutput(exit_code, json.dumps({"smartctl": {"version": [7, 3]}, **keys}), "")


def attributes(**raw: tuple[int, int]) -> dict[str, Any]:
    rows = [{"id": 1, "name": n, "value": v, "raw": {"value": r, "string": str(r)}} for n, (v, r) in raw.items()]
    return {"ata_smart_attributes": {"revision": 1, "table": rows}, "smart_status": {"passed": True}}


def test_it_reads_an_nvme_drive_by_smartctl() -> None:
    found = health.read_smartctl(recorded("smartctl-7.3-nvme.json"), "nvme0n1", "LABNVME0")
    assert (found.tool, found.healthy, found.temperature_c, found.percent_used) == ("smartctl 7.3", True, 50, 0)
    assert (found.host_written_bytes, found.media_errors, found.warnings) == (0, 0, ())
    assert found.host_unit_bytes == 512_000


def test_it_reads_an_nvme_drive_by_nvme_cli() -> None:
    found = health.read_nvme_cli(recorded("nvme-cli-2.3-smart-log.json"), "nvme0n1", "LABNVME0")
    assert (found.tool, found.healthy, found.temperature_c, found.percent_used) == ("nvme-cli", True, 50, 0)
    log = {"critical_warning": 5, "temperature": 350, "percent_used": 104, "data_units_written": "1000"}
    worn = health.read_nvme_cli(ToolOutput(0, json.dumps(log), ""), "nvme0n1", "")
    assert (worn.healthy, worn.percent_used, worn.host_written_bytes) == (False, 104, 512_000_000)
    assert worn.warnings == ("spare capacity is low", "reliability is degraded")


def test_it_reads_a_sata_drive() -> None:
    found = health.read_smartctl(recorded("smartctl-7.3-sata.json"), "sdf", "LABSATA0")
    assert (found.healthy, found.temperature_c, found.power_on_hours) == (True, 31, 1)
    assert (found.percent_used, found.host_written_bytes) == (None, None)


def test_it_says_that_a_drive_tells_nothing() -> None:
    found = health.read_smartctl(recorded("smartctl-7.3-scsi.json", 4), "sda", "LABVS0")
    assert (found.healthy, found.temperature_c, "does not report its health" in found.problem) == (None, None, True)


def test_it_reads_what_makers_count_in_units_of_their_own() -> None:
    intel = attributes(Media_Wearout_Indicator=(93, 0), Host_Writes_32MiB=(100, 1000), NAND_Writes_32MiB=(100, 1500))
    found = health.read_smartctl(said(**KNOWN, model_family="Intel S4510 Series SSDs", **intel), "sda", "")
    assert (found.percent_used, found.host_written_bytes, found.media_written_bytes) == (7, 1000 * 2**25, 1500 * 2**25)
    assert (found.host_unit_bytes, found.media_unit_bytes) == (2**25, 2**25)
    samsung = attributes(Wear_Leveling_Count=(99, 12), Total_LBAs_Written=(99, 2_000_000))
    found = health.read_smartctl(said(**KNOWN, model_family="Samsung based SSDs", **samsung), "sda", "")
    assert (found.percent_used, found.host_written_bytes, found.media_written_bytes) == (1, 1_024_000_000, None)
    assert (found.host_unit_bytes, found.media_unit_bytes) == (512, None)
    found = health.read_smartctl(said(scsi_percentage_used_endurance_indicator=2), "sda", "")
    assert found.percent_used == 2


def test_it_counts_microns_pages_whose_size_is_not_told() -> None:
    pages = attributes(
        Total_LBAs_Written=(100, 8), Host_Program_Page_Count=(100, 3_699_503), FTL_Program_Page_Count=(100, 461_048)
    )
    found = health.read_smartctl(said(**KNOWN, model_family="Crucial/Micron MX500 SSDs", **pages), "sda", "")
    assert (found.host_written_bytes, found.media_written_bytes) == (4096, None)
    assert (found.host_pages, found.media_pages) == (3_699_503, 3_699_503 + 461_048)


@pytest.mark.parametrize("known", [{}, {"in_smartctl_database": True, "model_family": "Other based SSDs"}])
def test_it_does_not_believe_names_that_smartctl_gives_to_drives_of_makers_it_does_not_know(
    known: dict[str, Any],
) -> None:
    names = attributes(
        Total_LBAs_Written=(100, 77), NAND_Writes_1GiB=(100, 5), Wear_Leveling_Count=(90, 1),
        Media_Wearout_Indicator=(50, 1),
    )  # fmt: skip
    found = health.read_smartctl(said(**known, **names), "sda", "")
    assert (found.host_written_bytes, found.media_written_bytes, found.percent_used) == (None, None, None)


def test_it_prefers_the_standards_own_statistics_where_the_drive_says_they_are_valid() -> None:
    def statistics(*, valid: bool) -> dict[str, Any]:
        flags = {"value": 192, "string": "---", "valid": valid}
        health = {"offset": 24, "name": "Logical Sectors Written", "size": 6, "value": 1000, "flags": flags}
        used = {"offset": 8, "name": "Percentage Used Endurance Indicator", "size": 1, "value": 4, "flags": flags}
        pages = [{"number": 1, "table": [health]}, {"number": 7, "table": [used]}]
        return {"ata_device_statistics": {"pages": pages}, "logical_block_size": 4096}

    samsung = attributes(Total_LBAs_Written=(99, 7), Wear_Leveling_Count=(99, 12))
    of = {**KNOWN, "model_family": "Samsung based SSDs", **samsung}
    found = health.read_smartctl(said(**of, **statistics(valid=True)), "sda", "")
    assert (found.host_written_bytes, found.host_unit_bytes, found.percent_used) == (4_096_000, 4096, 4)
    found = health.read_smartctl(said(**of, **statistics(valid=False)), "sda", "")
    assert (found.host_written_bytes, found.percent_used) == (7 * 4096, 1)


def test_it_takes_what_nvme_drives_wrote_to_their_media_from_a_vendors_page() -> None:
    """As plugins of nvme-cli print the pages; not tried on such drives."""
    ocp = '{"Physical media units written": {"hi": 0, "lo": 12279729139712}, "Physical media units read": {"lo": 1}}'
    assert health.ocp_written(decoded("ocp", ocp, OcpLog)).media_written_bytes == 12_279_729_139_712
    assert health.ocp_written(OcpLog()).media_written_bytes is None

    def intel(nand: int, host: int) -> IntelLog:
        rows = {name: {"#id": 1, "normalized": 100, "raw": raw} for name, raw in
                (("nand_bytes_written", nand), ("host_bytes_written", host))}  # fmt: skip
        return decoded("intel", json.dumps({"Device stats": rows}), IntelLog)

    found = health.intel_written(intel(1500, 1000), 1000 * 2**25)
    assert (found.media_written_bytes, found.media_unit_bytes) == (1500 * 2**25, 2**25)
    assert health.intel_written(intel(1500, 1000), 2000 * 2**25).media_written_bytes is None  # in another unit, then
    assert health.intel_written(intel(1500, 1000), None).media_written_bytes is None


@pytest.mark.parametrize("cut", [0, 1, 100, 900])
def test_it_refuses_an_output_that_is_cut_off(cut: int) -> None:
    whole = recorded("smartctl-7.3-nvme.json")
    with pytest.raises(ToolError, match="cannot be read"):
        health.read_smartctl(ToolOutput(0, whole.out[:cut], ""), "nvme0n1", "")


def test_it_refuses_another_drives_word_and_gives_the_tools_own_reason() -> None:
    with pytest.raises(ToolError, match="not for OTHER"):
        health.read_smartctl(recorded("smartctl-7.3-nvme.json"), "nvme0n1", "OTHER")
    failed = {"version": [7, 3], "messages": [{"string": "Device is in STANDBY mode", "severity": "information"}]}
    with pytest.raises(ToolError, match="STANDBY"):
        health.read_smartctl(ToolOutput(2, json.dumps({"smartctl": failed}), ""), "sda", "")
    with pytest.raises(ToolError, match="Permission denied"):
        health.read_nvme_cli(ToolOutput(1, "", "Permission denied"), "nvme0n1", "")


def test_it_names_what_is_missing_and_ends_what_hangs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    node = tmp_path / "sys/devices/pci0000:00/nvme/nvme0/nvme0n1"
    (node / "device").mkdir(parents=True)
    for name, value in {"dev": "259:0", "size": "1000", "device/transport": "pcie", "device/serial": "S1"}.items():
        (node / name).write_text(value + "\n")
    (tmp_path / "sys/class/block").mkdir(parents=True)
    (tmp_path / "sys/class/block/nvme0n1").symlink_to(node)
    tools = tmp_path / "bin"
    tools.mkdir()
    for name in ("smartctl", "nvme"):
        (tools / name).write_text("#!/bin/sh\nexec sleep 60\n")
        (tools / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tools}:/usr/bin:/bin")
    monkeypatch.setattr(health, "LIMIT_S", 0.2)
    (found,) = health.take(tmp_path / "sys")
    assert (found.device, found.serial, found.healthy) == ("nvme0n1", "S1", None)
    assert "smartctl did not finish within 0.2 s" in found.problem
    assert "nvme did not finish" in found.problem
    (tools / "smartctl").write_text(f"#!/bin/sh\ncat {RECORDED}/smartctl-7.3-nvme.json\n")
    (refused,) = health.take(tmp_path / "sys")
    assert "answered for LABNVME0, not for S1" in refused.problem


def test_it_asks_an_nvme_drive_for_a_vendors_page_once_where_it_has_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each refusal is written to the drive's error log."""
    node = tmp_path / "sys/devices/pci0000:00/nvme/nvme0/nvme0n1"
    (node / "device").mkdir(parents=True)
    for name, value in {"dev": "259:0", "size": "1", "device/transport": "pcie", "device/serial": "LABNVME0"}.items():
        (node / name).write_text(value + "\n")
    (tmp_path / "sys/class/block").mkdir(parents=True)
    (tmp_path / "sys/class/block/nvme0n1").symlink_to(node)
    tools, asked = tmp_path / "bin", tmp_path / "asked"
    tools.mkdir()
    (tools / "smartctl").write_text(f"#!/bin/sh\nexec cat {RECORDED}/smartctl-7.3-nvme.json\n")
    (tools / "nvme").write_text(f"#!/bin/sh\necho $1 >>{asked}\nexit 1\n")
    for name in ("smartctl", "nvme"):
        (tools / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tools}:/usr/bin:/bin")
    monkeypatch.setattr(health, "_refused", set())
    assert [health.of("nvme0n1", tmp_path / "sys").host_written_bytes for _ in range(2)] == [0, 0]
    assert asked.read_text() == "ocp\n"
    (tools / "nvme").write_text('#!/bin/sh\necho \'{"Physical media units written": {"hi": 0, "lo": 99}}\'\n')
    monkeypatch.setattr(health, "_refused", set())
    assert health.of("nvme0n1", tmp_path / "sys").media_written_bytes == 99
