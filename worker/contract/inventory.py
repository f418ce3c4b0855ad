"""Facts about a host, its controllers and purge methods, as found by its worker. Unknown is None or "": no guesses."""

from enum import StrEnum
from typing import Annotated

from msgspec import Meta

from worker.contract.base import Count, Id, Message, Name, Path, SmallCount, TargetKind, Text

# RAID controllers and host bus adapters, with their drives. Unknown is None or "", never a guess.
#
# Policies have the same values for all tools:
#
#     write cache    write back | write through | always write back (also with a bad battery)
#     read-ahead     none | read ahead | adaptive
#     I/O            direct | cached
#     disk cache     enabled | disabled | unchanged (what each drive comes with)

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


# Purging: return a drive to a state without data, before preconditioning or reuse.


class PurgeMethod(StrEnum):
    DISCARD = "discard"  # BLKDISCARD over the whole device, as blkdiscard(8)
    NVME_FORMAT = "nvme_format"  # NVMe Format NVM, user data erase, with the current LBA format
    NVME_FORMAT_CRYPTO = "nvme_format_crypto"  # the same, cryptographic erase
    NVME_SANITIZE_BLOCK = "nvme_sanitize_block"  # NVMe Sanitize, block erase: all namespaces of the drive
    NVME_SANITIZE_CRYPTO = "nvme_sanitize_crypto"
    ATA_SECURE_ERASE = "ata_secure_erase"  # SECURITY ERASE UNIT
    ATA_ENHANCED_ERASE = "ata_enhanced_erase"
    SCSI_FORMAT = "scsi_format"  # FORMAT UNIT, as sg_format(8)


# Executed in pieces by the worker. All others continue inside the drive, even if the worker dies.
STOPPABLE = frozenset({PurgeMethod.DISCARD})


class PurgeOffer(Message, frozen=True, kw_only=True):
    """A method for drives of this kind. `problem` is why this drive cannot be purged with it now, "" if it can."""

    method: PurgeMethod
    problem: Text = ""


# Counts of parts: far above those of a large host. The server bounds what it does with them by walking each part once.
Few = Meta(max_length=256)
Many = Meta(max_length=4096)


class Cpu(Message, frozen=True, kw_only=True):
    model: Label
    sockets: SmallCount
    cores: SmallCount
    threads: SmallCount
    governor: Label = ""
    energy_preference: Label = ""
    smt: bool | None = None  # simultaneous multithreading is switched on
    mitigations: Annotated[dict[Label, Label], Few] = {}  # vulnerability -> the kernel's mitigation


class NumaNode(Message, frozen=True, kw_only=True):
    number: SmallCount
    cpus: Label  # a list as the kernel writes it: 0-7,16-23
    memory_bytes: Count


class MemoryModule(Message, frozen=True, kw_only=True):
    """A filled memory slot, from the firmware's tables (SMBIOS type 17)."""

    slot: Label
    bank: Label = ""
    size_bytes: Count
    kind: Label = ""  # DDR4 …
    data_bits: SmallCount | None = None  # channel width without error correction
    transfers_per_s: Count | None = None  # configured rate, else the module's rated one


class PcieLink(Message, frozen=True, kw_only=True):
    """The link from a function to the one above it; for a `downstream` function, to the one below."""

    transfers_per_s: Count | None = None  # of each lane, now
    lanes: SmallCount | None = None
    max_transfers_per_s: Count | None = None  # of this function
    max_lanes: SmallCount | None = None
    degraded: bool | None = None  # slower or narrower than both ends support
    payload_bytes: SmallCount | None = None  # configured maximum payload of a packet; needs root
    max_payload_bytes: SmallCount | None = None


