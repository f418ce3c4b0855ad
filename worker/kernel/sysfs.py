"""Block devices in sysfs. No function opens a device.

Every function has a parameter for the root of sysfs, for recorded trees. Devices have the kernel
names that sysfs uses (`nvme0n1`, `cciss!c0d0`).
"""

import hashlib
import os
import re
import stat
from collections.abc import Callable, Iterable
from pathlib import Path

import msgspec

# Stable ids of drives and targets: names that stay the same when a device gets another kernel name.

MAX_ID = 100  # the contract's limit, in characters
UNSTABLE_PREFIX = "name:"  # the rest is a kernel name, which may be another disk after a reboot
PART = "-part"  # between the id of a disk and the rest of the identity of its partition
_HASHED = MAX_ID - 17  # characters of an id that stay before its hash


def is_stable(identity: str) -> bool:
    return not identity.startswith(UNSTABLE_PREFIX)


def shortened(identity: str) -> str:
    """Fit an id into the contract's limit; a longer id ends in a hash of the whole."""
    if len(identity) <= MAX_ID:
        return identity
    return f"{identity[:_HASHED]}~{hashlib.sha256(identity.encode()).hexdigest()[:16]}"


def is_shortened(identity: str) -> bool:
    return len(identity) == MAX_ID and identity[_HASHED] == "~"


def is_part_of(identity: str, disk: str) -> bool:
    """Whether an identity may be that of a partition of this disk. `disk`: its stable id before it is shortened.

    Of an identity that was shortened, only the start can be compared.
    """
    start = f"{disk}{PART}"
    return identity.startswith(start[:_HASHED] if is_shortened(identity) else start)


SYS = Path("/sys")
SECTOR_BYTES = 512  # unit of `size` in sysfs, independent of the device's block size

_NAME = re.compile(r"^[A-Za-z0-9!_.:-]{1,64}\Z")
PCI_ADDRESS = re.compile(r"^[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]\Z")
_TRANSPORTS = (
    ("/nvme", "nvme"), ("/virtio", "virtio"), ("/usb", "usb"), ("/ata", "sata"), ("/end_device-", "sas"),
    ("/rport-", "fc"), ("/session", "iscsi"), ("/mmc_host", "mmc"), ("/vbd-", "xen"),
)  # fmt: skip


class Device(msgspec.Struct, frozen=True, kw_only=True):
    """Which block device it is, how large, and what is below it, at one moment."""

    name: str
    numbers: str  # major:minor
    kind: str
    stable_id: str
    serial: str
    model: str
    size_bytes: int
    start: int | None  # of a partition on its disk, in sectors
    parents: tuple[str, ...]  # kernel names of the devices directly below

    @property
    def path(self) -> str:
        return device_path(self.name)


def read_device(name: str, sys: Path = SYS) -> Device:
    return Device(
        name=name,
        numbers=major_minor(name, sys),
        kind=kind(name, sys),
        stable_id=stable_id(name, sys),
        serial=serial(name, sys),
        model=model(name, sys),
        size_bytes=size_bytes(name, sys),
        start=number(name, "start", sys),
        parents=parents(name, sys),
    )


def find(identity: str, hint: str, sys: Path = SYS) -> str | None:
    """The kernel name that the device with this stable id has now. `hint`: an earlier one. None if it is absent."""
    return next((name for name in (hint, *names(sys)) if exists(name, sys) and stable_id(name, sys) == identity), None)


def find_drive(identity: str, serial_number: str, hint: str) -> Device | None:
    """Like `find`; also None for a device with another serial number."""
    name = find(identity, hint)
    device = read_device(name) if name else None
    return device if device and device.serial == serial_number else None


def node(name: str, sys: Path = SYS) -> Path:
    """The device's directory in sysfs, as a link."""
    if not _NAME.match(name) or name in (".", ".."):
        raise ValueError(f"{name!r} is not a kernel name of a block device")
    return sys / "class/block" / name


def names(sys: Path = SYS) -> tuple[str, ...]:
    """All block devices and partitions. With NVMe multipath, the drive is one device: its paths (`nvme0c1n1`) are
    hidden and have no device node."""
    try:
        entries = tuple((sys / "class/block").iterdir())
    except OSError:
        return ()
    return tuple(sorted(entry.name for entry in entries if text(entry / "hidden") != "1"))


def exists(name: str, sys: Path = SYS) -> bool:
    return bool(name) and node(name, sys).exists()


def text(path: Path) -> str:
    """The content of a one-line file, "" if it is missing or unreadable."""
    try:
        return path.read_text(errors="replace").strip().strip("\x00").strip()
    except OSError:
        return ""


