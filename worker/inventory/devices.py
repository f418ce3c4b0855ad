"""Block devices and file systems as structs of the contract: geometry, links, users."""

import os
import re
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path

from msgspec.structs import replace

from worker.contract.base import MAX_LABEL, MAX_TEXT
from worker.contract.inventory import BlockDevice, FileSystem, Geometry, Holder, Inventory
from worker.kernel import sysfs
from worker.kernel.signatures import identity, read_signatures
from worker.kernel.sysfs import SYS, attribute, text
from worker.kernel.usage import Mount, Usage
from worker.process.run import ToolError, ask

# Geometry of md arrays and device-mapper volumes.


def geometry(name: str, tables: dict[str, str], sys: Path = SYS) -> Geometry | None:
    """`tables`: device-mapper tables by volume name."""
    if sysfs.kind(name, sys) == "raid":
        return _array(name, sys)
    if sysfs.kind(name, sys) == "dm":
        return _volume(name, tables, sys)
    return None


def _array(name: str, sys: Path) -> Geometry | None:
    level = attribute(name, "md/level", sys)
    if not level:
        return None
    chunk = attribute(name, "md/chunk_size", sys)
    words = (attribute(name, f"md/{file}", sys) for file in ("array_state", "metadata_version"))
    members = attribute(name, "md/raid_disks", sys)
    return Geometry(
        level=level[:MAX_LABEL],
        members=int(members) if members.isdecimal() else len(sysfs.slaves(name, sys)),
        chunk_bytes=int(chunk) if chunk.isdecimal() and chunk != "0" else None,
        detail=", ".join(filter(None, words)),
    )


def _volume(name: str, tables: dict[str, str], sys: Path) -> Geometry:
    """The device-mapper target from the table if dmsetup works, else from the prefix of the UUID."""
    volume = attribute(name, "dm/name", sys)
    level, chunk_bytes = _of_table(tables.get(volume, ""))
    return Geometry(
        level=level or attribute(name, "dm/uuid", sys).partition("-")[0].lower() or "dm",
        members=len(sysfs.slaves(name, sys)),
        chunk_bytes=chunk_bytes,
        name=volume[:MAX_LABEL],
    )


def _of_table(table: str) -> tuple[str, int | None]:
    """Parse `0 41943040 striped 2 128 8:0 2048 8:16 2048`: target, and size of stripes (sectors of 512 bytes).

    Several rows of one kind are segments of one volume. Kernel: Documentation/admin-guide/device-mapper/striped.rst.
    """
    rows = [row.split() for row in table.splitlines()]
    targets = {row[2] for row in rows if len(row) > 2}
    if len(targets) != 1:
        return ("mixed" if targets else ""), None
    target = targets.pop()
    sizes = {row[4] for row in rows if target == "striped" and len(row) > 4 and row[4].isdecimal()}
    return target[:MAX_LABEL], int(sizes.pop()) * sysfs.SECTOR_BYTES if len(sizes) == 1 else None


def volume_tables(sys: Path = SYS) -> dict[str, str]:
    """The table of each volume from dmsetup; {} without volumes, dmsetup or permission."""
    if not any(sysfs.kind(name, sys) == "dm" for name in sysfs.names(sys)):
        return {}
    try:
        output = ask("dmsetup", "table", limit_s=2)
    except ToolError:
        return {}
    rows = (line.partition(": ") for line in output.out.splitlines()) if output.exit_code == 0 else ()
    tables: dict[str, str] = {}
    for volume, _, row in rows:
        tables[volume] = f"{tables[volume]}\n{row}" if volume in tables else row
    return tables


# The SATA or SAS link of a drive, if the kernel shows it. It does not behind a RAID controller.
#
# Kernel: ata_link's sata_spd (`6.0 Gbps`), sas_phy's negotiated_linkrate (`12.0 Gbit`); a wide port has several phys.

_RATE = re.compile(r"([0-9.]+) Gb")


