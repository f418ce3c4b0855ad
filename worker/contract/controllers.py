"""RAID controllers and host bus adapters, with their drives. Unknown is None or "", never a guess.

Policies have the same values for all tools:

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
    """A physical drive, as its controller reports it."""

    slot: Label  # enclosure:slot, port:box:bay, channel: as named by the tool
    model: Label = ""
    serial: Label = ""
    firmware: Label = ""
    state: Label = ""  # as the tool writes it
    size_bytes: Count | None = None
    medium: Label = ""  # HDD | SSD
    interface: Label = ""  # SAS | SATA | NVMe
    link_bits_per_s: Count | None = None  # negotiated rate per lane, including encoding overhead
    device: Label = ""  # kernel name, if the kernel sees the drive itself


class VirtualDrive(Message, frozen=True, kw_only=True):
    """A disk that the controller presents to the host."""

    number: Label  # in the tool's syntax
    target: Label = ""  # its SCSI target, or channel/id/lun
    wwn: Label = ""  # spelled as for block devices
    name: Label = ""
    level: Label = ""  # RAID0 … RAID60
    strip_bytes: Count | None = None  # on one drive
    spans: Count | None = None  # of RAID 10, 50, 60: the number of striped sub-arrays; otherwise 1
    size_bytes: Count | None = None
    state: Label = ""  # as the tool writes it
    write_cache: Label = ""  # as configured
    write_cache_now: Label = ""  # active; with a bad battery, write back becomes write through
    bad_battery: Label = ""  # the policy with a bad battery, if the controller has one: cached | not cached
    read_ahead: Label = ""
    io_policy: Label = ""
    disk_cache: Label = ""
    drives: Annotated[tuple[Label, ...], Meta(max_length=256)] = ()  # slots
    device: Label = ""  # kernel name


class Battery(Message, frozen=True, kw_only=True):
    """The protection of the cache against power failure."""

    kind: Label = ""  # BBU | CacheVault | capacitor …, with its model
    state: Label = ""  # as the tool writes it


class Controller(Message, frozen=True, kw_only=True):
    address: Label  # PCI, "" if unknown
    tool: Label  # source of the data, with its version if known; "sysfs" for the kernel alone
    number: Label = ""  # in the tool's syntax
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
    problem: Text = ""  # why data are missing, as a sentence
