"""The adapters: storcli and perccli (Broadcom, Dell), MegaCli (LSI), ssacli (HPE), Areca's tool.

Not tested on real hardware: the formats are those in the vendors' documentation.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from worker.contract.base import MAX_LABEL
from worker.contract.inventory import Battery
from worker.controllers.base import Adapter, CachePolicy
from worker.controllers.fields import MEMBERS, Fields, Sections, known, pairs, text
from worker.process.run import ToolError, ToolOutput

Json = dict[str, Any]
Lines = list[str]
_TARGETS_OF_A_CHANNEL, _FIRST_CHANNEL = 128, 2  # of virtual drives: megaraid_sas.h


class MegaRaid(Adapter):
    """What the tools for the driver megaraid_sas have in common."""

    drivers = ("megaraid_sas",)

    def target(self, channel: int, target: int, unit: int) -> str:
        number = (channel - _FIRST_CHANNEL) * _TARGETS_OF_A_CHANNEL + target
        return str(number) if channel >= _FIRST_CHANNEL else ""


class Storcli(MegaRaid):
    """The JSON of `show all J`. Formats: Broadcom, StorCLI Reference Manual (1.x to 7.x); Dell, PERCCLI Guide.

    The column `Cache` has the active policies: R or NR, WB, AWB or WT, D or C. `Write Cache(initial setting)` is the
    configured one. storcli2, for the 9600 series, has another format and is not supported.
    """

    set_command = "/c{controller}/v{number} set {word} J nolog"
    unused = re.compile("UGood")
    spelling = {
        CachePolicy.WRITE_CACHE: {
            "write back": ("wrcache=wb",), "write through": ("wrcache=wt",), "always write back": ("wrcache=awb",),
        },
        CachePolicy.READ_AHEAD: {"none": ("rdcache=nora",), "read ahead": ("rdcache=ra",)},
        CachePolicy.IO: {"direct": ("iopolicy=direct",), "cached": ("iopolicy=cached",)},
        CachePolicy.DISK_CACHE: {
            "enabled": ("pdcache=on",), "disabled": ("pdcache=off",), "unchanged": ("pdcache=default",),
        },
    }  # fmt: skip
    _CACHE = re.compile(r"(?P<read_policy>NR|R)?(?P<write_policy>AWB|FWB|WB|WT)?(?P<io_policy>[DC])?", re.IGNORECASE)
    _NO_DRIVES = ("no vd", "no vds", "no drive", "no pd", "not found")

    def __init__(self, name: str, programs: tuple[str, ...]) -> None:
        self.name = name
        self.programs = programs

    def sections(self) -> Iterator[Sections]:
        for number, data in self._show("/call"):
            virtual = next((each for _, each in self._show(f"/c{number}/vall")), {})
            physical = self._show(f"/c{number}/eall/sall") or self._show(f"/c{number}/sall")  # without enclosures
            yield Sections(
                _controller(data) | {"number": number},
                tuple(self._virtual_drives(virtual)),
                tuple(fields for _, each in physical for fields in _physical_drives(each)),
                _battery(data),
            )

    def virtual_drive_fields(self, controller: str, number: str) -> Iterator[Fields]:
        for _, data in self._show(f"/c{controller}/v{number}"):
            yield from self._virtual_drives(data)

    def _virtual_drives(self, data: Json) -> Iterator[Fields]:
        """From `/cN/vall show all`: a row, a list of drives and properties for each number."""
        for key, rows in data.items():
            place = re.fullmatch(r"/c[0-9]+/v([0-9]+)", key)
            if place and (row := _row(rows)):
                properties, members = data.get(f"VD{place[1]} Properties"), data.get(f"PDs for VD {place[1]}") or []
                cache = self._CACHE.fullmatch(row.get("cache", ""))
                yield {
                    **_flat(properties),
                    **row,
                    **(cache.groupdict("") if cache else {}),
                    "number": place[1],
                    "target": place[1],
                    MEMBERS: " ".join(_flat(member).get("eid:slt", "") for member in members),
                }

    def check(self, output: ToolOutput) -> None:
        for _, status, _ in self._answers(output):
            if status.get("Status") != "Success":
                raise self.refused(_reason(status))
        if output.exit_code:
            raise self.refused(output.err or f"exit status {output.exit_code}")

    def _show(self, place: str) -> list[tuple[str, Json]]:
        """Number and data of each controller; drives may be missing."""
        answers = []
        for number, status, data in self._answers(self.ask(place, "show", "all", "J", "nolog")):
            if status.get("Status") == "Success":
                answers.append((number, {"CLI Version": status.get("CLI Version", ""), **data}))
                continue
            words = f"{_reason(status)} {status.get('Description', '')}".lower()
            may_be_none = place.count("/") > 1 and "all" in place
            if not may_be_none or not any(none in words for none in self._NO_DRIVES):
                raise self.refused(_reason(status))
        return answers

    def _answers(self, output: ToolOutput) -> list[tuple[str, Json, Json]]:
        """Number, status and data of each controller. Raises ToolError for any other output."""
        try:
            rows = msgspec.json.decode(output.out)["Controllers"]
            answers = [(row["Command Status"], row.get("Response Data") or {}) for row in rows]
        except msgspec.DecodeError as error:
            shown = (output.out.strip() or output.err.strip())[:100]
            raise self.refused(f"its output is not JSON, or incomplete ({error}): {shown!r}") from error
        except (KeyError, TypeError, AttributeError) as error:
            raise self.refused(f"its output lacks {error}") from error
        if not all(isinstance(status, dict) and isinstance(data, dict) for status, data in answers):
            raise self.refused("its output lacks 'Command Status'")
        return [(str(status.get("Controller", "")), status, data) for status, data in answers]


def _reason(status: Json) -> str:
    """The tool's message: of each drive if there are any, else of the command."""
    failed = [row for row in status.get("Detailed Status") or [] if row.get("Status") != "Success"]
    reasons = [f"{words} (code {row.get('ErrCd')})" for row in failed if (words := known(row.get("ErrMsg", "")))]
    return "; ".join(reasons) or str(status.get("Description", ""))


