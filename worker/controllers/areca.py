"""Areca's command line interface (cli32, cli64), parsed from its text output.

Format: Areca, CLI Manual (ARC-11xx to ARC-1886). Sizes use units of 1000; sizes of memory and stripes use 1024. Every
output ends with `GuiErrMsg<0x00>: Success.`. It has neither the PCI address nor world-wide names, and a call addresses
the first controller, so several controllers cannot be distinguished. Changes may need the controller's password, which
this worker does not have: the error then has the tool's message.
"""

import re
from collections.abc import Iterator

from worker.contract.base import MAX_LABEL
from worker.contract.inventory import Battery, Controller, PhysicalDrive, VirtualDrive
from worker.controllers import base
from worker.controllers.base import Adapter, CachePolicy, Fields, find_drive, pairs
from worker.process.run import ToolError, ToolOutput

_ENDED = re.compile(r"GuiErrMsg<0x([0-9a-f]+)>: *(.*)", re.IGNORECASE)
_WRITE = {"writeback": "write back", "enabled": "write back", "writethrough": "write through"}
_NUMBERED = re.compile(r"^\s*([0-9]+)\s+\S")
FIRST = "1"


class Areca(Adapter):
    name = "areca-cli"
    programs = ("cli64", "areca_cli64", "cli32", "areca_cli32")
    drivers = ("arcmsr",)
    spelling = {CachePolicy.WRITE_CACHE: {"write back": ("cache=Y",), "write through": ("cache=N",)}}

    def read_controllers(self) -> tuple[Controller, ...]:
        system = fields(self.say("sys", "info"))
        volumes = tuple(self.virtual_drive(FIRST, number) for number in numbers(self.say("vsf", "info")))
        drives = tuple(self._drives())
        return (controller(system, self._hardware(), volumes, drives),)

    def virtual_drive(self, controller: str, number: str) -> VirtualDrive:
        return find_drive(self, (volume(number, fields(self.say("vsf", "info", f"vol={number}"))),), number)

    def set_command(self, controller: str, number: str, word: str) -> tuple[str, ...]:
        return "vsf", "modify", f"vol={number}", word

    def is_at(self, drive: VirtualDrive, place: tuple[int, int, int]) -> bool:
        return drive.target == "{:02}/{:02}/{:02}".format(*place)

    def _drives(self) -> Iterator[PhysicalDrive]:
        for number in numbers(self.say("disk", "info")):
            values = fields(self.say("disk", "info", f"drv={number}"))
            if base.known(values.get("model name", "")):
                yield physical_drive(number, values)

    def _hardware(self) -> Fields:
        try:
            return fields(self.say("hw", "info"))
        except ToolError:
            return {}  # some controllers have no hardware monitor

    def check(self, output: ToolOutput) -> None:
        ended = _ENDED.search(output.out)
        if ended is None or (not int(ended[1], 16) and not ended[2].startswith("Success.")):
            shown = output.out.strip()[-100:] or output.err.strip() or f"exit status {output.exit_code}"
            raise self.refused(f"its output is incomplete: {shown!r}")
        if int(ended[1], 16) or output.exit_code:
            raise self.refused(ended[2] or output.err)


def fields(text: str) -> Fields:
    return pairs(text.splitlines())


def numbers(text: str) -> list[str]:
    """The first column of a table, between its two horizontal lines."""
    return [match[1] for line in text.splitlines() if (match := _NUMBERED.match(line))]


def controller(
    system: Fields, hardware: Fields, volumes: tuple[VirtualDrive, ...], drives: tuple[PhysicalDrive, ...]
) -> Controller:
    return Controller(
        address="",
        tool=Areca.name,
        number=FIRST,
        vendor="Areca",
        model=base.known(system.get("controller name", "")),
        serial=base.known(system.get("serial number", "")),
        firmware=base.known(system.get("firmware version", "")),
        bios=base.known(system.get("boot rom version", "")),
        cache_bytes=base.size(system.get("system memory", ""), unit=base.KIB),
        battery=_battery(hardware.get("battery status", "")),
        virtual_drives=volumes,
        physical_drives=drives,
    )


def _battery(status: str) -> Battery | None:
    """The battery without its charge, which changes by itself."""
    if not status:
        return None
    percent = re.search(r"([0-9]+) ?%", status)
    if percent is None:
        return Battery(kind="battery", state=status[:MAX_LABEL])
    return Battery(kind="battery", state="charged" if int(percent[1]) >= 95 else "charging")


def volume(number: str, values: Fields) -> VirtualDrive:
    cache = "".join((values.get("cache mode") or values.get("cache attribute", "")).lower().replace("-", "").split())
    write = next((meaning for word, meaning in _WRITE.items() if cache.startswith(word)), "")
    return VirtualDrive(
        number=number,
        target=values.get("scsi ch/id/lun", ""),
        name=base.known(values.get("volume set name", "")),
        level=base.level(values.get("raid level", "")),
        strip_bytes=base.size(f"{values.get('stripe size', '').removesuffix('Bytes')}B", unit=base.KIB),
        size_bytes=base.size(values.get("volume capacity", ""), unit=1000),
        state=base.known(values.get("volume state", "")),
        write_cache=write,
        write_cache_now=write,
    )


def physical_drive(number: str, values: Fields) -> PhysicalDrive:
    """A drive; its position is a channel, or enclosure and slot."""
    place = values.get("ide channel") or values.get("device location") or number
    mode = values.get("current sata mode") or values.get("device type", "")
    return PhysicalDrive(
        slot=place[:MAX_LABEL],
        model=base.known(values.get("model name", "")),
        serial=base.known(values.get("serial number", "")),
        firmware=base.known(values.get("firmware rev.", "")),
        state=base.known(values.get("device state", "")),
        size_bytes=base.size(values.get("disk capacity", ""), unit=1000),
        interface=next((word for word in ("SATA", "SAS") if word in mode), ""),
        link_bits_per_s=_sata_rate(mode),
    )


def _sata_rate(mode: str) -> int | None:
    """`SATA300+NCQ(Depth32)`, `SATA 6G`: data rate in MB/s or in Gb/s."""
    rates = {"150": 1_500_000_000, "300": 3_000_000_000, "600": 6_000_000_000}
    match = re.search(r"SATA ?(150|300|600)|([0-9]+)G", mode)
    if not match:
        return None
    return rates[match[1]] if match[1] else int(match[2]) * 1_000_000_000


ARECA = Areca()
