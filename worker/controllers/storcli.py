"""storcli and perccli (Broadcom, Dell), from the JSON of `show all J`.

Formats: Broadcom, StorCLI Reference Manual (storcli 1.x to 7.x); Dell, PERCCLI Reference Guide. Sizes use units of
1024. The column `Cache` has the active policies: R or NR, WB, AWB or WT, D or C. `Write Cache(initial setting)` is the
configured one. storcli2, for the 9600 series, has another format and is not supported.
"""

import re
from typing import Any

import msgspec

from worker.contract.base import MAX_LABEL
from worker.contract.inventory import Battery, Controller, PhysicalDrive, VirtualDrive
from worker.controllers import base
from worker.controllers.base import Adapter, CachePolicy, find_drive, is_megaraid_target
from worker.process.run import ToolOutput

Fields = dict[str, Any]
_CACHE = re.compile(r"^(NR|R)?(AWB|FWB|WB|WT)?([DC])?\Z")
_WRITE = {"WB": "write back", "WT": "write through", "AWB": "always write back", "FWB": "always write back"}
_READ = {"NR": "none", "R": "read ahead"}
_IO = {"D": "direct", "C": "cached"}
_DISK = {"enabled": "enabled", "disabled": "disabled", "disk's default": "unchanged", "default": "unchanged"}
_SPELLING = {
    CachePolicy.WRITE_CACHE: {
        "write back": ("wrcache=wb",), "write through": ("wrcache=wt",), "always write back": ("wrcache=awb",),
    },
    CachePolicy.READ_AHEAD: {"none": ("rdcache=nora",), "read ahead": ("rdcache=ra",)},
    CachePolicy.IO: {"direct": ("iopolicy=direct",), "cached": ("iopolicy=cached",)},
    CachePolicy.DISK_CACHE: {
        "enabled": ("pdcache=on",), "disabled": ("pdcache=off",), "unchanged": ("pdcache=default",),
    },
}  # fmt: skip
_NO_DRIVES = ("no vd", "no vds", "no drive", "no pd", "not found")


class Storcli(Adapter):
    drivers = ("megaraid_sas",)
    spelling = _SPELLING

    def __init__(self, name: str, programs: tuple[str, ...]) -> None:
        self.name = name
        self.programs = programs

    def read_controllers(self) -> tuple[Controller, ...]:
        return tuple(self._controller(number, data) for number, data in self._show("/call"))

    def virtual_drive(self, controller: str, number: str) -> VirtualDrive:
        answers = self._show(f"/c{controller}/v{number}")
        return find_drive(self, tuple(drive for _, data in answers for drive in virtual_drives(data)), number)

    def set_command(self, controller: str, number: str, word: str) -> tuple[str, ...]:
        return f"/c{controller}/v{number}", "set", word, "J", "nolog"

    def check(self, output: ToolOutput) -> None:
        for _, status, _ in self._answers(output.out, output.err):
            if status.get("Status") != "Success":
                raise self.refused(_reason(status))
        if output.exit_code:
            raise self.refused(output.err or f"exit status {output.exit_code}")

    def is_unconfigured(self, drive: PhysicalDrive) -> bool:
        return drive.state == "UGood"

    def is_at(self, drive: VirtualDrive, place: tuple[int, int, int]) -> bool:
        return is_megaraid_target(drive, place)

    # ---- calling the tool

    def _controller(self, number: str, data: Fields) -> Controller:
        virtual = next((each for _, each in self._show(f"/c{number}/vall")), {})
        physical = self._show(f"/c{number}/eall/sall") or self._show(f"/c{number}/sall")  # without enclosures
        drives = tuple(drive for _, each in physical for drive in physical_drives(each))
        return controller(number, data, self.name, virtual_drives(virtual), drives)

    def _show(self, place: str) -> list[tuple[str, Fields]]:
        """Number and data of each controller; drives may be missing."""
        output = self.ask(place, "show", "all", "J", "nolog")
        answers = []
        for number, status, data in self._answers(output.out, output.err):
            if status.get("Status") == "Success":
                answers.append((number, {"CLI Version": status.get("CLI Version", ""), **data}))
                continue
            words = f"{_reason(status)} {status.get('Description', '')}".lower()
            may_be_none = place.count("/") > 1 and "all" in place
            if not may_be_none or not any(none in words for none in _NO_DRIVES):
                raise self.refused(_reason(status))
        return answers

    def _answers(self, out: str, err: str) -> list[tuple[str, Fields, Fields]]:
        """Number, status and data of each controller. Raises ToolError for any other output."""
        try:
            rows = msgspec.json.decode(out)["Controllers"]
            read = [(row["Command Status"], row.get("Response Data") or {}) for row in rows]
            return [(str(status.get("Controller", "")), status, data) for status, data in read if _plain(status, data)]
        except msgspec.DecodeError as error:
            shown = (out.strip() or err.strip())[:100]
            raise self.refused(f"its output is not JSON, or incomplete ({error}): {shown!r}") from error
        except (KeyError, TypeError, AttributeError) as error:
            raise self.refused(f"its output lacks {error}") from error


