"""MegaCli (LSI, IBM, Dell), parsed from its text output.

Formats: LSI, MegaRAID SAS Software User Guide (MegaCli 2 to 8). Sizes use units of 1024. Older versions print
`Virtual Disk` and `Stripe Size: 64kB`, newer ones `Virtual Drive` and `Strip Size : 64 KB`. All print lines of
`name : value`, with or without spaces before the colon, and end with `Exit Code: 0x00`. `Default Cache Policy` is the
configured policy, `Current Cache Policy` the active one.
"""

import re
from collections.abc import Iterator, Mapping

from worker.contract.base import MAX_LABEL
from worker.contract.inventory import Battery, Controller, PhysicalDrive, VirtualDrive
from worker.controllers import base
from worker.controllers.base import Adapter, CachePolicy, Fields, find_drive, is_megaraid_target, pairs
from worker.process.run import ToolOutput

Lines = list[str]
_ADAPTER = re.compile(r"^\s*(?:BBU status for Adapter|PCI information for Controller|Adapter):?\s*#?([0-9]+)")
_DRIVE = re.compile(r"^Virtual D(?:isk|rive): ([0-9]+) \(target id: ([0-9]+)\)", re.IGNORECASE)
_EXIT = re.compile(r"^Exit Code: 0x([0-9a-f]+)", re.IGNORECASE | re.MULTILINE)
_LEVEL = re.compile(r"Primary-([0-9]+), Secondary-([0-9]+)")
_WRITE = {"writeback": "write back", "writethrough": "write through"}
_READ = {
    "readaheadnone": "none", "readahead": "read ahead", "readadaptive": "adaptive", "adaptive": "adaptive",
}  # fmt: skip
_IO = {"direct": "direct", "cached": "cached"}
_BAD_BATTERY = {"writecacheokifbadbbu": "cached", "nowritecacheifbadbbu": "not cached"}
_DISK = {"enabled": "enabled", "disabled": "disabled", "disk'sdefault": "unchanged"}
_MEDIA = {"hard disk device": "HDD", "solid state device": "SSD"}
_SPELLING: Mapping[CachePolicy, Mapping[str, tuple[str, ...]]] = {
    CachePolicy.WRITE_CACHE: {
        "write back": ("NoCachedBadBBU", "WB"),
        "write through": ("WT",),
        "always write back": ("CachedBadBBU", "WB"),
    },
    CachePolicy.BAD_BATTERY: {"cached": ("CachedBadBBU",), "not cached": ("NoCachedBadBBU",)},
    CachePolicy.READ_AHEAD: {"none": ("NORA",), "read ahead": ("RA",), "adaptive": ("ADRA",)},
    CachePolicy.IO: {"direct": ("Direct",), "cached": ("Cached",)},
    CachePolicy.DISK_CACHE: {"enabled": ("EnDskCache",), "disabled": ("DisDskCache",)},
}


