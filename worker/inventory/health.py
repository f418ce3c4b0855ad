"""What drives tell of their own health, through smartctl or nvme-cli where the host has them.

All of it changes by itself, so it is no part of the inventory: it is told beside it, as it was last asked.

smartctl 7: `--json --all`; SCSI and SATA drives in standby are not woken (`--nocheck=standby`). nvme-cli:
`smart-log --output-format=json`, where 2.x writes large counters as text. Units: NVM Express Base Specification 1.4,
5.14.1.2: a data unit is 1,000 x 512 bytes, the temperature in kelvin; ACS-4 for SATA; attributes of SATA drives
that count data have their unit in the name that smartmontools' drive database gives them.
"""

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

import msgspec

from worker.contract.inventory import DriveHealth
from worker.inventory import sysfs
from worker.inventory.sysfs import SYS
from worker.tools import Said, ToolError, ask

T = TypeVar("T")
LIMIT_S = 5.0  # for one drive
TOTAL_LIMIT_S = 12.0
LONGEST = 2000
DATA_UNIT_BYTES = 512_000
KELVIN = 273
ASKED = ("nvme", "sata", "sas")
_WARNINGS = (
    "spare capacity is low", "temperature is out of bounds", "reliability is degraded", "media is read-only",
    "the backup of volatile memory has failed", "persistent memory is unreliable",
)  # fmt: skip
_HOST_BYTES = {"Host_Writes_32MiB": 32 * 2**20, "Lifetime_Writes_GiB": 2**30, "Host_Writes_GiB": 2**30}
_MEDIA_BYTES = {"NAND_Writes_1GiB": 2**30, "NAND_Writes_32MiB": 32 * 2**20, "Total_NAND_Writes_GiB": 2**30}
_WORN_FROM_100 = ("Media_Wearout_Indicator", "Wear_Leveling_Count", "Percent_Lifetime_Remain", "SSD_Life_Left")
_USAGE_ERRORS = 0b11  # smartctl(8): command line not understood; device could not be opened


class _Problem(msgspec.Struct, frozen=True):
    string: str = ""


class _Ran(msgspec.Struct, frozen=True):
    version: tuple[int, ...] = ()
    messages: tuple[_Problem, ...] = ()
    exit_status: int = 0


class _Flag(msgspec.Struct, frozen=True):
    passed: bool | None = None
    available: bool | None = None


class _Number(msgspec.Struct, frozen=True):
    current: int | None = None
    hours: int | None = None
    value: int | None = None
    current_percent: int | None = None


class _Attribute(msgspec.Struct, frozen=True):
    name: str = ""
    value: int = 0
    raw: _Number = _Number()


class _Attributes(msgspec.Struct, frozen=True):
    table: tuple[_Attribute, ...] = ()


class _NvmeLog(msgspec.Struct, frozen=True):
    """The same page by both tools, under names of their own."""

    critical_warning: int = 0
    temperature: int | None = None
    percentage_used: int | None = None
    percent_used: int | None = None
    data_units_written: int | None = None
    power_on_hours: int | None = None
    media_errors: int | None = None


class _Smartctl(msgspec.Struct, frozen=True):
    smartctl: _Ran = _Ran()
    serial_number: str = ""
    logical_block_size: int = 512
    smart_status: _Flag = _Flag()
    smart_support: _Flag = _Flag()
    temperature: _Number = _Number()
    power_on_time: _Number = _Number()
    endurance_used: _Number = _Number()
    scsi_percentage_used_endurance_indicator: int | None = None
    ata_smart_attributes: _Attributes = _Attributes()
    nvme_smart_health_information_log: _NvmeLog | None = None


def take(sys: Path = SYS) -> tuple[DriveHealth, ...]:
    """Of every drive that may tell; those that there was no time for are left out. Takes seconds where tools hang."""
    give_up_at = time.monotonic() + TOTAL_LIMIT_S
    names = [name for name in sysfs.names(sys) if sysfs.kind(name, sys) == "disk" and sysfs.size_bytes(name, sys)]
    asked = (name for name in names if sysfs.transport(name, sys) in ASKED)
    return tuple(of(name, sys) for name in asked if time.monotonic() < give_up_at)


def of(name: str, sys: Path = SYS) -> DriveHealth:
    """Of one drive, within seconds; `problem` says why nothing is told."""
    serial = sysfs.serial(name, sys)
    path = sysfs.device_path(name)
    ways: list[Callable[[], DriveHealth]] = [lambda: _by_smartctl(name, path, serial)]
    if sysfs.transport(name, sys) == "nvme":
        ways.append(lambda: _by_nvme_cli(name, path, serial))
    problems = []
    for way in ways:
        try:
            return way()
        except ToolError as error:
            problems.append(str(error))
    return DriveHealth(device=name, serial=serial, problem=" ".join(problems)[:LONGEST])