def _plain(status: object, data: object) -> bool:
    if isinstance(status, dict) and isinstance(data, dict):
        return True
    raise KeyError("Command Status")


def _reason(status: Fields) -> str:
    """The tool's message: of each drive if there are any, else of the command."""
    failed = [row for row in status.get("Detailed Status") or [] if row.get("Status") != "Success"]
    reasons = [f"{text} (code {row.get('ErrCd')})" for row in failed if (text := base.known(row.get("ErrMsg", "")))]
    return "; ".join(reasons) or str(status.get("Description", ""))


# ---- parsing the output


def controller(
    number: str, data: Fields, tool: str, virtual: tuple[VirtualDrive, ...], physical: tuple[PhysicalDrive, ...]
) -> Controller:
    """`data` is that of `/cN show all`; parts are missing for host bus adapters."""
    basics, version, hardware, bus = (_part(data, key) for key in ("Basics", "Version", "HwCfg", "Bus"))
    return Controller(
        address=_address(base.known(basics.get("PCI Address") or data.get("PCI Address", ""))),
        tool=" ".join((tool, str(data.get("CLI Version", "")).partition(" ")[0])).strip(),
        number=number,
        model=base.known(basics.get("Model") or data.get("Product Name", "")),
        serial=base.known(basics.get("Serial Number") or data.get("Serial Number", "")),
        firmware=base.known(version.get("Firmware Version") or data.get("FW Version", "")),
        bios=base.known(version.get("Bios Version") or data.get("BIOS Version", "")),
        driver=base.known(version.get("Driver Name") or data.get("Driver Name", "")),
        driver_version=base.known(version.get("Driver Version") or data.get("Driver Version", "")),
        subsystem=_subsystem(bus),
        state=base.known(_part(data, "Status").get("Controller Status", "")),
        cache_bytes=base.size(str(hardware.get("On Board Memory Size", "")), unit=base.KIB) or None,
        battery=_battery(data, hardware),
        virtual_drives=virtual,
        physical_drives=physical,
    )


def _part(data: Fields, key: str) -> Fields:
    part = data.get(key)
    return part if isinstance(part, dict) else {}


def _address(place: str) -> str:
    """Parse `00:03:00:00`: domain, bus, device and function in hexadecimal."""
    parts = place.split(":")
    try:
        domain, bus, device, function = (int(part, 16) for part in parts)
    except ValueError:
        return ""
    return f"{domain:04x}:{bus:02x}:{device:02x}.{function:x}"


def _subsystem(bus: Fields) -> str:
    numbers = bus.get("SubVendor Id"), bus.get("SubDevice Id")
    return ":".join(f"{n:04x}" for n in numbers if isinstance(n, int)) if all(numbers) else ""


def _battery(data: Fields, hardware: Fields) -> Battery | None:
    """The row of a CacheVault or a battery, else the state from the hardware section, which may be `Absent`."""
    for key, kind in (("Cachevault_Info", "CacheVault"), ("BBU_Info", "BBU")):
        rows = data.get(key)
        if isinstance(rows, list) and rows and isinstance(rows[0], dict):
            model = base.known(rows[0].get("Model", ""))
            name = kind if model in ("", kind) else f"{kind} {model}"
            return Battery(kind=name, state=base.known(rows[0].get("State", "")))
    state = base.known(hardware.get("BBU", ""))
    return Battery(kind="BBU", state=state) if state else None