def link_of(name: str, sys: Path = SYS) -> tuple[int, int] | None:
    """(raw bits per second of each lane, lanes); None if unknown."""
    parts = sysfs.node(sysfs.whole(name, sys), sys).resolve()
    if port := next((part for part in parts.parts if re.fullmatch(r"ata[0-9]+", part)), ""):
        rate = _rate(text(sys / f"class/ata_link/link{port[3:]}/sata_spd"))
        return (rate, 1) if rate else None
    return _sas(parts, sys)


def _sas(place: Path, sys: Path) -> tuple[int, int] | None:
    """The link of the port nearest to the drive."""
    port = next((each for each in (place, *place.parents) if re.fullmatch(r"port-[0-9:]+", each.name)), None)
    if port is None:
        return None
    phys = [entry.name for entry in port.glob("phy-*")]
    rates = {rate for phy in phys if (rate := _rate(text(sys / "class/sas_phy" / phy / "negotiated_linkrate")))}
    return (min(rates), len(phys)) if rates else None


def _rate(words: str) -> int:
    match = _RATE.match(words)
    return round(float(match[1]) * 1e9) if match else 0


def block_devices(usage: Usage, sys: Path = SYS, *, open_devices: bool = True) -> tuple[BlockDevice, ...]:
    """All block devices with a size; unused loop devices and empty card readers are left out."""
    tables = volume_tables(sys) if open_devices else {}
    return tuple(
        read_device(name, usage, sys, open_devices=open_devices, tables=tables)
        for name in sysfs.names(sys)
        if sysfs.size_bytes(name, sys) and sysfs.kind(name, sys) != "ram"
    )


def read_device(
    name: str, usage: Usage, sys: Path = SYS, *, open_devices: bool = True, tables: dict[str, str] | None = None
) -> BlockDevice:
    """`tables`: device-mapper tables by volume name."""
    device, (current, choices) = sysfs.read_device(name, sys), sysfs.schedulers(name, sys)
    bits_per_s, lanes = link_of(name, sys) or (None, None)
    return BlockDevice(
        name=name,
        path=device.path,
        kind=device.kind,
        major_minor=device.numbers,
        stable_id=identity(name, sys),
        parents=device.parents,
        model=device.model[:MAX_LABEL],
        serial=device.serial,
        firmware=sysfs.firmware(name, sys)[:MAX_LABEL],
        transport=sysfs.transport(name, sys),
        size_bytes=device.size_bytes,
        logical_block_bytes=sysfs.logical_block_bytes(name, sys),
        physical_block_bytes=sysfs.number(sysfs.whole(name, sys), "queue/physical_block_size", sys),
        rotational={"0": False, "1": True}.get(sysfs.attribute(sysfs.whole(name, sys), "queue/rotational", sys)),
        read_only=sysfs.attribute(name, "ro", sys) == "1",
        scheduler=current,
        schedulers=choices,
        backing_file=sysfs.backing_file(name, sys)[:MAX_LABEL],
        signature=_signature(name, sys) if open_devices else "",
        holders=holders(name, usage, sys),
        wwn=sysfs.world_wide_name(name, sys),
        controller=sysfs.controller(name, sys),
        link_bits_per_s=bits_per_s,
        link_lanes=lanes,
        write_cache=sysfs.attribute(sysfs.whole(name, sys), "queue/write_cache", sys)[:MAX_LABEL],
        minimum_io_bytes=_limit(name, "minimum_io_size", sys),
        optimal_io_bytes=_limit(name, "optimal_io_size", sys),
        geometry=geometry(name, tables or {}, sys),
    )


def _limit(name: str, file: str, sys: Path) -> int | None:
    """None for 0, which means an unknown limit."""
    return sysfs.number(sysfs.whole(name, sys), f"queue/{file}", sys) or None


def holders(name: str, usage: Usage, sys: Path = SYS) -> tuple[Holder, ...]:
    """The users of this device, without those of its partitions."""
    return (
        *(Holder(kind="mount", detail=f"{m.point} ({m.kind})") for m in usage.mounts_of(name)),
        *(Holder(kind="swap", detail="swap") for swap in usage.swaps if swap == name),
        *(Holder(kind="holder", detail=holder) for holder in sysfs.holders(name, sys)),
    )


