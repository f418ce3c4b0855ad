"""RAID controllers and host bus adapters, with what is behind them. Unknown is None or "", never a guess.

Policies are in the same words whatever tool told them:

    write cache    write back | write through | always write back (also with a bad battery)
    read-ahead     none | read ahead | adaptive
    I/O            direct | cached
    disk cache     enabled | disabled | unchanged (what each drive comes with)
"""

from typing import Annotated

from msgspec import Meta

from worker.contract.base import Count, Message, Text

Label = Annotated[str, Meta(max_length=200)]


class PhysicalDrive(Message, frozen=True, kw_only=True):
    """A drive as its controller sees it."""

    slot: Label  # enclosure:slot, port:box:bay, channel: as the tool names it
    model: Label = ""
    serial: Label = ""
    firmware: Label = ""
    state: Label = ""  # in the tool's own words
    size_bytes: Count | None = None
    medium: Label = ""  # HDD | SSD
    interface: Label = ""  # SAS | SATA | NVMe
    link_bits_per_s: Count | None = None  # of a lane as negotiated, coding included
    device: Label = ""  # kernel name, where the kernel sees the drive itself


class VirtualDrive(Message, frozen=True, kw_only=True):
    """What the controller shows to the host as one disk."""

    number: Label  # as the tool takes it
    target: Label = ""  # its SCSI target, or channel/id/lun
    wwn: Label = ""  # as block devices spell theirs
    name: Label = ""
    level: Label = ""  # RAID0 … RAID60
    strip_bytes: Count | None = None  # on one drive
    spans: Count | None = None  # of RAID 10, 50, 60: what is striped over; 1 of others
    size_bytes: Count | None = None
    state: Label = ""  # in the tool's own words
    write_cache: Label = ""  # as it is set
    write_cache_now: Label = ""  # as the controller works: a bad battery makes write through of write back
    bad_battery: Label = ""  # what it is set to do then, where that is a choice of its own: cached | not cached
    read_ahead: Label = ""
    io_policy: Label = ""
    disk_cache: Label = ""
    drives: Annotated[tuple[Label, ...], Meta(max_length=256)] = ()  # slots
    device: Label = ""  # kernel name


class Battery(Message, frozen=True, kw_only=True):
    """What keeps the cache when the power fails."""

    kind: Label = ""  # BBU | CacheVault | capacitor …, with its model
    state: Label = ""  # in the tool's own words


class Controller(Message, frozen=True, kw_only=True):
    address: Label  # PCI, "" where it could not be found out
    tool: Label  # that told of it, with its version where it tells; "sysfs" for the kernel alone
    number: Label = ""  # as the tool takes it
    vendor: Label = ""
    model: Label = ""
    serial: Label = ""
    subsystem: Label = ""  # vendor:device
    firmware: Label = ""
    bios: Label = ""
    driver: Label = ""
    driver_version: Label = ""
    state: Label = ""
    cache_bytes: Count | None = None
    battery: Battery | None = None
    virtual_drives: Annotated[tuple[VirtualDrive, ...], Meta(max_length=1024)] = ()
    physical_drives: Annotated[tuple[PhysicalDrive, ...], Meta(max_length=1024)] = ()
    problem: Text = ""  # why not more is known, in words
