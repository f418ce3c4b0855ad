"""Storage controllers and NVMe drives, with their PCI Express paths from the root port.

Speeds and widths come from sysfs. The packet payload comes from the configuration space, of which only root
can read more than 64 bytes. A link is degraded if it is slower or narrower than both ends support: a x8 card
in a x16 slot that runs at x8 is not degraded.
"""

import re
import struct
from functools import lru_cache
from pathlib import Path

from worker.contract.base import MAX_LABEL
from worker.contract.inventory import PcieLink, PciFunction
from worker.kernel.sysfs import PCI_ADDRESS, SYS, text

# Names of PCI devices from lspci's list (pci.ids), if the host has it.

PLACES = (Path("/usr/share/misc/pci.ids"), Path("/usr/share/hwdata/pci.ids"))


def model(vendor: str, device: str) -> str:
    """`Broadcom / LSI MegaRAID SAS 2208`; "" if the device is not listed. Ids are four hex digits."""
    return next((_named(path, vendor, device) for path in PLACES if path.exists()), "")


@lru_cache(maxsize=256)
def _named(path: Path, vendor: str, device: str) -> str:
    """Lines of vendors start with their id, lines of devices with one tab, lines of subsystems with two tabs."""
    rows = "\n" + path.read_text(errors="replace")
    start = rows.find(f"\n{vendor}  ")
    if not vendor or start < 0:
        return ""
    end = re.compile(r"\n[^\t#\n]").search(rows, start + 1)
    block = rows[start + 1 : end.start() if end else len(rows)]
    match = re.search(rf"^\t{re.escape(device)}  (.+)$", block, re.MULTILINE)
    maker = block.partition("\n")[0].partition("  ")[2].strip()
    return f"{maker} {match[1].strip()}" if match and device else ""


_STORAGE, _BRIDGE = 0x01, 0x06
_KINDS = {0x00: "scsi", 0x01: "ide", 0x04: "raid", 0x06: "sata", 0x07: "sas", 0x08: "nvme"}
_FIRMWARE = ("version_fw", "fwrev", "firmware_rev", "fw_version")  # attributes of the SCSI hosts of various drivers
_MODEL = ("board_name", "version_product", "model_name", "model")
_CAPABILITY_LIST, _FIRST_CAPABILITY, _PCI_EXPRESS = 0x34, 0x40, 0x10
_DOWNSTREAM = (4, 6)  # root port, downstream port of a switch


def functions(sys: Path = SYS) -> tuple[PciFunction, ...]:
    """All storage functions and the bridges in front of them, ordered by address."""
    functions_by_address: dict[str, PciFunction] = {}
    for address in _storage(sys):
        for each in _way(address, sys):
            if each not in functions_by_address:
                functions_by_address[each] = function(each, sys)
    return tuple(functions_by_address[address] for address in sorted(functions_by_address))


def _storage(sys: Path) -> list[str]:
    """True for storage classes, and for disks with another class (virtio)."""
    entries = sorted((sys / "bus/pci/devices").glob("*"))
    return [entry.name for entry in entries if PCI_ADDRESS.match(entry.name) and _class(entry) >> 8 == _STORAGE]


def _class(at: Path) -> int:
    """Base class and subclass as one number: 0x0108 is an NVMe controller."""
    code = text(at / "class")
    return int(code, 16) >> 8 if code.startswith("0x") else 0


def _way(address: str, sys: Path) -> list[str]:
    """The function and the bridges above it, from the root port down."""
    parts = (sys / "bus/pci/devices" / address).resolve().parts
    return [part for part in parts if PCI_ADDRESS.match(part)]


def function(address: str, sys: Path) -> PciFunction:
    at = sys / "bus/pci/devices" / address
    above = _way(address, sys)[:-1]
    driver = (at / "driver").resolve().name if (at / "driver").exists() else ""
    vendor, device = _identity(at, "vendor", "device")
    node = text(at / "numa_node")
    downstream = _faces_down(at, has_parent=bool(above))
    return PciFunction(
        address=address,
        parent=above[-1] if above else "",
        kind=_kind(_class(at)),
        vendor_id=vendor,
        device_id=device,
        subsystem=":".join(filter(None, _identity(at, "subsystem_vendor", "subsystem_device"))),
        model=(_of_the_driver(at, _MODEL) or model(vendor, device))[:MAX_LABEL],
        firmware=_of_the_driver(at, _FIRMWARE)[:MAX_LABEL],
        driver=driver[:MAX_LABEL],
        driver_version=text(sys / "module" / driver / "version")[:MAX_LABEL] if driver else "",
        numa_node=int(node) if node.isdecimal() else None,
        interrupts=interrupts(address, sys),
        link=_pcie_link(at, sys / "bus/pci/devices" / above[-1] if above else None, downstream=downstream),
        downstream=downstream,
    )