def _controller(data: Json) -> dict[str, str]:
    """From `/cN show all`. Parts are missing for host bus adapters, which have some of their fields at the top."""
    fields = _flat(data)
    for part in ("Basics", "Version", "HwCfg", "Bus", "Status"):
        fields |= _flat(data.get(part))
    fields["cli version"] = str(data["CLI Version"]).partition(" ")[0]
    numbers = [fields.get(name, "") for name in ("subvendor id", "subdevice id")]
    if all(number.isdecimal() for number in numbers):
        fields["subvendorid"], fields["subdeviceid"] = (f"{int(number):04x}" for number in numbers)
    return fields


def _battery(data: Json) -> Battery | None:
    """The row of a CacheVault or a battery, else the state from the hardware section, which may be `Absent`."""
    for key, kind in (("Cachevault_Info", "CacheVault"), ("BBU_Info", "BBU")):
        if row := _row(data.get(key)):
            model = text(row, "model")
            return Battery(kind=kind if model in ("", kind) else f"{kind} {model}", state=text(row, "state"))
    state = text(_flat(data.get("HwCfg")), "bbu")
    return Battery(kind="BBU", state=state) if state else None


def _physical_drives(data: Json) -> Iterator[Fields]:
    """From `/cN/eall/sall show all`: a row for each drive, and its attributes under separate keys."""
    for key, rows in data.items():
        if re.fullmatch(r"Drive /c[0-9]+(/e[0-9]+)?/s[0-9]+", key) and (row := _row(rows)):
            details = data.get(f"{key} - Detailed Information")
            attributes = details.get(f"{key} Device attributes") if isinstance(details, dict) else None
            yield _flat(attributes) | row