class MegaCli(Adapter):
    name = "MegaCli"
    programs = ("MegaCli64", "MegaCli", "megacli64", "megacli")
    drivers = ("megaraid_sas",)
    spelling = _SPELLING

    def is_at(self, drive: VirtualDrive, place: tuple[int, int, int]) -> bool:
        return is_megaraid_target(drive, place)

    def read_controllers(self) -> tuple[Controller, ...]:
        sections = by_adapter(self.say("-AdpAllInfo", "-aAll", "-NoLog"))
        if not sections:
            raise self.refused("it lists no controller")
        places = by_adapter(self._any("-AdpGetPciInfo", "-aAll"))
        virtual = by_adapter(self._any("-LdPdInfo", "-aAll"))
        physical = by_adapter(self._any("-PDList", "-aAll"))
        batteries = by_adapter(self._any("-AdpBbuCmd", "-GetBbuStatus", "-aAll"))
        return tuple(
            controller(number, lines, *(each.get(number, []) for each in (places, virtual, physical, batteries)))
            for number, lines in sections.items()
        )

    def virtual_drive(self, controller: str, number: str) -> VirtualDrive:
        sections = by_adapter(self.say("-LDInfo", f"-L{number}", f"-a{controller}", "-NoLog"))
        return find_drive(self, tuple(virtual_drives(sections.get(controller, []))), number)

    def set_command(self, controller: str, number: str, word: str) -> tuple[str, ...]:
        return "-LDSetProp", word, f"-L{number}", f"-a{controller}", "-NoLog"

    def is_unconfigured(self, drive: PhysicalDrive) -> bool:
        return drive.state.startswith("Unconfigured(good)") and "foreign" not in drive.state

    def check(self, output: ToolOutput) -> None:
        code = self._exit_code(output)
        if output.exit_code or code:
            raise self.refused(_EXIT.sub("", output.out).strip() or output.err or f"exit status {output.exit_code}")

    def _any(self, *arguments: str) -> str:
        """The whole output. An error code is accepted: the tool has one if only one of several adapters has no data."""
        output = self.ask(*arguments, "-NoLog")
        self._exit_code(output)
        return output.out

    def _exit_code(self, output: ToolOutput) -> int:
        """As the tool prints it at its end."""
        code = _EXIT.search(output.out)
        if code is None and not output.exit_code:
            raise self.refused(f"its output is incomplete: {output.out.strip()[-100:]!r}")
        return int(code[1], 16) if code else 0


def by_adapter(text: str) -> dict[str, Lines]:
    """The lines of each adapter; a line with its number starts its section."""
    sections: dict[str, Lines] = {}
    number = ""
    for line in text.splitlines():
        if match := _ADAPTER.match(line):
            number = match[1]
            sections.setdefault(number, [])
        if number:
            sections[number].append(line)
    return sections


def controller(number: str, lines: Lines, place: Lines, virtual: Lines, physical: Lines, battery: Lines) -> Controller:
    values = pairs(lines)
    return Controller(
        address=_address(pairs(place)),
        tool=MegaCli.name,
        number=number,
        model=base.known(values.get("product name", "")),
        serial=base.known(values.get("serial no", "")),
        firmware=base.known(values.get("fw version", "")),
        bios=base.known(values.get("bios version", "")),
        subsystem=":".join(filter(None, (values.get("subvendorid", ""), values.get("subdeviceid", "")))).lower(),
        cache_bytes=base.size(values.get("memory size", ""), unit=base.KIB) or None,
        battery=_battery(pairs(battery), base.known(values.get("bbu", ""))),
        virtual_drives=tuple(virtual_drives(virtual)),
        physical_drives=tuple(_physical_drive(part) for part in _parts(physical, "Enclosure Device ID")),
    )


def _address(values: Fields) -> str:
    """Hexadecimal numbers, without the domain."""
    try:
        bus, device, function = (int(values[f"{name} number"], 16) for name in ("bus", "device", "function"))
    except (KeyError, ValueError):
        return ""
    return f"0000:{bus:02x}:{device:02x}.{function:x}"


def _battery(values: Fields, present: str) -> Battery | None:
    kind = base.known(values.get("batterytype", ""))
    state = base.known(values.get("battery state", ""))
    if values.get("battery replacement required", "").lower() == "yes":
        state = ", ".join(filter(None, (state, "replacement required")))
    if values.get("learn cycle active", "").lower() == "yes":
        state = ", ".join(filter(None, (state, "learn cycle active")))
    return Battery(kind=kind or "BBU", state=state or present) if kind or state or present else None


def _parts(lines: Lines, start: str) -> Iterator[Lines]:
    """Sections that start with a line starting with `start`."""
    at = [place for place, line in enumerate(lines) if line.startswith(start)]
    for place, end in zip(at, [*at[1:], len(lines)], strict=False):
        yield lines[place:end]


def virtual_drives(lines: Lines) -> Iterator[VirtualDrive]:
    for part in _parts(lines, "Virtual D"):
        if match := _DRIVE.match(part[0]):
            yield _virtual_drive(match[1], match[2], part)


