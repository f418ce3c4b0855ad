"""Health of drives and their counters of written data, read with smartctl or nvme-cli if they are installed.

Health changes by itself, so it is not part of the inventory, but it is sent together with it.

smartctl 7: `--json --all`; SCSI and SATA drives in standby are not woken (`--nocheck=standby`). nvme-cli:
`smart-log --output-format=json`, where 2.x writes large counters as text. Units: NVM Express Base Specification 1.4,
5.14.1.2: the temperature is in kelvin. Module `written` explains the counters of written data.
"""

import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TypeVar

import msgspec
from msgspec.structs import asdict, replace

from worker.contract.base import MAX_TEXT
from worker.contract.inventory import DriveHealth
from worker.kernel import sysfs
from worker.kernel.sysfs import SYS
from worker.process.run import ToolError, ToolOutput, ask, find

# Structs for the JSON output of smartctl and nvme-cli. Other keys are ignored.
#
# smartctl 7 (`--json`). Both tools print NVMe's SMART log, with different names. nvme-cli 2.x writes large counters
# as text.

T = TypeVar("T")


class Problem(msgspec.Struct, frozen=True):
    string: str = ""


class Ran(msgspec.Struct, frozen=True):
    version: tuple[int, ...] = ()
    messages: tuple[Problem, ...] = ()
    exit_status: int = 0


class Flag(msgspec.Struct, frozen=True):
    passed: bool | None = None
    available: bool | None = None
    valid: bool | None = None


class Number(msgspec.Struct, frozen=True):
    current: int | None = None
    hours: int | None = None
    value: int | None = None
    current_percent: int | None = None


class Attribute(msgspec.Struct, frozen=True):
    name: str = ""
    value: int = 0
    raw: Number = Number()


class Attributes(msgspec.Struct, frozen=True):
    table: tuple[Attribute, ...] = ()


class Statistic(msgspec.Struct, frozen=True):
    """A row of a page of ATA device statistics (ACS-4, 9.5)."""

    offset: int = 0
    value: int | None = None
    flags: Flag = Flag()


class StatisticsPage(msgspec.Struct, frozen=True):
    number: int = 0
    table: tuple[Statistic, ...] = ()


class Statistics(msgspec.Struct, frozen=True):
    pages: tuple[StatisticsPage, ...] = ()


class NvmeLog(msgspec.Struct, frozen=True):
    critical_warning: int = 0
    temperature: int | None = None
    percentage_used: int | None = None
    percent_used: int | None = None
    data_units_written: int | None = None
    power_on_hours: int | None = None
    media_errors: int | None = None


class Smartctl(msgspec.Struct, frozen=True):
    smartctl: Ran = Ran()
    serial_number: str = ""
    logical_block_size: int = 512
    model_family: str = ""
    in_smartctl_database: bool = False
    smart_status: Flag = Flag()
    smart_support: Flag = Flag()
    temperature: Number = Number()
    power_on_time: Number = Number()
    endurance_used: Number = Number()
    scsi_percentage_used_endurance_indicator: int | None = None
    ata_smart_attributes: Attributes = Attributes()
    ata_device_statistics: Statistics = Statistics()
    nvme_smart_health_information_log: NvmeLog | None = None


class Large(msgspec.Struct, frozen=True):
    """A 16-byte counter in the parts that nvme-cli's plugins print."""

    hi: int = 0
    lo: int = 0


class OcpLog(msgspec.Struct, frozen=True):
    """`nvme ocp smart-add-log`: log page C0h of the OCP Datacenter NVMe SSD Specification."""

    written: Large | None = msgspec.field(name="Physical media units written", default=None)


class Raw(msgspec.Struct, frozen=True):
    raw: int | None = None


class IntelStats(msgspec.Struct, frozen=True):
    nand_bytes_written: Raw = Raw()
    host_bytes_written: Raw = Raw()


class IntelLog(msgspec.Struct, frozen=True):
    """`nvme intel smart-log-add`: log page CAh."""

    stats: IntelStats = msgspec.field(name="Device stats", default=IntelStats())


def decoded(tool: str, text: str, kind: type[T]) -> T:
    """Decode JSON; numbers may be text, unknown keys are ignored. Raises ToolError for incomplete output."""
    try:
        return msgspec.convert(msgspec.json.decode(text), kind, strict=False)
    except (msgspec.DecodeError, msgspec.ValidationError) as error:
        raise ToolError(f"The output of {tool} cannot be read ({error}).") from error


