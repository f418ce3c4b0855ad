"""A controller and its drives, from the fields that its tool prints.

All tools print the same facts under different names, and no name has two meanings. So each fact has one list of names,
and one reader. An adapter splits the output into fields, and adds what only its tool expresses in another way.
"""

import re
from collections.abc import Iterable, Mapping

import msgspec

from worker.contract.base import MAX_LABEL
from worker.contract.inventory import Battery, Controller, PhysicalDrive, VirtualDrive

Fields = Mapping[str, str]  # `name: value`, by lower-case name

KIB = 1024
MEMBERS = "members"  # of a virtual drive: the slots of its drives, separated by spaces
_NOTHING = ("", "-", "n/a", "na", "n.a.", "none", "unknown", "not available")
_SIZE = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*(?:([KMGTP])(?:i?B)?|B)(?:ytes)?\b", re.IGNORECASE)
_SECTORS = re.compile(r"\[0x([0-9a-f]+) Sectors\]", re.IGNORECASE)
_RATE = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*G", re.IGNORECASE)
_SATA_RATES = {"SATA150": 1_500_000_000, "SATA300": 3_000_000_000, "SATA600": 6_000_000_000}  # named for their MB/s
_PCI_ADDRESS = re.compile(r"([0-9a-f]+):([0-9a-f]+):([0-9a-f]+)[:.]([0-9a-f]+)", re.IGNORECASE)
_MEGACLI_LEVEL = re.compile(r"Primary-([0-9]+), Secondary-([0-9]+)")

# Meanings of values, in lower case without spaces and hyphens.
_WRITE = {
    **dict.fromkeys(("wb", "writeback", "enabled"), "write back"),
    **dict.fromkeys(("wt", "writethrough", "disabled"), "write through"),
    **dict.fromkeys(("awb", "fwb", "alwayswriteback"), "always write back"),
}
_READ = {
    **dict.fromkeys(("nr", "readaheadnone"), "none"),
    **dict.fromkeys(("r", "readahead"), "read ahead"),
    **dict.fromkeys(("readadaptive", "adaptive"), "adaptive"),
}
_IO = {"d": "direct", "direct": "direct", "c": "cached", "cached": "cached"}
_DISK_CACHE = {"enabled": "enabled", "disabled": "disabled", "disk'sdefault": "unchanged", "default": "unchanged"}
_BAD_BATTERY = {"writecacheokifbadbbu": "cached", "nowritecacheifbadbbu": "not cached"}


class Sections(msgspec.Struct, frozen=True):
    """What a tool prints about one controller."""

    controller: Fields
    virtual_drives: tuple[Fields, ...]
    physical_drives: tuple[Fields, ...]
    battery: Battery | None


def controller(sections: Sections, tool: str) -> Controller:
    fields = sections.controller
    return Controller(
        address=_pci_address(text(fields, "pci address", "pci address (domain:bus:device.function)")),
        tool=tool,
        number=text(fields, "number"),
        vendor=text(fields, "vendor"),
        model=text(fields, "model", "product name", "controller name"),
        serial=text(fields, "serial number", "serial no"),
        subsystem=":".join(filter(None, (fields.get("subvendorid"), fields.get("subdeviceid")))).lower(),
        firmware=text(fields, "firmware version", "fw version"),
        bios=text(fields, "bios version", "boot rom version"),
        driver=text(fields, "driver name"),
        driver_version=text(fields, "driver version"),
        state=text(fields, "controller status"),
        cache_bytes=_size(
            text(fields, "on board memory size", "memory size", "total cache size", "system memory"), KIB
        ) or None,
        battery=sections.battery,
        virtual_drives=tuple(map(virtual_drive, sections.virtual_drives)),
        physical_drives=tuple(map(_physical_drive, sections.physical_drives)),
    )  # fmt: skip


def virtual_drive(fields: Fields) -> VirtualDrive:
    write_now = _meaning(_WRITE, fields, "write_policy", "current cache policy")
    configured = ("write cache(initial setting)", "default cache policy", "caching", "array accelerator")
    write = _meaning(_WRITE, fields, *configured, "cache mode", "cache attribute") or write_now
    bad_battery = _meaning(_BAD_BATTERY, fields, "default cache policy")
    # MegaCli prints it as a policy of its own, some versions of storcli only as the active mode.
    always = bad_battery == "cached" or write_now == "always write back"
    return VirtualDrive(
        number=text(fields, "number"),
        target=text(fields, "target", "scsi ch/id/lun"),
        wwn=_wwn(text(fields, "scsi naa id", "unique identifier")),
        name=text(fields, "name", "logical drive label", "volume set name"),
        level=_level(fields),
        strip_bytes=_size(text(fields, "strip size", "stripe size"), KIB),
        spans=_count(fields, "span depth"),
        size_bytes=_size(text(fields, "size"), KIB) or _size(text(fields, "volume capacity"), 1000),
        state=text(fields, "state", "status", "volume state"),
        write_cache="always write back" if write == "write back" and always else write,
        write_cache_now="always write back" if write_now == "write back" and always else write_now,
        bad_battery=bad_battery,
        read_ahead=_meaning(_READ, fields, "read_policy", "current cache policy"),
        io_policy=_meaning(_IO, fields, "io_policy", "current cache policy"),
        disk_cache=_meaning(_DISK_CACHE, fields, "disk cache policy", "drive write cache"),
        drives=tuple(fields.get(MEMBERS, "").split()),
        device=match[1] if (match := re.match("/dev/(.+)", fields.get("disk name", ""))) else "",
    )