def _virtual_drive(number: str, target: str, lines: Lines) -> VirtualDrive:
    values = pairs(lines[1:])
    setting, now = _policies(values.get("default cache policy", "")), _policies(values.get("current cache policy", ""))
    wanted, working = _first(_WRITE, setting), _first(_WRITE, now)
    bad_battery = _first(_BAD_BATTERY, setting)
    always = bad_battery == "cached"
    return VirtualDrive(
        number=number,
        target=target,
        name=base.known(values.get("name", "")),
        level=_level(values),
        strip_bytes=base.size(values.get("strip size") or values.get("stripe size", ""), unit=base.KIB),
        spans=int(depth) if (depth := values.get("span depth", "")).isdecimal() else None,
        size_bytes=base.size(values.get("size", ""), unit=base.KIB),
        state=base.known(values.get("state", "")),
        write_cache="always write back" if wanted == "write back" and always else wanted,
        write_cache_now="always write back" if working == "write back" and always else working,
        bad_battery=bad_battery,
        read_ahead=_first(_READ, now or setting),
        io_policy=_first(_IO, now or setting),
        disk_cache=_DISK.get(_spelt(values.get("disk cache policy", "")), ""),
        drives=tuple(_slot(pairs(part)) for part in _parts(lines, "Enclosure Device ID")),
    )


def _policies(line: str) -> Lines:
    return [_spelt(word) for word in line.split(",")]


def _spelt(words_: str) -> str:
    return "".join(words_.lower().replace("’", "'").split())


def _first(meanings: dict[str, str], spelt: Lines) -> str:
    return next((meanings[word] for word in spelt if word in meanings), "")


def _level(values: Fields) -> str:
    """`Primary-5, Secondary-3`, or Secondary-0 with several spans: a stripe over RAID 5."""
    match = _LEVEL.search(values.get("raid level", ""))
    if not match:
        return base.known(values.get("raid level", ""))
    spans = values.get("span depth", "1")
    striped = match[2] != "0" or (spans.isdecimal() and int(spans) > 1)
    return f"RAID{match[1]}{'0' if striped else ''}"


def _slot(values: Fields) -> str:
    return f"{base.known(values.get('enclosure device id', ''))}:{values.get('slot number', '')}"


def _physical_drive(lines: Lines) -> PhysicalDrive:
    values = pairs(lines)
    interface = base.known(values.get("pd type", ""))
    inquiry = next((line.partition(":")[2][1:] for line in lines if line.startswith("Inquiry Data")), "")
    model, serial, firmware = _inquiry(inquiry, interface)
    block = values.get("sector size", "512")
    return PhysicalDrive(
        slot=_slot(values),
        model=model,
        serial=serial,
        firmware=base.known(values.get("device firmware level", "")) or firmware,
        state=_drive_state(values),
        size_bytes=base.sectors(values.get("raw size", ""), int(block) if block.isdecimal() and int(block) else 512),
        medium=_MEDIA.get(values.get("media type", "").lower(), ""),
        interface=interface,
        link_bits_per_s=base.rate(values.get("link speed") or values.get("device speed", "")),
    )


def _drive_state(values: Fields) -> str:
    state = base.known(values.get("firmware state", ""))
    foreign = base.known(values.get("foreign state", "")).lower() not in ("", "none")
    return f"{state}, foreign" if foreign else state


def _inquiry(line: str, interface: str) -> tuple[str, str, str]:
    """Model, serial and firmware from their columns; a shorter line is used as the model.

    SAS: vendor, product, revision of SPC-3 6.4, then the serial number. SATA: serial, model, firmware of ACS-2 7.12.
    """
    if interface == "SAS" and len(line) > 28:
        return f"{line[:8].strip()} {line[8:24].strip()}", line[28:].strip(), line[24:28].strip()
    if interface == "SATA" and len(line.rstrip()) > 60:
        return line[20:60].strip(), line[:20].strip(), line[60:].strip()
    return " ".join(line.split())[:MAX_LABEL], "", ""


MEGACLI = MegaCli()
