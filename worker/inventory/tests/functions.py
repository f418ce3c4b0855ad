"""PCI functions in a sysfs of files."""

from pathlib import Path


def function(sys: Path, address: str, code: str, driver: str, **host: str) -> Path:
    at = sys / "devices/pci0000:00" / address
    put(at, vendor="0x1000", device="0x005d", subsystem_vendor="0x1000", subsystem_device="0x9361", **{"class": code})
    link(sys / "bus/pci/devices" / address, at)
    put(sys / f"bus/pci/drivers/{driver}")
    link(at / "driver", sys / f"bus/pci/drivers/{driver}")
    put(at / "host0/scsi_host/host0", **host)
    return at


def put(at: Path, **files: str) -> None:
    at.mkdir(parents=True, exist_ok=True)
    for name, value in files.items():
        (at / name).write_text(value + "\n")


def link(at: Path, to: Path) -> None:
    at.parent.mkdir(parents=True, exist_ok=True)
    at.symlink_to(to)