def attribute(name: str, path: str, sys: Path = SYS) -> str:
    return text(node(name, sys) / path)


def number(name: str, path: str, sys: Path = SYS) -> int | None:
    digits = attribute(name, path, sys)
    return int(digits) if digits.isdecimal() else None


def major_minor(name: str, sys: Path = SYS) -> str:
    return attribute(name, "dev", sys)


def name_of(numbers: str, sys: Path = SYS) -> str:
    """The kernel name for `major:minor`, "" if there is no such block device."""
    try:
        return (sys / "dev/block" / numbers).resolve(strict=True).name if numbers else ""
    except OSError:
        return ""


def numbers_of(device: int) -> str:
    """`major:minor` of a device number (`st_rdev`, or `st_dev` of a file), for `name_of`."""
    return f"{os.major(device)}:{os.minor(device)}"


def block_numbers(facts: os.stat_result) -> str:
    """`major:minor` of a block device's node; "" for any other file."""
    return numbers_of(facts.st_rdev) if stat.S_ISBLK(facts.st_mode) else ""


def device_at(path: str, sys: Path = SYS) -> str:
    """The block device whose node is at the path; "" if there is none."""
    try:
        return name_of(block_numbers(Path(path).stat()), sys)
    except OSError:
        return ""


def device_under(path: str, sys: Path = SYS) -> str:
    """The block device at the path, or the one with the file system of that file; "" if unknown."""
    try:
        facts = Path(path).stat()
    except OSError:
        return ""
    return name_of(block_numbers(facts) or numbers_of(facts.st_dev), sys)


def device_path(name: str) -> str:
    return "/dev/" + name.replace("!", "/")


def name_in(path: str) -> str:
    """The kernel name in the path of a device's node, also if the device is absent: the opposite of `device_path`."""
    return path.removeprefix("/dev/").replace("/", "!")


def is_partition(name: str, sys: Path = SYS) -> bool:
    return (node(name, sys) / "partition").exists()


def whole(name: str, sys: Path = SYS) -> str:
    """The disk of a partition; the name itself for other devices."""
    return node(name, sys).resolve().parent.name if is_partition(name, sys) else name


def partitions(name: str, sys: Path = SYS) -> tuple[str, ...]:
    return tuple(entry for entry in _list(node(name, sys)) if (node(name, sys) / entry / "partition").exists())


def slaves(name: str, sys: Path = SYS) -> tuple[str, ...]:
    """The members of a combined device (dm, md)."""
    return _list(node(name, sys) / "slaves")


def holders(name: str, sys: Path = SYS) -> tuple[str, ...]:
    """Devices built directly on this one."""
    return _list(node(name, sys) / "holders")


def parents(name: str, sys: Path = SYS) -> tuple[str, ...]:
    """The devices directly below this one."""
    disk = whole(name, sys)
    return (disk,) if disk != name else slaves(name, sys)


def below(name: str, sys: Path = SYS) -> tuple[str, ...]:
    """All devices below this one, down to the disks, without itself."""
    return _closure(name, lambda each: parents(each, sys))


def drives_under(devices: Iterable[str], sys: Path = SYS) -> tuple[str, ...]:
    """Kernel names of the drives under these devices, including devices that are drives."""
    layers = (each for name in devices if exists(name, sys) for each in (name, *below(name, sys)))
    return tuple(each for each in dict.fromkeys(layers) if not parents(each, sys))


def above(name: str, sys: Path = SYS) -> tuple[str, ...]:
    """All devices above this one: its partitions, devices built on them, and so on, without itself."""
    return _closure(name, lambda each: (*partitions(each, sys), *holders(each, sys)))


def _closure(name: str, step: Callable[[str], tuple[str, ...]]) -> tuple[str, ...]:
    seen: dict[str, None] = {}
    todo = list(step(name))
    while todo:
        next_name = todo.pop(0)
        if next_name not in seen and next_name != name:
            seen[next_name] = None
            todo += step(next_name)
    return tuple(seen)


def _list(directory: Path) -> tuple[str, ...]:
    try:
        return tuple(sorted(entry.name for entry in directory.iterdir()))
    except OSError:
        return ()


def size_bytes(name: str, sys: Path = SYS) -> int:
    return (number(name, "size", sys) or 0) * SECTOR_BYTES


def extent(name: str, sys: Path = SYS) -> tuple[int | None, int | None]:
    """Start on its disk and size of a partition, in sectors of `SECTOR_BYTES`. Other devices have no start."""
    return number(name, "start", sys), number(name, "size", sys)


