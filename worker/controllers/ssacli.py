"""ssacli and its predecessors hpssacli and hpacucli (HPE Smart Array), from `ctrl all show config detail`.

Formats: HPE, Smart Storage Administrator CLI user guide (hpacucli 9 to ssacli 6). Properties of a controller, an array
or a drive are indented. Sizes of logical drives and the cache use units of 1024, sizes of drives 1000; newer versions
omit the cache's unit, which is then GB. The tool has no read-ahead and no I/O policy, and the drives' cache is one
setting of the whole controller.
"""

import re
from collections.abc import Iterator

from worker.contract.inventory import Battery, Controller, PhysicalDrive, VirtualDrive
from worker.controllers import base
from worker.controllers.base import Adapter, CachePolicy, Fields, find_drive
from worker.process.run import ToolOutput

Lines = list[str]
_CONTROLLER = re.compile(r"^(\S.*?) in Slot ([0-9]+)\b")
_LOGICAL = re.compile(r"^\s*Logical Drive: ([0-9]+)")
_PHYSICAL = re.compile(r"^\s*physicaldrive (\S+)\s*\Z")
_MEMBER = re.compile(r"^\s*physicaldrive (\S+) \(")
_ARRAY = re.compile(r"^\s*[Aa]rray:? [A-Z]{1,2}(?: \(.*)?\s*\Z")
_CACHING = {"enabled": "write back", "disabled": "write through"}


class Ssacli(Adapter):
    name = "ssacli"
    programs = ("ssacli", "hpssacli", "hpacucli")
    drivers = ("hpsa", "smartpqi", "cciss")
    spelling = {
        CachePolicy.WRITE_CACHE: {
            "write back": ("arrayaccelerator=enable",),
            "write through": ("arrayaccelerator=disable",),
        }
    }

    def read_controllers(self) -> tuple[Controller, ...]:
        listed = tuple(controllers(self.say("ctrl", "all", "show", "config", "detail")))
        if not listed:
            raise self.refused("it lists no controller")
        return listed

    def virtual_drive(self, controller: str, number: str) -> VirtualDrive:
        """Reads the whole controller, because only its section shows whether the cache is active."""
        text = self.say("ctrl", f"slot={controller}", "show", "config", "detail")
        drives = tuple(drive for each in controllers(text) for drive in each.virtual_drives)
        return find_drive(self, drives, number)

    def set_command(self, controller: str, number: str, word: str) -> tuple[str, ...]:
        return "ctrl", f"slot={controller}", "ld", number, "modify", word

    def check(self, output: ToolOutput) -> None:
        if output.exit_code or output.out.lstrip().startswith("Error:"):
            raise self.refused(output.out.strip() or output.err or f"exit status {output.exit_code}")


def controllers(text: str) -> Iterator[Controller]:
    lines = text.splitlines()
    heads = [(place, match) for place, line in enumerate(lines) if (match := _CONTROLLER.match(line))]
    ends = [*(place for place, _ in heads[1:]), len(lines)]
    for (place, head), end in zip(heads, ends, strict=False):
        yield _controller(head[1], head[2], lines[place + 1 : end])


def _controller(model: str, slot: str, lines: Lines) -> Controller:
    """The controller's own lines, up to the first array, drive or enclosure."""
    values = _own(lines)
    return Controller(
        address=base.known(values.get("pci address (domain:bus:device.function)", "")).lower(),
        tool=Ssacli.name,
        number=slot,
        vendor=model.partition(" ")[0] if model.split()[0] in ("HP", "HPE", "MSCC") else "",
        model=base.known(model),
        serial=base.known(values.get("serial number", "")),
        firmware=base.known(values.get("firmware version", "")),
        driver=base.known(values.get("driver name", "")),
        driver_version=base.known(values.get("driver version", "")),
        state=base.known(values.get("controller status", "")),
        cache_bytes=_cache(values.get("total cache size", "")),
        battery=_battery(values),
        virtual_drives=tuple(_logical_drives(lines, values)),
        physical_drives=tuple(_physical_drives(lines)),
    )


def _own(lines: Lines) -> Fields:
    """`name: value` of all lines before the next heading."""
    values: dict[str, str] = {}
    for line in lines:
        if any(head.match(line) for head in (_ARRAY, _LOGICAL, _PHYSICAL, _MEMBER)) or (values and _is_head(line)):
            break
        name, _, value = line.partition(": ")  # a name may contain a colon
        if value.strip():
            values.setdefault(name.strip().lower(), value.strip())
    return values