def _flat(part: object) -> dict[str, str]:
    """The texts and numbers of a JSON object, by lower-case name."""
    items = part.items() if isinstance(part, dict) else ()
    return {name.lower(): str(value).strip() for name, value in items if isinstance(value, str | int)}


def _row(rows: object) -> dict[str, str]:
    """The first row of a table."""
    return _flat(rows[0]) if isinstance(rows, list) and rows else {}


class MegaCli(MegaRaid):
    """Text. Formats: LSI, MegaRAID SAS Software User Guide (MegaCli 2 to 8).

    Older versions print `Virtual Disk` and `Stripe Size: 64kB`, newer ones `Virtual Drive` and `Strip Size : 64 KB`.
    All print lines of `name : value`, with or without spaces before the colon, and end with `Exit Code: 0x00`.
    `Default Cache Policy` is the configured policy, `Current Cache Policy` the active one.
    """

    name = "MegaCli"
    programs = ("MegaCli64", "MegaCli", "megacli64", "megacli")
    set_command = "-LDSetProp {word} -L{number} -a{controller} -NoLog"
    unused = re.compile(r"Unconfigured\(good\)((?!foreign).)*")
    spelling = {
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
    _ADAPTER = re.compile(r"\s*(?:BBU status for Adapter|PCI information for Controller|Adapter):?\s*#?([0-9]+)")
    _DRIVE = re.compile(r"Virtual D(?:isk|rive): ([0-9]+) \(target id: ([0-9]+)\)", re.IGNORECASE)
    _EXIT = re.compile(r"^Exit Code: 0x([0-9a-f]+)", re.IGNORECASE | re.MULTILINE)

    def sections(self) -> Iterator[Sections]:
        adapters = self._by_adapter(self.say("-AdpAllInfo", "-aAll", "-NoLog"))
        if not adapters:
            return
        places, virtual, physical, batteries = (
            self._by_adapter(self._any(*words, "-aAll", "-NoLog"))
            for words in (("-AdpGetPciInfo",), ("-LdPdInfo",), ("-PDList",), ("-AdpBbuCmd", "-GetBbuStatus"))
        )
        for number, lines in adapters.items():
            place, fields = pairs(places.get(number, [])), pairs(lines)
            numbers = (place.get(f"{name} number", "") for name in ("bus", "device", "function"))
            fields |= {"number": number, "pci address": ":".join(("0", *numbers))}  # the tool prints no domain
            yield Sections(
                fields,
                tuple(self._virtual_drives(virtual.get(number, []))),
                tuple(_megacli_drive(part) for part in _parts(physical.get(number, []), "Enclosure Device ID")),
                _megacli_battery(pairs(batteries.get(number, [])), text(fields, "bbu")),
            )

    def virtual_drive_fields(self, controller: str, number: str) -> Iterator[Fields]:
        output = self.say("-LDInfo", f"-L{number}", f"-a{controller}", "-NoLog")
        return self._virtual_drives(self._by_adapter(output).get(controller, []))

    def check(self, output: ToolOutput) -> None:
        if output.exit_code or self._exit_code(output):
            words = self._EXIT.sub("", output.out).strip()
            raise self.refused(words or output.err or f"exit status {output.exit_code}")

    def _any(self, *arguments: str) -> str:
        """The whole output. An error code is accepted: the tool has one if only one of several adapters has no data."""
        output = self.ask(*arguments)
        self._exit_code(output)
        return output.out

    def _exit_code(self, output: ToolOutput) -> int:
        """As the tool prints it at its end."""
        code = self._EXIT.search(output.out)
        if code is None and not output.exit_code:
            raise self.refused(f"its output is incomplete: {output.out.strip()[-100:]!r}")
        return int(code[1], 16) if code else 0

    def _by_adapter(self, output: str) -> dict[str, Lines]:
        """The lines of each adapter; a line with its number starts its section."""
        sections: dict[str, Lines] = {}
        number = ""
        for line in output.splitlines():
            if match := self._ADAPTER.match(line):
                number = match[1]
                sections.setdefault(number, [])
            if number:
                sections[number].append(line)
        return sections

    def _virtual_drives(self, lines: Lines) -> Iterator[Fields]:
        for part in _parts(lines, "Virtual D"):
            if match := self._DRIVE.match(part[0]):
                slots = (_megacli_slot(pairs(drive)) for drive in _parts(part, "Enclosure Device ID"))
                yield pairs(part[1:]) | {"number": match[1], "target": match[2], MEMBERS: " ".join(slots)}


def _parts(lines: Lines, start: str) -> Iterator[Lines]:
    """Sections that start with a line starting with `start`."""
    at = [place for place, line in enumerate(lines) if line.startswith(start)]
    for place, end in zip(at, [*at[1:], len(lines)], strict=False):
        yield lines[place:end]


def _megacli_battery(fields: Fields, present: str) -> Battery | None:
    kind, state = text(fields, "batterytype"), text(fields, "battery state")
    if text(fields, "battery replacement required").lower() == "yes":
        state = ", ".join(filter(None, (state, "replacement required")))
    if text(fields, "learn cycle active").lower() == "yes":
        state = ", ".join(filter(None, (state, "learn cycle active")))
    return Battery(kind=kind or "BBU", state=state or present) if kind or state or present else None


def _megacli_slot(fields: Fields) -> str:
    return f"{text(fields, 'enclosure device id')}:{fields.get('slot number', '')}"


def _megacli_drive(lines: Lines) -> Fields:
    """Model, serial and revision are columns of the inquiry; a shorter inquiry is used as the model.

    SAS: vendor, product, revision of SPC-3 6.4, then the serial number. SATA: serial, model, firmware of ACS-2 7.12.
    """
    fields = pairs(lines)
    inquiry = next((line.partition(":")[2][1:] for line in lines if line.startswith("Inquiry Data")), "")
    model, serial, revision = inquiry[:MAX_LABEL], "", ""
    if fields.get("pd type") == "SAS" and len(inquiry) > 28:
        model, serial, revision = inquiry[:24], inquiry[28:], inquiry[24:28]
    elif fields.get("pd type") == "SATA" and len(inquiry.rstrip()) > 60:
        model, serial, revision = inquiry[20:60], inquiry[:20], inquiry[60:]
    return fields | {"slot": _megacli_slot(fields), "model": model, "serial": serial, "revision": revision}


class Ssacli(Adapter):
    """Text of `show config detail`, also of hpssacli and hpacucli. Formats: HPE, Smart Storage Administrator CLI guide.

    Properties of a controller, an array or a drive are indented. The tool has no read-ahead and no I/O policy, and the
    drives' cache is one setting of the whole controller.
    """

    name = "ssacli"
    programs = ("ssacli", "hpssacli", "hpacucli")
    drivers = ("hpsa", "smartpqi", "cciss")
    set_command = "ctrl slot={controller} ld {number} modify {word}"
    spelling = {
        CachePolicy.WRITE_CACHE: {
            "write back": ("arrayaccelerator=enable",),
            "write through": ("arrayaccelerator=disable",),
        }
    }
    _CONTROLLER = re.compile(r"(\S.*?) in Slot ([0-9]+)\b")
    _LOGICAL = re.compile(r"\s*Logical Drive: ([0-9]+)")
    _PHYSICAL = re.compile(r"\s*physicaldrive (\S+)\s*\Z")
    _ARRAY = re.compile(r"\s*[Aa]rray:? [A-Z]{1,2}(?: \(.*)?\s*\Z")
    _MEMBER = re.compile(r"\s*physicaldrive (\S+) \(")
    # `   HP SAS Expander Card at Port 2C, Box 1, OK`, `   Enclosure SEP (…)`, `unassigned`.
    _HEADING = re.compile(r"[^:]*(?:\bat Port\b|\bSEP\b|Expander|assigned)[^:]*\Z")

    def sections(self) -> Iterable[Sections]:
        return self._controllers(self.say("ctrl", "all", "show", "config", "detail"))

    def virtual_drive_fields(self, controller: str, number: str) -> Iterator[Fields]:
        """Reads the whole controller, because only its section shows whether the cache is active."""
        output = self.say("ctrl", f"slot={controller}", "show", "config", "detail")
        return (fields for each in self._controllers(output) for fields in each.virtual_drives)

    def check(self, output: ToolOutput) -> None:
        if output.exit_code or output.out.lstrip().startswith("Error:"):
            raise self.refused(output.out.strip() or output.err or f"exit status {output.exit_code}")

    def _controllers(self, output: str) -> Iterator[Sections]:
        lines = output.splitlines()
        heads = [(place, match) for place, line in enumerate(lines) if (match := self._CONTROLLER.match(line))]
        ends = [*(place for place, _ in heads), len(lines)][1:]
        for (place, head), end in zip(heads, ends, strict=True):
            part = lines[place + 1 : end]
            fields = self._fields(part) | {"model": head[1], "number": head[2]}
            vendor = head[1].partition(" ")[0]
            fields["vendor"] = vendor if vendor in ("HP", "HPE", "MSCC") else ""
            cache = fields.get("total cache size", "")
            fields["total cache size"] = cache if "B" in cache else f"{cache} GB"  # newer versions omit the unit
            drives = [(match[1], at) for at, line in enumerate(part) if (match := self._PHYSICAL.match(line))]
            yield Sections(
                fields,
                tuple(self._logical_drives(part, fields)),
                tuple(self._physical_drive(slot, part[at + 1 :]) for slot, at in drives),
                _ssacli_battery(fields),
            )

    def _fields(self, lines: Lines) -> dict[str, str]:
        """`name: value` of all lines before the next heading."""
        values: dict[str, str] = {}
        for line in lines:
            if any(head.match(line) for head in (self._ARRAY, self._LOGICAL, self._PHYSICAL, self._MEMBER)):
                break
            if values and self._HEADING.match(line):
                break
            name, _, value = line.partition(": ")  # a name may contain a colon
            if value.strip():
                values.setdefault(name.strip().lower(), value.strip())
        return values

    def _logical_drives(self, lines: Lines, controller: Fields) -> Iterator[Fields]:
        starts = [place for place, line in enumerate(lines) if self._ARRAY.match(line)]
        unassigned = [place for place, line in enumerate(lines) if "nassigned" in line and ":" not in line]
        for start, following in zip(starts, [*starts[1:], len(lines)], strict=False):
            array = lines[start : min([following, *(place for place in unassigned if place > start)])]
            slots = " ".join(match[1] for line in array if (match := self._PHYSICAL.match(line)))
            for place, line in enumerate(array):
                if match := self._LOGICAL.match(line):
                    fields = self._fields(array[place + 1 :])
                    yield {
                        **fields,
                        "number": match[1],
                        "target": match[1],
                        "drive write cache": controller.get("drive write cache", ""),
                        "write_policy": _ssacli_write_policy(fields, controller),
                        MEMBERS: slots,
                    }

    def _physical_drive(self, slot: str, lines: Lines) -> Fields:
        fields = self._fields(lines)
        fields["disk capacity"] = fields.pop("size", "")  # in units of 1000, unlike the size of a logical drive
        return fields | {"slot": slot}


def _ssacli_write_policy(fields: Fields, controller: Fields) -> str:
    """The active policy: a disabled cache writes through; so does one without a battery, unless that is allowed."""
    configured = text(fields, "caching", "array accelerator")
    if configured.lower() != "enabled":
        return configured
    if controller.get("cache status", "OK") not in ("OK", "Not Configured"):
        return "WT"
    return "AWB" if controller.get("no-battery write cache", "").lower() == "enabled" else "WB"


def _ssacli_battery(fields: Fields) -> Battery | None:
    source, state = text(fields, "cache backup power source"), text(fields, "battery/capacitor status")
    if fields.get("battery/capacitor count") == "0":
        return Battery(kind=source or "battery", state="absent")
    return Battery(kind=source or "battery", state=state) if source or state else None


class Areca(Adapter):
    """Text of cli32 or cli64. Format: Areca, CLI Manual (ARC-11xx to ARC-1886).

    Every output ends with `GuiErrMsg<0x00>: Success.`. It has neither the PCI address nor world-wide names, and a call
    addresses the first controller, so several controllers cannot be distinguished. Changes may need the controller's
    password, which this worker does not have: the error then has the tool's message.
    """

    name = "areca-cli"
    programs = ("cli64", "areca_cli64", "cli32", "areca_cli32")
    drivers = ("arcmsr",)
    set_command = "vsf modify vol={number} {word}"
    spelling = {CachePolicy.WRITE_CACHE: {"write back": ("cache=Y",), "write through": ("cache=N",)}}
    _ENDED = re.compile(r"GuiErrMsg<0x([0-9a-f]+)>: *(.*)", re.IGNORECASE)
    _NUMBERED = re.compile(r"^\s*([0-9]+)\s+\S", re.MULTILINE)  # the first column of a table

    def sections(self) -> Iterator[Sections]:
        system = self._fields("sys", "info")
        try:
            hardware = self._fields("hw", "info")
        except ToolError:
            hardware = {}  # some controllers have no hardware monitor
        volumes = self._NUMBERED.findall(self.say("vsf", "info"))
        drives = [self._drive(number) for number in self._NUMBERED.findall(self.say("disk", "info"))]
        yield Sections(
            system | {"number": "1", "vendor": "Areca"},
            tuple(fields for number in volumes for fields in self.virtual_drive_fields("1", number)),
            tuple(fields for fields in drives if text(fields, "model name")),  # others are empty slots
            _areca_battery(hardware.get("battery status", "")),
        )

    def virtual_drive_fields(self, controller: str, number: str) -> Iterator[Fields]:
        fields = self._fields("vsf", "info", f"vol={number}")
        yield fields | {"number": number, "write_policy": text(fields, "cache mode", "cache attribute")}

    def _drive(self, number: str) -> Fields:
        fields = self._fields("disk", "info", f"drv={number}")
        return fields | {"slot": fields.get("ide channel") or fields.get("device location") or number}

    def target(self, channel: int, target: int, unit: int) -> str:
        return f"{channel:02}/{target:02}/{unit:02}"

    def check(self, output: ToolOutput) -> None:
        ended = self._ENDED.search(output.out)
        if ended is None or (not int(ended[1], 16) and not ended[2].startswith("Success.")):
            shown = output.out.strip()[-100:] or output.err.strip() or f"exit status {output.exit_code}"
            raise self.refused(f"its output is incomplete: {shown!r}")
        if int(ended[1], 16) or output.exit_code:
            raise self.refused(ended[2] or output.err)

    def _fields(self, *arguments: str) -> dict[str, str]:
        return pairs(self.say(*arguments).splitlines())


def _areca_battery(status: str) -> Battery | None:
    """The battery without its charge, which changes by itself."""
    if percent := re.search(r"([0-9]+) ?%", status):
        return Battery(kind="battery", state="charged" if int(percent[1]) >= 95 else "charging")
    return Battery(kind="battery", state=status[:MAX_LABEL]) if status else None


# In the order of calls: if two tools list the same controller, the first one counts.
ADAPTERS: tuple[Adapter, ...] = (
    Storcli("storcli", ("storcli64", "storcli")),
    Storcli("perccli", ("perccli64", "perccli")),
    MegaCli(),
    Ssacli(),
    Areca(),
)