def logical_block_bytes(name: str, sys: Path = SYS) -> int | None:
    """The smallest unit of direct I/O. The kernel shows it for the whole device only."""
    return number(whole(name, sys), "queue/logical_block_size", sys)


def kind(name: str, sys: Path = SYS) -> str:
    """disk | partition | loop | dm | raid | zram | rom."""
    at = node(name, sys)
    if is_partition(name, sys):
        return "partition"
    for folder, word in (("loop", "loop"), ("dm", "dm"), ("md", "raid")):
        if (at / folder).is_dir():
            return word
    prefix = re.match(r"[a-z]*", name)
    return {"loop": "loop", "zram": "zram", "sr": "rom", "ram": "ram"}.get(prefix.group() if prefix else "", "disk")


def transport(name: str, sys: Path = SYS) -> str:
    disk = whole(name, sys)
    if kind(disk, sys) != "disk":
        return kind(disk, sys)
    if over := attribute(disk, "device/transport", sys):
        return "nvme" if over == "pcie" else f"nvme-{over}"
    place = str(node(disk, sys).resolve())
    word_of_path = next((word for part, word in _TRANSPORTS if part in place), "")
    return word_of_path or _raid_transport(disk, sys)


def _raid_transport(disk: str, sys: Path) -> str:
    """For virtual drives of RAID controllers: the class of the PCI function in front of a SCSI disk."""
    address = _pci_address(disk, sys)
    subclass = text(sys / "bus/pci/devices" / address / "class")[:6] if address else ""
    return {"0x0104": "raid", "0x0107": "sas", "0x0100": "scsi"}.get(subclass, "")


def nvme_generic_name(name: str) -> str:
    """nvme0n1 ─► ng0n1; "" for other drives and for partitions."""
    return f"ng{name[4:]}" if re.fullmatch("nvme[0-9]+n[0-9]+", name) else ""


def nvme_generic(name: str, sys: Path = SYS) -> str:
    """Kernel name of the character device that passes commands to the namespace of this drive; "" if there is none.

    Linux, drivers/nvme/host/core.c and multipath.c: both are named for the same controller or subsystem, which is their
    parent, and the same namespace.
    """
    generic = nvme_generic_name(name)
    at = sys / "class/nvme-generic" / generic
    if not generic or not (at / "dev").is_file():
        return ""
    same = (at / "device").resolve() == (node(name, sys) / "device").resolve()
    return generic if same else ""


# Attributes of the queue that affect I/O, without counters and fixed limits of the hardware.
QUEUE_FACTS = (
    "read_ahead_kb", "nr_requests", "rq_affinity", "nomerges", "wbt_lat_usec", "max_sectors_kb", "max_hw_sectors_kb",
    "write_cache", "rotational", "io_poll", "iostats", "add_random", "logical_block_size", "physical_block_size",
    "minimum_io_size", "optimal_io_size", "zoned", "fua",
)  # fmt: skip


def schedulers(name: str, sys: Path = SYS) -> tuple[str, tuple[str, ...]]:
    """The active I/O scheduler of the disk, and all that it can have."""
    return parse_choice(attribute(whole(name, sys), "queue/scheduler", sys))


def parse_choice(line: str) -> tuple[str, tuple[str, ...]]:
    """Parse `none [mq-deadline] kyber`: the active one, and all."""
    words = line.split()
    current = next((word.strip("[]") for word in words if word.startswith("[")), words[0] if len(words) == 1 else "")
    return current, tuple(word.strip("[]") for word in words)


def active_choice(line: str) -> str:
    """The active one of `none [mq-deadline] kyber`."""
    return parse_choice(line)[0]


def model(name: str, sys: Path = SYS) -> str:
    disk = whole(name, sys)
    vendor, product = attribute(disk, "device/vendor", sys), attribute(disk, "device/model", sys)
    if not product:
        return attribute(disk, "device/name", sys) if transport(disk, sys) == "mmc" else ""
    return product if not vendor or vendor == "ATA" or vendor.startswith("0x") else f"{vendor} {product}"


def serial(name: str, sys: Path = SYS) -> str:
    """The drive's serial number, "" if it has none. A partition has the serial of its disk."""
    disk = whole(name, sys)
    for path in ("device/serial", "serial"):
        if digits := attribute(disk, path, sys):
            return digits[:MAX_ID]
    try:
        page = (node(disk, sys) / "device/vpd_pg80").read_bytes()  # SCSI "unit serial number": header of 4 bytes
    except OSError:
        return ""
    return page[4 : 4 + page[3]].decode("ascii", "replace").strip("\x00 ")[:MAX_ID] if len(page) > 4 else ""