def _is_head(line: str) -> bool:
    """`   HP SAS Expander Card at Port 2C, Box 1, OK`, `   Enclosure SEP (…)`, `unassigned`."""
    return bool(line.strip()) and ":" not in line and bool(re.search(r"\bat Port\b|\bSEP\b|Expander|assigned", line))


def _cache(size: str) -> int | None:
    """`512 MB`, `1.0 GB`, `2.0`."""
    cache_bytes = base.size(size if "B" in size else f"{size} GB", unit=base.KIB) if size else None
    return cache_bytes or None


def _battery(values: Fields) -> Battery | None:
    count, source = values.get("battery/capacitor count", ""), base.known(values.get("cache backup power source", ""))
    if count == "0":
        return Battery(kind=source or "battery", state="absent")
    state = base.known(values.get("battery/capacitor status", ""))
    return Battery(kind=source or "battery", state=state) if source or state else None


def _logical_drives(lines: Lines, controller: Fields) -> Iterator[VirtualDrive]:
    members: list[str] = []
    for start, end in _arrays(lines):
        array = lines[start:end]
        members = [match[1] for line in array if (match := _PHYSICAL.match(line))]
        places = [place for place, line in enumerate(array) if _LOGICAL.match(line)]
        for place in places:
            head = _LOGICAL.match(array[place])
            yield _logical_drive(head[1] if head else "", array[place + 1 :], controller, tuple(members))


def _arrays(lines: Lines) -> Iterator[tuple[int, int]]:
    at = [place for place, line in enumerate(lines) if _ARRAY.match(line)]
    unassigned = [place for place, line in enumerate(lines) if "nassigned" in line and ":" not in line]
    for place, end in zip(at, [*at[1:], len(lines)], strict=False):
        yield place, min([end, *(other for other in unassigned if other > place)])


def _logical_drive(number: str, lines: Lines, controller: Fields, members: tuple[str, ...]) -> VirtualDrive:
    values = _own(lines)
    wanted = _CACHING.get((values.get("caching") or values.get("array accelerator", "")).lower(), "")
    disk = values.get("disk name", "")
    disk_cache = controller.get("drive write cache", "").lower()
    return VirtualDrive(
        number=number,
        target=number,
        wwn=base.wwn(values.get("unique identifier", "")),
        name=base.known(values.get("logical drive label", "")),
        level=base.level(values.get("fault tolerance", "")),
        strip_bytes=base.size(values.get("strip size") or values.get("stripe size", ""), unit=base.KIB),
        size_bytes=base.size(values.get("size", ""), unit=base.KIB),
        state=base.known(values.get("status", "")),
        write_cache=wanted,
        write_cache_now=_now(wanted, controller),
        disk_cache=disk_cache if disk_cache in ("enabled", "disabled") else "",
        drives=members,
        device=disk.removeprefix("/dev/") if disk.startswith("/dev/") else "",
    )


def _now(wanted: str, controller: Fields) -> str:
    """A disabled cache writes through; so does one without a battery, unless that is allowed."""
    if wanted != "write back":
        return wanted
    if controller.get("cache status", "OK") not in ("OK", "Not Configured"):
        return "write through"
    return "always write back" if controller.get("no-battery write cache", "").lower() == "enabled" else wanted


def _physical_drives(lines: Lines) -> Iterator[PhysicalDrive]:
    for place, line in enumerate(lines):
        if match := _PHYSICAL.match(line):
            yield _physical_drive(match[1], _own(lines[place + 1 :]))


def _physical_drive(slot: str, values: Fields) -> PhysicalDrive:
    interface = values.get("interface type", "")
    return PhysicalDrive(
        slot=slot,
        model=" ".join(base.known(values.get("model", "")).split()),
        serial=base.known(values.get("serial number", "")),
        firmware=base.known(values.get("firmware revision", "")),
        state=base.known(values.get("status", "")),
        size_bytes=base.size(values.get("size", ""), unit=1000),
        medium="SSD" if "solid state" in interface.lower() else "HDD" if interface else "",
        interface=next((word for word in ("SAS", "SATA", "NVMe") if word.lower() in interface.lower()), ""),
        link_bits_per_s=base.rate(values.get("phy transfer rate", "")),
    )


SSACLI = Ssacli()