def _physical_drive(fields: Fields) -> PhysicalDrive:
    state = text(fields, "state", "firmware state", "status", "device state")
    foreign = text(fields, "dg") == "F" or text(fields, "foreign state")
    medium = text(fields, "med", "media type", "interface type").lower()
    interface = text(fields, "intf", "pd type", "interface type", "current sata mode", "device type").lower()
    return PhysicalDrive(
        slot=text(fields, "eid:slt", "slot"),
        model=" ".join(text(fields, "model number", "model", "model name").split()),
        serial=text(fields, "serial number", "sn", "serial"),
        firmware=text(fields, "firmware revision", "device firmware level", "revision", "firmware rev."),
        state=f"{state}, foreign" if foreign else state,
        size_bytes=_sectors(fields)
        or _size(text(fields, "size"), KIB)
        or _size(text(fields, "disk capacity"), 1000),
        medium="SSD" if re.search("ssd|solid state", medium) else "HDD" if medium else "",
        interface=next((name for name in ("SAS", "SATA", "NVMe") if name.lower() in interface), ""),
        link_bits_per_s=_rate(
            text(fields, "link speed", "device speed", "phy transfer rate", "current sata mode", "device type")
        ),
    )  # fmt: skip


# ---- readers: each uses the first of `names` that has a value


def known(words: object) -> str:
    """ "" for the texts that tools print for a missing value."""
    value = str(words).strip()
    return "" if value.lower() in _NOTHING else value[:MAX_LABEL]


def text(fields: Fields, *names: str) -> str:
    return next((value for name in names if (value := known(fields.get(name, "")))), "")


def _meaning(meanings: Mapping[str, str], fields: Fields, *names: str) -> str:
    """Of a list with commas, the meaning of the first word that has one."""
    words = text(fields, *names).lower().replace("’", "'").split(",")
    spelt = (re.sub(r"[\s-]", "", word) for word in words)
    return next((meanings[word] for word in spelt if word in meanings), "")


def _count(fields: Fields, name: str) -> int | None:
    value = fields.get(name, "")
    return int(value) if value.isdecimal() else None


def _size(words: str, unit: int) -> int | None:
    """`3.637 TB`, `64kB`, `64K`, `1000.2GB` in bytes; `unit` is 1024 or 1000, because the text does not show it."""
    match = _SIZE.search(words)
    return round(float(match[1]) * unit ** " KMGTP".index((match[2] or " ").upper())) if match else None


def _sectors(fields: Fields) -> int | None:
    """The exact size in bytes of `1.819 TB [0xe8e088b0 Sectors]`."""
    match = _SECTORS.search(fields.get("raw size", ""))
    if match is None:
        return None
    sector_bytes = _count(fields, "sector size") or _size(text(fields, "logical sector size", "sesz"), KIB) or 512
    return int(match[1], 16) * sector_bytes


def _rate(words: str) -> int | None:
    """`12.0Gb/s`, `6.0Gbps`, `SATA 6G`, `SATA300+NCQ(Depth32)` in bits per second."""
    match = _RATE.search(words)
    if match:
        return round(float(match[1]) * 1e9) or None
    return next((rate for name, rate in _SATA_RATES.items() if name in words.replace(" ", "")), None)


def _level(fields: Fields) -> str:
    """`RAID5`, `Raid1+0`, `6 (ADG)`, `Primary-5, Secondary-0` over several spans: RAID5, RAID10, RAID6, RAID50."""
    words = text(fields, "type", "fault tolerance", "raid level")
    if match := _MEGACLI_LEVEL.search(words):
        striped = match[2] != "0" or (_count(fields, "span depth") or 1) > 1
        return f"RAID{match[1]}{'0' if striped else ''}"
    digits = re.sub(r"(?i)^raid[ -]?|\s*\(.*\)|\+", "", words)
    return f"RAID{digits}" if digits.isdecimal() else words


def _wwn(words: str) -> str:
    """32 or 16 hexadecimal digits, in the format of block devices."""
    digits = words.lower().removeprefix("0x")
    return f"wwn-0x{digits}" if re.fullmatch(r"[0-9a-f]{16}|[0-9a-f]{32}", digits) else ""


def _pci_address(words: str) -> str:
    """`00:03:00:00`, `0000:03:00.0`: domain, bus, device and function in hexadecimal."""
    match = _PCI_ADDRESS.fullmatch(words)
    if match is None:
        return ""
    domain, bus, device, function = (int(part, 16) for part in match.groups())
    return f"{domain:04x}:{bus:02x}:{device:02x}.{function:x}"


def pairs(lines: Iterable[str]) -> dict[str, str]:
    """`Name   : value` and `Name: value` by lower-case name; the first of several equal names."""
    values: dict[str, str] = {}
    for line in lines:
        name, between, value = line.partition(":")
        if between:
            values.setdefault(" ".join(name.lower().split()), value.strip())
    return values
