"""A drive's counters of data written by hosts and to its media, each with the unit of one count.

Only documented counters are used; for other drives, the amounts are unknown. Not tested on real hardware, except for
the counters of QEMU's NVMe drive.

    NVMe    Data Units Written: 1,000 x 512 bytes, rounded up (NVM Express Base Specification 1.4, 5.14.1.2).
            Media: Physical Media Units Written in bytes (OCP Datacenter NVMe SSD Specification 2.0, 4.8.6, SMART-1);
            for Intel drives NAND Bytes Written in 32 MiB (log page CAh), used if the same page's count of host bytes
            agrees with NVMe's counter.
    SATA    Logical Sectors Written of the device statistics (ACS-4, 9.5.4), else the attribute whose name in
            smartmontools' drive database includes its unit. For drives that are not in the database, smartctl uses
            names of other drives, so these attributes are ignored.
    Micron  Pages programmed for hosts (247) and by the drive itself (248): their size is unknown, but their ratio is
            write amplification (Micron TN-FD-23, "Calculating Write Amplification Factor").

SAS drives have no standard counters (SPC-4), and virtual drives of a RAID controller have none.
"""

from collections.abc import Mapping

import msgspec

from worker.inventory.answers import IntelLog, NvmeLog, OcpLog, Smartctl

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


def of_nvme(log: NvmeLog) -> Written:
    if log.data_units_written is None:
        return Written()
    return Written(host_written_bytes=log.data_units_written * DATA_UNIT_BYTES, host_unit_bytes=DATA_UNIT_BYTES)


def of_ocp(log: OcpLog) -> Written:
    """None for 0, because such a drive does not count."""
    count = (log.written.hi << 64) + log.written.lo if log.written else 0
    return Written(media_written_bytes=count, media_unit_bytes=1) if 0 < count < 2**63 else Written()


def of_intel(log: IntelLog, host_bytes: int | None) -> Written:
    """`host_bytes`: from the drive's SMART log."""
    media, host = log.stats.nand_bytes_written.raw, log.stats.host_bytes_written.raw
    if not media or media < 0 or host is None or host_bytes is None:
        return Written()
    if abs(host * _INTEL_UNIT - host_bytes) > max(_AGREE_UNITS * _INTEL_UNIT, _AGREE_SHARE * host_bytes):
        return Written()
    return Written(media_written_bytes=media * _INTEL_UNIT, media_unit_bytes=_INTEL_UNIT)


def of_sata(found: Smartctl) -> Written:
    raw = _believed(found)
    sectors = statistic(found, _GENERAL_PAGE, _SECTORS_WRITTEN)
    units = _HOST | dict.fromkeys(_SECTORS, found.logical_block_size)
    host, unit = (sectors, found.logical_block_size) if sectors is not None else _first(raw, units)
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


def wear_of_sata(found: Smartctl, worn_from_100: tuple[str, ...]) -> int | None:
    """Used percent of the rated endurance, from the device statistics, else from an attribute that counts down."""
    told = statistic(found, _SSD_PAGE, _ENDURANCE_USED)
    left = (
        a.value for a in found.ata_smart_attributes.table if a.name in worn_from_100 and _is_believed(found, a.name)
    )
    return told if told is not None else next((max(0, 100 - value) for value in left), None)


def statistic(found: Smartctl, page: int, offset: int) -> int | None:
    """A value of ATA device statistics that the drive marks as valid."""
    rows = (row for each in found.ata_device_statistics.pages if each.number == page for row in each.table)
    valid = (row.value for row in rows if row.offset == offset and row.flags.valid and (row.value or 0) >= 0)
    return next(valid, None)


def _believed(found: Smartctl) -> dict[str, int]:
    table = found.ata_smart_attributes.table
    return {a.name: a.raw.value for a in table if a.raw.value is not None and _is_believed(found, a.name)}


def _is_believed(found: Smartctl, name: str) -> bool:
    makers = _BY_DEFAULT.get(name)
    return found.in_smartctl_database and (makers is None or found.model_family.startswith(makers))


def _first(raw: Mapping[str, int], units: Mapping[str, int]) -> tuple[int | None, int]:
    return next(((raw[name], unit) for name, unit in units.items() if name in raw), (None, 0))