def virtual_drives(data: Fields) -> tuple[VirtualDrive, ...]:
    """From `/cN/vall show all`: a row, a list of drives and properties for each number."""
    virtual = []
    for key, rows in data.items():
        place = re.fullmatch(r"/c[0-9]+/v([0-9]+)", key)
        if place and isinstance(rows, list) and rows:
            number = place[1]
            drives = data.get(f"PDs for VD {number}") or []
            virtual.append(_virtual_drive(number, rows[0], _part(data, f"VD{number} Properties"), drives))
    return tuple(virtual)


def _virtual_drive(number: str, row: Fields, properties: Fields, drives: list[Fields]) -> VirtualDrive:
    matched = _CACHE.match(str(row.get("Cache", "")).upper())
    read, write, io = matched.groups(default="") if matched else ("", "", "")
    now = _WRITE.get(write, "")
    return VirtualDrive(
        number=number,
        target=number,
        wwn=base.wwn(str(properties.get("SCSI NAA Id", ""))),
        name=base.known(row.get("Name", "")),
        level=base.level(str(row.get("TYPE", ""))),
        strip_bytes=base.size(str(properties.get("Strip Size", "")), unit=base.KIB),
        spans=depth if isinstance(depth := properties.get("Span Depth"), int) and depth >= 0 else None,
        size_bytes=base.size(str(row.get("Size", "")), unit=base.KIB),
        state=base.known(row.get("State", "")),
        write_cache=_set_write_cache(str(properties.get("Write Cache(initial setting)", "")), now),
        write_cache_now=now,
        read_ahead=_READ.get(read, ""),
        io_policy=_IO.get(io, ""),
        disk_cache=_DISK.get(str(properties.get("Disk Cache Policy", "")).lower(), ""),
        drives=tuple(_slot(drive) for drive in drives),
    )


def _set_write_cache(initial: str, now: str) -> str:
    """The configured mode, or the active one in versions without it. Some versions show AWB only in the column."""
    spelt = initial.lower().replace(" ", "")
    if "always" in spelt or (spelt == "writeback" and now == "always write back"):
        return "always write back"
    return {"writeback": "write back", "writethrough": "write through"}.get(spelt, now)


def _slot(row: Fields) -> str:
    """`252:3`, or ` :3` without an enclosure."""
    return str(row.get("EID:Slt", "")).strip()[:MAX_LABEL]


def physical_drives(data: Fields) -> tuple[PhysicalDrive, ...]:
    """From `/cN/eall/sall show all`: a row for each drive, and its attributes under separate keys."""
    drives = []
    for key, rows in data.items():
        if re.fullmatch(r"Drive /c[0-9]+(/e[0-9]+)?/s[0-9]+", key) and isinstance(rows, list) and rows:
            attributes = _part(_part(data, f"{key} - Detailed Information"), f"{key} Device attributes")
            drives.append(_physical_drive(rows[0], attributes))
    return tuple(drives)


def _physical_drive(row: Fields, attributes: Fields) -> PhysicalDrive:
    block = base.size(str(attributes.get("Logical Sector Size") or row.get("SeSz", "512B")), unit=base.KIB) or 512
    return PhysicalDrive(
        slot=_slot(row),
        model=base.known(attributes.get("Model Number") or row.get("Model", "")),
        serial=base.known(attributes.get("SN", "")),
        firmware=base.known(attributes.get("Firmware Revision", "")),
        state=_state(row),
        size_bytes=base.sectors(str(attributes.get("Raw size", "")), block)
        or base.size(str(row.get("Size", "")), unit=base.KIB),
        medium=base.known(row.get("Med", "")),
        interface=base.known(row.get("Intf", "")),
        link_bits_per_s=base.rate(str(attributes.get("Link Speed", ""))),
    )


def _state(row: Fields) -> str:
    """The column `DG` is F for a drive with a foreign configuration, even if its state is good."""
    state = base.known(row.get("State", ""))
    return f"{state}, foreign" if str(row.get("DG", "")).strip() == "F" else state


STORCLI = Storcli("storcli", ("storcli64", "storcli"))
PERCCLI = Storcli("perccli", ("perccli64", "perccli"))