# A drive's counters of data written by hosts and to its media, each with the unit of one count.
#
# Only documented counters are used; for other drives, the amounts are unknown. Not tested on real hardware, except
# for the counters of QEMU's NVMe drive.
#
#     NVMe    Data Units Written: 1,000 x 512 bytes, rounded up (NVM Express Base Specification 1.4, 5.14.1.2).
#             Media: Physical Media Units Written in bytes (OCP Datacenter NVMe SSD Specification 2.0, 4.8.6, SMART-1);
#             for Intel drives NAND Bytes Written in 32 MiB (log page CAh), used if the same page's count of host bytes
#             agrees with NVMe's counter.
#     SATA    Logical Sectors Written of the device statistics (ACS-4, 9.5.4), else the attribute whose name in
#             smartmontools' drive database includes its unit. For drives that are not in the database, smartctl uses
#             names of other drives, so these attributes are ignored.
#     Micron  Pages programmed for hosts (247) and by the drive itself (248): their size is unknown, but their ratio is
#             write amplification (Micron TN-FD-23, "Calculating Write Amplification Factor").
#
# SAS drives have no standard counters (SPC-4), and virtual drives of a RAID controller have none.

DATA_UNIT_BYTES = 512_000
_MIB, _GIB = 2**20, 2**30
_HOST = {
    "Host_Writes_MiB": _MIB, "Host_Writes_32MiB": 32 * _MIB, "Total_Writes_32MiB": 32 * _MIB, "Host_Writes_GiB": _GIB,
    "Lifetime_Writes_GiB": _GIB, "Total_Writes_GiB": _GIB,
}  # fmt: skip
_MEDIA = {
    "NAND_Writes_32MiB": 32 * _MIB, "NAND_Writes_1GiB": _GIB, "Total_NAND_Writes_GiB": _GIB, "Flash_Writes_GiB": _GIB,
}  # fmt: skip
# Default names of smartctl that are reliable; Total_LBAs_Written is in logical sectors.
_BY_DEFAULT = {
    "Total_LBAs_Written": ("Samsung", "Crucial", "Micron"),
    "Total_Host_Sector_Write": ("Crucial", "Micron"),
    "NAND_Writes_1GiB": ("Intel", "Solidigm"),
    "Media_Wearout_Indicator": ("Intel", "Solidigm"),
    "Wear_Leveling_Count": ("Samsung",),
}
_SECTORS = ("Total_LBAs_Written", "Total_Host_Sector_Write")
_HOST_PAGES, _OWN_PAGES = ("Host_Program_Page_Count",), ("FTL_Program_Page_Count", "Bckgnd_Program_Page_Cnt")
_GENERAL_PAGE, _SECTORS_WRITTEN = 1, 0x18
_SSD_PAGE, _ENDURANCE_USED = 7, 0x08
_INTEL_UNIT = 32 * _MIB
_AGREE_UNITS, _AGREE_SHARE = 2, 0.01


class Written(msgspec.Struct, frozen=True, kw_only=True):
    """Fields of `DriveHealth`."""

    host_written_bytes: int | None = None
    host_unit_bytes: int | None = None
    media_written_bytes: int | None = None
    media_unit_bytes: int | None = None
    host_pages: int | None = None
    media_pages: int | None = None


def nvme_written(log: NvmeLog) -> Written:
    if log.data_units_written is None:
        return Written()
    return Written(host_written_bytes=log.data_units_written * DATA_UNIT_BYTES, host_unit_bytes=DATA_UNIT_BYTES)


def ocp_written(log: OcpLog) -> Written:
    """None for 0, because such a drive does not count."""
    count = (log.written.hi << 64) + log.written.lo if log.written else 0
    return Written(media_written_bytes=count, media_unit_bytes=1) if 0 < count < 2**63 else Written()


def intel_written(log: IntelLog, host_bytes: int | None) -> Written:
    """`host_bytes`: from the drive's SMART log."""
    media, host = log.stats.nand_bytes_written.raw, log.stats.host_bytes_written.raw
    if not media or media < 0 or host is None or host_bytes is None:
        return Written()
    if abs(host * _INTEL_UNIT - host_bytes) > max(_AGREE_UNITS * _INTEL_UNIT, _AGREE_SHARE * host_bytes):
        return Written()
    return Written(media_written_bytes=media * _INTEL_UNIT, media_unit_bytes=_INTEL_UNIT)