def _signature(name: str, sys: Path) -> str:
    """Types of all signatures. Best effort: "" without root rights, or if the drive fails."""
    if sysfs.kind(name, sys) == "rom":
        return ""
    try:
        fd = os.open(sysfs.device_path(name), os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return ""
    try:
        types = dict.fromkeys(each.type for each in read_signatures(fd, sysfs.size_bytes(name, sys)))
        return ", ".join(types)[:MAX_LABEL]
    except OSError:
        return ""
    finally:
        os.close(fd)


# Mounted file systems on block devices, each once, even if mounted several times.


def file_systems(usage: Usage, sys: Path = SYS) -> tuple[FileSystem, ...]:
    groups: dict[tuple[str, ...], list[Mount]] = {}
    devices: dict[str, list[str]] = {}
    for name, mount in usage.mounts:
        devices.setdefault(mount.major_minor, []).append(name)
    for _, mount in usage.mounts:
        key = (mount.kind, *sorted(set(devices[mount.major_minor])))
        groups.setdefault(key, []).append(mount)
    return tuple(_file_system(key[0], key[1:], mounts, sys) for key, mounts in sorted(groups.items()))


def _file_system(kind: str, devices: tuple[str, ...], mounts: list[Mount], sys: Path) -> FileSystem:
    return FileSystem(
        kind=kind[:MAX_LABEL],
        devices=devices,
        points=tuple(dict.fromkeys(mount.point[:MAX_TEXT] for mount in mounts)),
        options=mounts[0].options[:MAX_TEXT],
        detail=", ".join(map(" ".join, btrfs_profiles(devices, sys).items())) if kind == "btrfs" else "",
    )


def btrfs_profiles(devices: tuple[str, ...], sys: Path = SYS) -> dict[str, str]:
    """Allocated profiles of data and metadata: {"data": "raid0", "metadata": "raid1"}."""
    for group in sorted((sys / "fs/btrfs").glob("*-*")):
        if set(devices) & {entry.name for entry in (group / "devices").glob("*")}:
            kinds = ((kind, group / "allocation" / kind) for kind in ("data", "metadata"))
            return {kind: _profiles(at) for kind, at in kinds if _profiles(at)}
    return {}


def _profiles(at: Path) -> str:
    return "/".join(sorted(entry.name for entry in at.glob("*") if text(entry / "total_bytes") not in ("", "0")))


# Leave out the loop devices of other programs, for example of snaps. They come and go, and no target uses them.


def without_foreign_loops(inventory: Inventory, targets: Collection[str]) -> Inventory:
    """The inventory without loop devices, their partitions and file systems that nothing else in it lies on.

    `targets`: kernel names of the devices under the policy's targets.
    """
    devices = {device.name: device for device in inventory.block_devices}
    disks = {name: _disk(device) for name, device in devices.items()}
    loops = {name: disk for name, disk in disks.items() if disk in devices and devices[disk].kind == "loop"}
    several = {name for each in inventory.file_systems if len(each.devices) > 1 for name in each.devices}
    needed = set(_below({*targets, *several, *(devices.keys() - loops.keys())}, devices))
    foreign = {name for name, disk in loops.items() if disk not in needed}
    return replace(
        inventory,
        block_devices=tuple(device for device in inventory.block_devices if device.name not in foreign),
        file_systems=tuple(each for each in inventory.file_systems if not foreign.issuperset(each.devices)),
    )


def _disk(device: BlockDevice) -> str:
    """Kernel name of the whole device."""
    return device.parents[0] if device.kind == "partition" and device.parents else device.name


def _below(names: Collection[str], devices: Mapping[str, BlockDevice]) -> Iterator[str]:
    """These devices and all below them, each once."""
    seen, waiting = set[str](), list(names)
    while waiting:
        name = waiting.pop()
        if name not in seen:
            seen.add(name)
            waiting += devices[name].parents if name in devices else ()
            yield name
