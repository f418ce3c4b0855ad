"""Structs for the JSON output of smartctl and nvme-cli. Other keys are ignored.

smartctl 7 (`--json`). Both tools print NVMe's SMART log, with different names. nvme-cli 2.x writes large counters as
text.
"""

from typing import TypeVar

import msgspec

from worker.process import ToolError

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