class PciFunction(Message, frozen=True, kw_only=True):
    """A storage controller, an NVMe drive, or a bridge on the path to one."""

    address: Label  # 0000:01:00.0
    parent: Label = ""  # address of the bridge above it, "" at the root complex
    kind: Label  # nvme | raid | sas | sata | scsi | ide | storage | bridge | other
    vendor_id: Label
    device_id: Label
    subsystem: Label = ""  # vendor:device
    model: Label = ""  # if the host has pci.ids, or from the driver
    firmware: Label = ""
    driver: Label = ""
    driver_version: Label = ""
    numa_node: SmallCount | None = None
    interrupts: Annotated[tuple[SmallCount, ...], Many] = ()
    link: PcieLink | None = None  # None if it is not PCI Express
    downstream: bool = False  # a root port, or a switch's port towards a drive: the upper end of its link


class Geometry(Message, frozen=True, kw_only=True):
    """The structure of an assembled device (md, dm)."""

    level: Label  # raid0 … raid10, linear, striped, crypt …
    members: SmallCount
    chunk_bytes: Count | None = None
    name: Label = ""  # of the array or logical volume
    detail: Text = ""  # state, metadata version


class FileSystem(Message, frozen=True, kw_only=True):
    """A mounted file system on block devices of this host."""

    kind: Label
    devices: Annotated[tuple[Label, ...], Few]  # kernel names; several for btrfs
    points: Annotated[tuple[Text, ...], Many]
    options: Text  # of the first mount and of the file system
    detail: Text = ""  # btrfs: profiles of data and metadata


class Kernel(Message, frozen=True, kw_only=True):
    release: Label
    command_line: Text
    boot_id: Label


class Holder(Message, frozen=True, kw_only=True):
    """A use of a block device: a mount, swap, or a device on top of it."""

    kind: Label  # mount | swap | holder | open
    detail: Text


class BlockDevice(Message, frozen=True, kw_only=True):
    name: Label  # kernel name, e.g. nvme0n1
    path: Path  # e.g. /dev/nvme0n1
    kind: Label  # disk | partition | loop | raid | dm …
    major_minor: Label
    stable_id: Name
    parents: Annotated[tuple[Label, ...], Few] = ()  # kernel names of the devices below it
    model: Label = ""
    serial: Label = ""
    firmware: Label = ""
    transport: Label = ""  # nvme | sas | sata | virtio | loop …
    size_bytes: Count = 0
    logical_block_bytes: SmallCount | None = None
    physical_block_bytes: SmallCount | None = None
    rotational: bool | None = None
    read_only: bool = False
    scheduler: Label = ""
    schedulers: Annotated[tuple[Label, ...], Few] = ()
    backing_file: Label = ""  # loop devices
    signature: Label = ""  # file system or partition table found on it
    holders: Annotated[tuple[Holder, ...], Many] = ()
    wwn: Label = ""  # world-wide name, spelled as in /dev/disk/by-id
    controller: Label = ""  # PCI address of its controller
    link_bits_per_s: Count | None = None  # per lane of its SATA or SAS link, including encoding overhead
    link_lanes: SmallCount | None = None
    write_cache: Label = ""  # write back | write through, as seen by the kernel
    minimum_io_bytes: SmallCount | None = None
    optimal_io_bytes: SmallCount | None = None  # of an array: the full stripe
    geometry: Geometry | None = None


class Inventory(Message, frozen=True, kw_only=True):
    hostname: Label
    distribution: Label
    hypervisor: Label
    cpu: Cpu
    memory_bytes: Count
    kernel: Kernel
    block_devices: Annotated[tuple[BlockDevice, ...], Many]
    numa_nodes: Annotated[tuple[NumaNode, ...], Many] = ()
    memory_modules: Annotated[tuple[MemoryModule, ...], Few] = ()  # () if the firmware's tables cannot be read
    pci: Annotated[tuple[PciFunction, ...], Many] = ()
    file_systems: Annotated[tuple[FileSystem, ...], Many] = ()
    controllers: Annotated[tuple[Controller, ...], Few] = ()  # RAID controllers and host bus adapters


