"""Folders after Linux on a server with an AHCI port and a SAS HBA; the speeds are those of such drives."""

from pathlib import Path

from worker.inventory.devices import link_of


def put(path: Path, text: str = "") -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text + "\n")


def disk(sys: Path, name: str, place: str) -> Path:
    at = sys / "devices/pci0000:00/0000:00:17.0" / place / "block" / name
    put(at / "dev", "8:0")
    link = sys / "class/block" / name
    link.parent.mkdir(parents=True, exist_ok=True)
    link.symlink_to(at)
    return at


def test_it_reads_the_speed_of_a_sata_link(tmp_path: Path) -> None:
    disk(tmp_path, "sda", "ata3/host2/target2:0:0/2:0:0:0")
    put(tmp_path / "class/ata_link/link3/sata_spd", "6.0 Gbps")
    assert link_of("sda", tmp_path) == (6_000_000_000, 1)
    put(tmp_path / "class/ata_link/link3/sata_spd", "<unknown>")
    assert link_of("sda", tmp_path) is None


def test_it_reads_speed_and_width_of_a_sas_port(tmp_path: Path) -> None:
    place = "host0/port-0:1/end_device-0:1/target0:0:1/0:0:1:0"
    disk(tmp_path, "sdb", place)
    port = tmp_path / "devices/pci0000:00/0000:00:17.0/host0/port-0:1"
    for phy in ("phy-0:0", "phy-0:1"):
        (port / phy).mkdir()
        put(tmp_path / f"class/sas_phy/{phy}/negotiated_linkrate", "12.0 Gbit")
    assert link_of("sdb", tmp_path) == (12_000_000_000, 2)
    put(tmp_path / "class/sas_phy/phy-0:1/negotiated_linkrate", "6.0 Gbit")
    assert link_of("sdb", tmp_path) == (6_000_000_000, 2)


def test_it_knows_none_behind_a_raid_controller(tmp_path: Path) -> None:
    disk(tmp_path, "sdc", "host1/target1:2:0/1:2:0:0")
    assert link_of("sdc", tmp_path) is None