def sata_written(drive: Smartctl) -> Written:
    raw = _believed(drive)
    sectors = statistic(drive, _GENERAL_PAGE, _SECTORS_WRITTEN)
    units = _HOST | dict.fromkeys(_SECTORS, drive.logical_block_size)
    host, unit = (sectors, drive.logical_block_size) if sectors is not None else _first(raw, units)
    media, media_unit = _first(raw, _MEDIA)
    host_pages, _ = _first(raw, dict.fromkeys(_HOST_PAGES, 1))
    own_pages, _ = _first(raw, dict.fromkeys(_OWN_PAGES, 1))
    pages = None if host_pages is None or own_pages is None else host_pages + own_pages
    return Written(
        host_written_bytes=None if host is None else host * unit,
        host_unit_bytes=None if host is None else unit,
        media_written_bytes=None if media is None else media * media_unit,
        media_unit_bytes=None if media is None else media_unit,
        host_pages=None if pages is None else host_pages,
        media_pages=pages,
    )


def wear_of_sata(drive: Smartctl, worn_from_100: tuple[str, ...]) -> int | None:
    """Used percent of the rated endurance, from the device statistics, else from an attribute that counts down."""
    used_percent = statistic(drive, _SSD_PAGE, _ENDURANCE_USED)
    left = (
        a.value for a in drive.ata_smart_attributes.table if a.name in worn_from_100 and _is_believed(drive, a.name)
    )
    return used_percent if used_percent is not None else next((max(0, 100 - value) for value in left), None)


def statistic(drive: Smartctl, page: int, offset: int) -> int | None:
    """A value of ATA device statistics that the drive marks as valid."""
    rows = (row for each in drive.ata_device_statistics.pages if each.number == page for row in each.table)
    valid = (row.value for row in rows if row.offset == offset and row.flags.valid and (row.value or 0) >= 0)
    return next(valid, None)


def _believed(drive: Smartctl) -> dict[str, int]:
    table = drive.ata_smart_attributes.table
    return {a.name: a.raw.value for a in table if a.raw.value is not None and _is_believed(drive, a.name)}


def _is_believed(drive: Smartctl, name: str) -> bool:
    makers = _BY_DEFAULT.get(name)
    return drive.in_smartctl_database and (makers is None or drive.model_family.startswith(makers))


def _first(raw: Mapping[str, int], units: Mapping[str, int]) -> tuple[int | None, int]:
    return next(((raw[name], unit) for name, unit in units.items() if name in raw), (None, 0))


LIMIT_S = 5.0  # for one drive
TOTAL_LIMIT_S = 12.0
KELVIN = 273
INTEL = "0x8086"  # PCI vendor
ASKED = ("nvme", "sata", "sas")
_WARNINGS = (
    "spare capacity is low", "temperature is out of bounds", "reliability is degraded", "media is read-only",
    "the backup of volatile memory has failed", "persistent memory is unreliable",
)  # fmt: skip
_WORN_FROM_100 = ("Media_Wearout_Indicator", "Wear_Leveling_Count", "Percent_Lifetime_Remain", "SSD_Life_Left")
_USAGE_ERRORS = 0b11  # smartctl(8): invalid command line; device could not be opened


def take(sys: Path = SYS) -> tuple[DriveHealth, ...]:
    """The health of each drive. After a time limit, the remaining drives are left out."""
    give_up_at = time.monotonic() + TOTAL_LIMIT_S
    names = [name for name in sysfs.names(sys) if sysfs.kind(name, sys) == "disk" and sysfs.size_bytes(name, sys)]
    drives = (name for name in names if sysfs.transport(name, sys) in ASKED)
    return tuple(of(name, sys) for name in drives if time.monotonic() < give_up_at)


def of(name: str, sys: Path = SYS) -> DriveHealth:
    """The health of one drive, within seconds; `problem` explains why it is unknown."""
    serial = sysfs.serial(name, sys)
    path, transport = sysfs.device_path(name), sysfs.transport(name, sys)
    ways: list[Callable[[], DriveHealth]] = [lambda: _by_smartctl(name, path, serial, sata=transport == "sata")]
    if transport == "nvme":
        ways.append(lambda: _by_nvme_cli(name, path, serial))
    problems = []
    for way in ways:
        try:
            return _with_media(way(), path, sys)
        except ToolError as error:
            problems.append(str(error))
    return DriveHealth(device=name, serial=serial, problem=" ".join(problems)[:MAX_TEXT])


# ---- smartctl


def _by_smartctl(name: str, path: str, serial: str, *, sata: bool) -> DriveHealth:
    statistics = ("--log=devstat",) if sata else ()
    output = ask("smartctl", "--json=c", "--all", *statistics, "--nocheck=standby,0", path, limit_s=LIMIT_S)
    return read_smartctl(output, name, serial)


