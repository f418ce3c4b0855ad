"""Health of drives, read with smartctl or nvme-cli if they are installed.

Health changes by itself, so it is not part of the inventory, but it is sent together with it.

smartctl 7: `--json --all`; SCSI and SATA drives in standby are not woken (`--nocheck=standby`). nvme-cli:
`smart-log --output-format=json`, where 2.x writes large counters as text. Units: NVM Express Base Specification 1.4,
5.14.1.2: the temperature is in kelvin. Module `written` explains the counters of written data.
"""

import time
from collections.abc import Callable, Iterator
from pathlib import Path

from msgspec.structs import asdict, replace

from worker.contract.inventory import DriveHealth
from worker.inventory import sysfs, written
from worker.inventory.answers import IntelLog, NvmeLog, OcpLog, Smartctl, decoded
from worker.inventory.sysfs import SYS
from worker.process import ToolError, ToolOutput, ask, find
from worker.text_limits import MAX_TEXT

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
    asked = (name for name in names if sysfs.transport(name, sys) in ASKED)
    return tuple(of(name, sys) for name in asked if time.monotonic() < give_up_at)


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
    said = ask("smartctl", "--json=c", "--all", *statistics, "--nocheck=standby,0", path, limit_s=LIMIT_S)
    return read_smartctl(said, name, serial)


def read_smartctl(said: ToolOutput, name: str, serial: str) -> DriveHealth:
    """Raises ToolError if the output has no data about the drive."""
    found = decoded("smartctl", said.out, Smartctl)
    if said.exit_code & _USAGE_ERRORS:
        words = "; ".join(message.string for message in found.smartctl.messages) or said.err.strip()
        raise ToolError(f"smartctl failed for {name}: {words or f'exit status {said.exit_code}'}.")
    if serial and found.serial_number and found.serial_number.strip() != serial:
        raise ToolError(f"smartctl answered for {found.serial_number}, not for {serial}.")
    silent = found.smart_support.available is False
    log = found.nvme_smart_health_information_log
    return DriveHealth(
        device=name,
        serial=serial,
        tool=f"smartctl {'.'.join(map(str, found.smartctl.version))}",
        healthy=None if silent else found.smart_status.passed,
        temperature_c=None if silent else found.temperature.current,
        percent_used=_wear(found),
        power_on_hours=found.power_on_time.hours,
        media_errors=log.media_errors if log else None,
        warnings=tuple(_warnings(log)) if log else (),
        problem="The drive does not report its health." if silent else "",
        **asdict(written.of_nvme(log) if log else written.of_sata(found)),
    )


def _wear(found: Smartctl) -> int | None:
    """Used percent of the rated endurance; may exceed 100."""
    log = found.nvme_smart_health_information_log
    told = (found.endurance_used.current_percent, found.scsi_percentage_used_endurance_indicator)
    known = [*told, log.percentage_used if log else None]
    known += [written.wear_of_sata(found, _WORN_FROM_100)]
    return next((value for value in known if value is not None), None)


# ---- nvme-cli


def _by_nvme_cli(name: str, path: str, serial: str) -> DriveHealth:
    said = ask("nvme", "smart-log", "--output-format=json", path, limit_s=LIMIT_S)
    return read_nvme_cli(said, name, serial)


def read_nvme_cli(said: ToolOutput, name: str, serial: str) -> DriveHealth:
    """Raises ToolError if the output has no data about the drive."""
    if said.exit_code:
        raise ToolError(f"nvme failed for {name}: {said.err.strip() or said.out.strip()}.")
    log = decoded("nvme", said.out, NvmeLog)
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
        **asdict(written.of_nvme(log)),
    )


def _warnings(log: NvmeLog) -> Iterator[str]:
    """Bits of Critical Warning."""
    return (words for bit, words in enumerate(_WARNINGS) if log.critical_warning >> bit & 1)


# ---- media writes of NVMe drives


_refused: set[tuple[str, str]] = set()  # (device, serial) without such a page: each refusal enters their error log


def _with_media(found: DriveHealth, path: str, sys: Path) -> DriveHealth:
    """Read a vendor's log page of an NVMe drive. A drive without this page is queried only once."""
    name, key = found.device, (found.device, found.serial)
    if sysfs.transport(name, sys) != "nvme" or key in _refused or not find(("nvme",)):
        return found
    vendor = sysfs.attribute(name, "device/device/vendor", sys)
    for way in (_by_ocp, *((_by_intel,) if vendor == INTEL else ())):
        try:
            media = way(path, found)
        except ToolError:
            continue
        if media.media_written_bytes is not None:
            return replace(
                found, media_written_bytes=media.media_written_bytes, media_unit_bytes=media.media_unit_bytes
            )
    _refused.add(key)
    return found


def _by_ocp(path: str, _: DriveHealth) -> written.Written:
    return written.of_ocp(decoded("nvme ocp", _plugin(path, "ocp", "smart-add-log"), OcpLog))


def _by_intel(path: str, found: DriveHealth) -> written.Written:
    log = decoded("nvme intel", _plugin(path, "intel", "smart-log-add"), IntelLog)
    return written.of_intel(log, found.host_written_bytes)


def _plugin(path: str, *command: str) -> str:
    said = ask("nvme", *command, path, "--output-format=json", limit_s=LIMIT_S)
    if said.exit_code:
        raise ToolError(f"nvme {' '.join(command)}: {said.err.strip() or said.out.strip()}.")
    return said.out