def _kind(code: int) -> str:
    if code >> 8 == _STORAGE:
        return _KINDS.get(code & 0xFF, "storage")
    return "bridge" if code >> 8 == _BRIDGE else "other"


def _identity(at: Path, *files: str) -> tuple[str, ...]:
    return tuple(text(at / file).removeprefix("0x") for file in files)


def _of_the_driver(at: Path, names: tuple[str, ...]) -> str:
    """Attributes of the function's SCSI host or NVMe controller."""
    places = [*at.glob("host*/scsi_host/host*"), *at.glob("nvme/nvme*")]
    return next((version for place in places for name in names if (version := text(place / name))), "")


def interrupts(address: str, sys: Path = SYS) -> tuple[int, ...]:
    """MSI interrupts if the function has any, else its interrupt line."""
    at = sys / "bus/pci/devices" / address
    numbers = sorted(int(entry.name) for entry in (at / "msi_irqs").glob("[0-9]*"))
    line = text(at / "irq")
    return tuple(numbers) or ((int(line),) if line.isdecimal() and line != "0" else ())


# ---- links


def _faces_down(at: Path, *, has_parent: bool) -> bool:
    """True for a root port or a downstream port of a switch: its link is the one below. Type: bits 7:4."""
    if _class(at) >> 8 != _BRIDGE:
        return False
    config = _config(at)
    offset = _express(config)
    return not has_parent if offset is None else config[offset + 2] >> 4 in _DOWNSTREAM


def _pcie_link(at: Path, above: Path | None, *, downstream: bool) -> PcieLink | None:
    now, most = _speed(at, "current"), _speed(at, "max")
    if most is None:
        return None
    lanes, max_lanes = _lanes(at, "current"), _lanes(at, "max")
    payload, max_payload = payloads(_config(at))
    return PcieLink(
        transfers_per_s=now,
        lanes=lanes,
        max_transfers_per_s=most,
        max_lanes=max_lanes,
        degraded=None
        if downstream  # the other end reports the link
        else _degraded((now, most, _speed(above, "max")), (lanes, max_lanes, _lanes(above, "max"))),
        payload_bytes=payload,
        max_payload_bytes=max_payload,
    )


def _degraded(*facts: tuple[int | None, int | None, int | None]) -> bool | None:
    """Compare current values with the maximum here and above. None if one is unknown."""
    if any(now is None or here is None for now, here, _ in facts):
        return None
    return any(now < min(here, here if above is None else above) for now, here, above in facts)  # type: ignore[operator, type-var]


def _speed(at: Path | None, which: str) -> int | None:
    """`8.0 GT/s PCIe` in transfers per second and lane."""
    match = re.match(r"([0-9.]+) GT/s", text(at / f"{which}_link_speed")) if at else None
    return round(float(match[1]) * 1e9) if match else None


def _lanes(at: Path | None, which: str) -> int | None:
    """0 means that the link is down, 255 that sysfs does not know it."""
    width = text(at / f"{which}_link_width") if at else ""
    return int(width) if width.isdecimal() and 0 < int(width) <= 32 else None


def _config(at: Path) -> bytes:
    try:
        return (at / "config").read_bytes()
    except OSError:
        return b""


def payloads(config: bytes) -> tuple[int | None, int | None]:
    """Configured and supported maximum payload in bytes, from the PCI Express capability.

    PCI Express Base Specification 3.0, 7.8: Device Capabilities at offset 4, bits 2:0; Device Control at
    offset 8, bits 7:5; both as 128 << n.
    """
    offset = _express(config)
    if offset is None:
        return None, None
    (able,) = struct.unpack_from("<I", config, offset + 4)
    (control,) = struct.unpack_from("<H", config, offset + 8)
    return _payload(control >> 5), _payload(able)


def _express(config: bytes) -> int | None:
    """Offset of the PCI Express capability; None if it is missing, or the list is truncated or circular."""
    offset = config[_CAPABILITY_LIST] & 0xFC if len(config) > _CAPABILITY_LIST else 0
    seen: set[int] = set()
    while offset >= _FIRST_CAPABILITY and offset + 10 <= len(config) and offset not in seen:
        if config[offset] == _PCI_EXPRESS:
            return offset
        seen.add(offset)
        offset = config[offset + 1] & 0xFC
    return None


def _payload(code: int) -> int | None:
    return 128 << (code & 7) if (code & 7) < 6 else None  # 6 and 7 are reserved