def read_smartctl(output: ToolOutput, name: str, serial: str) -> DriveHealth:
    """Raises ToolError if the output has no data about the drive."""
    smartctl = decoded("smartctl", output.out, Smartctl)
    if output.exit_code & _USAGE_ERRORS:
        words = "; ".join(message.string for message in smartctl.smartctl.messages) or output.err.strip()
        raise ToolError(f"smartctl failed for {name}: {words or f'exit status {output.exit_code}'}.")
    if serial and smartctl.serial_number and smartctl.serial_number.strip() != serial:
        raise ToolError(f"smartctl answered for {smartctl.serial_number}, not for {serial}.")
    silent = smartctl.smart_support.available is False
    log = smartctl.nvme_smart_health_information_log
    return DriveHealth(
        device=name,
        serial=serial,
        tool=f"smartctl {'.'.join(map(str, smartctl.smartctl.version))}",
        healthy=None if silent else smartctl.smart_status.passed,
        temperature_c=None if silent else smartctl.temperature.current,
        percent_used=_wear(smartctl),
        power_on_hours=smartctl.power_on_time.hours,
        media_errors=log.media_errors if log else None,
        warnings=tuple(_warnings(log)) if log else (),
        problem="The drive does not report its health." if silent else "",
        **asdict(nvme_written(log) if log else sata_written(smartctl)),
    )


def _wear(drive: Smartctl) -> int | None:
    """Used percent of the rated endurance; may exceed 100."""
    log = drive.nvme_smart_health_information_log
    percents = (drive.endurance_used.current_percent, drive.scsi_percentage_used_endurance_indicator)
    known = [*percents, log.percentage_used if log else None]
    known += [wear_of_sata(drive, _WORN_FROM_100)]
    return next((value for value in known if value is not None), None)


# ---- nvme-cli


def _by_nvme_cli(name: str, path: str, serial: str) -> DriveHealth:
    output = ask("nvme", "smart-log", "--output-format=json", path, limit_s=LIMIT_S)
    return read_nvme_cli(output, name, serial)


def read_nvme_cli(output: ToolOutput, name: str, serial: str) -> DriveHealth:
    """Raises ToolError if the output has no data about the drive."""
    if output.exit_code:
        raise ToolError(f"nvme failed for {name}: {output.err.strip() or output.out.strip()}.")
    log = decoded("nvme", output.out, NvmeLog)
    return DriveHealth(
        device=name,
        serial=serial,
        tool="nvme-cli",
        healthy=log.critical_warning == 0,
        temperature_c=log.temperature - KELVIN if log.temperature else None,
        percent_used=log.percent_used,
        power_on_hours=log.power_on_hours,
        media_errors=log.media_errors,
        warnings=tuple(_warnings(log)),
        **asdict(nvme_written(log)),
    )


def _warnings(log: NvmeLog) -> Iterator[str]:
    """Bits of Critical Warning."""
    return (words for bit, words in enumerate(_WARNINGS) if log.critical_warning >> bit & 1)


# ---- media writes of NVMe drives


_refused: set[tuple[str, str]] = set()  # (device, serial) without such a page: each refusal enters their error log


def _with_media(health: DriveHealth, path: str, sys: Path) -> DriveHealth:
    """Read a vendor's log page of an NVMe drive. A drive without this page is queried only once."""
    name, key = health.device, (health.device, health.serial)
    if sysfs.transport(name, sys) != "nvme" or key in _refused or not find(("nvme",)):
        return health
    vendor = sysfs.attribute(name, "device/device/vendor", sys)
    for way in (_by_ocp, *((_by_intel,) if vendor == INTEL else ())):
        try:
            media = way(path, health)
        except ToolError:
            continue
        if media.media_written_bytes is not None:
            return replace(
                health, media_written_bytes=media.media_written_bytes, media_unit_bytes=media.media_unit_bytes
            )
    _refused.add(key)
    return health


def _by_ocp(path: str, _: DriveHealth) -> Written:
    return ocp_written(decoded("nvme ocp", _plugin(path, "ocp", "smart-add-log"), OcpLog))


def _by_intel(path: str, health: DriveHealth) -> Written:
    log = decoded("nvme intel", _plugin(path, "intel", "smart-log-add"), IntelLog)
    return intel_written(log, health.host_written_bytes)


def _plugin(path: str, *command: str) -> str:
    output = ask("nvme", *command, path, "--output-format=json", limit_s=LIMIT_S)
    if output.exit_code:
        raise ToolError(f"nvme {' '.join(command)}: {output.err.strip() or output.out.strip()}.")
    return output.out