# ---- smartctl


def _by_smartctl(name: str, path: str, serial: str) -> DriveHealth:
    said = ask("smartctl", "--json=c", "--all", "--nocheck=standby,0", path, limit_s=LIMIT_S)
    return read_smartctl(said, name, serial)


def read_smartctl(said: Said, name: str, serial: str) -> DriveHealth:
    """Raises ToolError where it tells nothing of the drive."""
    found = _decoded("smartctl", said.out, _Smartctl)
    if said.exit_code & _USAGE_ERRORS:
        words = "; ".join(message.string for message in found.smartctl.messages) or said.err.strip()
        raise ToolError(f"smartctl could not ask {name}: {words or f'exit status {said.exit_code}'}.")
    if serial and found.serial_number and found.serial_number.strip() != serial:
        raise ToolError(f"smartctl told of {found.serial_number}, not of {serial}.")
    silent = found.smart_support.available is False
    log = found.nvme_smart_health_information_log
    return DriveHealth(
        device=name,
        serial=serial,
        tool=f"smartctl {'.'.join(map(str, found.smartctl.version))}",
        healthy=None if silent else found.smart_status.passed,
        temperature_c=None if silent else found.temperature.current,
        percent_used=_wear(found),
        host_written_bytes=_units(log) if log else _counted(found, _HOST_BYTES, lbas="Total_LBAs_Written"),
        media_written_bytes=_counted(found, _MEDIA_BYTES),
        power_on_hours=found.power_on_time.hours,
        media_errors=log.media_errors if log else None,
        warnings=tuple(_warnings(log)) if log else (),
        problem="The drive tells nothing of its health." if silent else "",
    )


def _wear(found: _Smartctl) -> int | None:
    """Percent of the rated endurance that is used; may be over 100."""
    log = found.nvme_smart_health_information_log
    told = (found.endurance_used.current_percent, found.scsi_percentage_used_endurance_indicator)
    known = [*told, log.percentage_used if log else None]
    left = (a.value for a in found.ata_smart_attributes.table if a.name in _WORN_FROM_100)
    known += [max(0, 100 - value) for value in left]
    return next((value for value in known if value is not None), None)


def _counted(found: _Smartctl, units: dict[str, int], *, lbas: str = "") -> int | None:
    """An attribute that counts data in the unit of its name, or in logical blocks."""
    known = units | ({lbas: found.logical_block_size} if lbas else {})
    table = found.ata_smart_attributes.table
    raw = ((known[a.name], a.raw.value) for a in table if a.name in known)
    return next((unit * count for unit, count in raw if count is not None), None)


# ---- nvme-cli


def _by_nvme_cli(name: str, path: str, serial: str) -> DriveHealth:
    said = ask("nvme", "smart-log", "--output-format=json", path, limit_s=LIMIT_S)
    return read_nvme_cli(said, name, serial)


def read_nvme_cli(said: Said, name: str, serial: str) -> DriveHealth:
    """Raises ToolError where it tells nothing of the drive."""
    if said.exit_code:
        raise ToolError(f"nvme could not ask {name}: {said.err.strip() or said.out.strip()}.")
    log = _decoded("nvme", said.out, _NvmeLog)
    return DriveHealth(
        device=name,
        serial=serial,
        tool="nvme-cli",
        healthy=log.critical_warning == 0,
        temperature_c=log.temperature - KELVIN if log.temperature else None,
        percent_used=log.percent_used,
        host_written_bytes=_units(log),
        power_on_hours=log.power_on_hours,
        media_errors=log.media_errors,
        warnings=tuple(_warnings(log)),
    )


def _units(log: _NvmeLog) -> int | None:
    return None if log.data_units_written is None else log.data_units_written * DATA_UNIT_BYTES


def _warnings(log: _NvmeLog) -> Iterator[str]:
    """Bits of Critical Warning."""
    return (words for bit, words in enumerate(_WARNINGS) if log.critical_warning >> bit & 1)


def _decoded(tool: str, text: str, kind: type[T]) -> T:
    """JSON as it came: numbers may be text, unknown keys are passed over. Raises ToolError for what is cut off."""
    try:
        return msgspec.convert(msgspec.json.decode(text), kind, strict=False)
    except (msgspec.DecodeError, msgspec.ValidationError) as error:
        raise ToolError(f"What {tool} printed could not be read ({error}).") from error