class DriveHealth(Message, frozen=True, kw_only=True):
    """The last reading of a drive's health. It changes by itself, so it is not part of the inventory."""

    device: Label  # kernel name
    serial: Label
    tool: Label = ""  # the tool, with its version if known; "" if no tool worked
    healthy: bool | None = None  # the drive's own verdict
    temperature_c: Annotated[int, Meta(ge=-300, le=10_000)] | None = None
    percent_used: SmallCount | None = None  # of its rated endurance; may exceed 100
    host_written_bytes: Count | None = None  # None: not reported, or in an unknown unit
    host_unit_bytes: Count | None = None  # bytes per count
    media_written_bytes: Count | None = None
    media_unit_bytes: Count | None = None
    host_pages: Count | None = None  # pages programmed for hosts' data; the page size is unknown
    media_pages: Count | None = None  # all programmed pages
    power_on_hours: Count | None = None
    media_errors: Count | None = None
    warnings: Annotated[tuple[Text, ...], Few] = ()
    problem: Text = ""  # why it could not be read, or reported nothing


QUARANTINED = "Quarantined: "  # start of `PolicyTarget.problem` while a program on the drive cannot be killed
MEMORY_FILE_SYSTEMS = ("tmpfs", "ramfs", "hugetlbfs")
MAX_WARNINGS = 20


class PolicyTarget(Message, frozen=True, kw_only=True):
    """An entry of the host's policy file, as read by the worker."""

    id: Id  # short name given in the policy file
    kind: TargetKind
    path: Path  # of a pool: /dev
    stable_id: Name  # of a pool: changes with its drives
    serial: Annotated[str, Meta(max_length=100)] = ""
    destroy: bool = False  # an empty block device, or the content of a file, may be overwritten
    # Block: signatures that may be overwritten too: TYPE or PTTYPE of blkid(8), such as ext4 and gpt.
    destroy_signatures: Annotated[tuple[Label, ...], Few] = ()
    settings: Annotated[tuple[Label, ...], Few] = ()  # names of settings that may be changed
    max_write_bytes: Count | None = None  # maximum that one run may write to each drive under it; None: no limit
    present: bool = False  # it exists now and matches the policy
    problem: Text = ""  # why not, as a sentence
    size_bytes: Count = 0  # of the device; of a directory, the space that test files may take
    # Of a directory: the same for directories on one file system, and the part of `size_bytes` that its files take now.
    file_system: Label = ""
    test_file_bytes: Count = 0
    logical_block_bytes: SmallCount = 0  # of the device, or the largest one of a pool; 0: unknown
    device: Label = ""  # kernel name of the block device that it is or is on, "" if none
    purges: Annotated[tuple[PurgeOffer, ...], Meta(max_length=20)] = ()  # of a drive that may be overwritten
    # Block: the device node to which the path leads now; fio gets it. Slot: /<tool>/<controller>/<slot>.
    opens: Path | None = None
    model: Label = ""
    firmware: Label = ""
    drives: Annotated[tuple[Id, ...], Meta(max_length=64)] = ()  # pool: ids of its drives, targets of the same policy
    warnings: Annotated[
        tuple[Text, ...], Meta(max_length=MAX_WARNINGS)
    ] = ()  # why reads may not come from a drive, or a trial is refused


class EngineOffer(Message, frozen=True, kw_only=True):
    """An engine that works on this host."""

    version: Label  # as reported by its program
    features: Annotated[tuple[Label, ...], Few]  # features that workloads may use: `Workload.features`


class Capabilities(Message, frozen=True, kw_only=True):
    """What this host can run; the server offers nothing else."""

    engines: Annotated[dict[Name, EngineOffer], Few]  # by name; an engine that does not work here is left out
    # Names of settings that this worker knows; of host-wide ones, only those that exist.
    settings: Annotated[tuple[Label, ...], Few]
    as_root: bool
    # Parts of layouts that can be built: md, vd, lvm, share, and file systems.
    layouts: Annotated[tuple[Label, ...], Few] = ()
    isolation: Label  # how fio's processes are controlled: cgroup2 | cgroup1 | process tree