def firmware(name: str, sys: Path = SYS) -> str:
    disk = whole(name, sys)
    return attribute(disk, "device/firmware_rev", sys) or attribute(disk, "device/rev", sys)


def controller(name: str, sys: Path = SYS) -> str:
    """PCI address of the function in front of the device, "" if there is none or more than one."""
    leaves = [each for each in (name, *below(name, sys)) if not parents(each, sys)]
    addresses = {_pci_address(leaf, sys) for leaf in leaves}
    return addresses.pop() if len(addresses) == 1 else ""


def ways(name: str, sys: Path = SYS) -> list[Path]:
    """Paths from the root to the device; one per controller for NVMe with multipath."""
    at = node(whole(name, sys), sys).resolve()
    return [at] if "nvme-subsystem" not in at.parts else [way.resolve() for way in at.parent.glob("nvme[0-9]*")]


def _pci_address(disk: str, sys: Path) -> str:
    """The last PCI address in the device's path."""
    addresses = {next((part for part in reversed(way.parts) if PCI_ADDRESS.match(part)), "") for way in ways(disk, sys)}
    return addresses.pop() if len(addresses) == 1 else ""


def backing_file(name: str, sys: Path = SYS) -> str:
    """The file of a loop device, "" if it is unused or not a loop device."""
    return attribute(whole(name, sys), "loop/backing_file", sys)


def backing_range(name: str, sys: Path = SYS) -> tuple[int, int]:
    """The first byte of a loop device's file that it uses, and the first after it."""
    disk = whole(name, sys)
    start = number(disk, "loop/offset", sys) or 0
    return start, start + (number(disk, "size", sys) or 0) * SECTOR_BYTES


def stable_id(name: str, sys: Path = SYS) -> str:
    """A name that stays the same for the device, spelled as in /dev/disk/by-id if possible.

    The first of these: world-wide name; UUID of dm or md; file of a loop device;
    transport, model and serial; `name:<kernel name>`, which is not stable. A partition has that of its disk with its
    number: this names a place, and `identity.identity` tells which partition is there.
    """
    return shortened(unshortened_id(name, sys))


def unshortened_id(name: str, sys: Path = SYS) -> str:
    disk = whole(name, sys)
    disk_id = _world_wide(disk, sys) or _assembled(disk, sys) or _loop(disk, sys) or _by_serial(disk, sys)
    if not disk_id:
        return f"{UNSTABLE_PREFIX}{name}"
    return disk_id if disk == name else f"{disk_id}{PART}{attribute(name, 'partition', sys)}"


def world_wide_name(name: str, sys: Path = SYS) -> str:
    """The world-wide name of the disk, "" if it has none."""
    return _world_wide(whole(name, sys), sys)


def wwid(disk: str, sys: Path = SYS) -> str:
    """The identification of a disk in the kernel's spelling (naa., eui., t10. …), "" if it has none."""
    return attribute(disk, "wwid", sys) or attribute(disk, "device/wwid", sys)


def _world_wide(disk: str, sys: Path) -> str:
    spelled = wwid(disk, sys)
    if spelled.startswith(("eui.", "uuid.")):
        return f"nvme-{spelled}"
    if spelled.startswith("naa."):
        return f"wwn-0x{spelled[4:].lower()}"
    return ""


def _assembled(disk: str, sys: Path) -> str:
    if uuid := attribute(disk, "dm/uuid", sys):
        return f"dm-uuid-{uuid}"
    if uuid := attribute(disk, "md/uuid", sys):
        digits = uuid.replace("-", "")  # the kernel writes 8-4-4-4-12, mdadm and udev 8:8:8:8
        return f"md-uuid-{':'.join(digits[at : at + 8] for at in range(0, len(digits), 8))}"
    return ""


def _loop(disk: str, sys: Path) -> str:
    file, offset = backing_file(disk, sys), attribute(disk, "loop/offset", sys)
    if not file:
        return ""
    return f"loop:{file}" if offset in ("", "0") else f"loop:{file}@{offset}"


def _by_serial(disk: str, sys: Path) -> str:
    serial_number = serial(disk, sys)
    if not serial_number:
        return ""
    words = "_".join(filter(None, (model(disk, sys), serial_number)))
    namespace = attribute(disk, "nsid", sys)
    return re.sub(r"\s+", "_", f"{transport(disk, sys) or 'disk'}-{words}" + (f"_{namespace}" if namespace else ""))
