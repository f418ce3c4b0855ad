"""Convert block devices to the contract's structs."""

import os
from pathlib import Path

from worker.contract.inventory import BlockDevice, Holder
from worker.inventory import sysfs
from worker.inventory.drive_links import link_of
from worker.inventory.geometry import geometry, volume_tables
from worker.inventory.identity import identity
from worker.inventory.signatures import read_signatures
from worker.inventory.sysfs import SYS
from worker.inventory.usage import Usage
from worker.text_limits import MAX_LABEL


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
    current, choices = schedulers(name, sys)
    bits_per_s, lanes = link_of(name, sys) or (None, None)
    return BlockDevice(
        name=name,
        path=sysfs.device_path(name),
        kind=sysfs.kind(name, sys),
        major_minor=sysfs.major_minor(name, sys),
        stable_id=identity(name, sys),
        parents=sysfs.parents(name, sys),
        model=sysfs.model(name, sys)[:MAX_LABEL],
        serial=sysfs.serial(name, sys),
        firmware=sysfs.firmware(name, sys)[:MAX_LABEL],
        transport=sysfs.transport(name, sys),
        size_bytes=sysfs.size_bytes(name, sys),
        logical_block_bytes=sysfs.number(sysfs.whole(name, sys), "queue/logical_block_size", sys),
        physical_block_bytes=sysfs.number(sysfs.whole(name, sys), "queue/physical_block_size", sys),
        rotational=_flag(sysfs.attribute(sysfs.whole(name, sys), "queue/rotational", sys)),
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


def schedulers(name: str, sys: Path = SYS) -> tuple[str, tuple[str, ...]]:
    """Parse `none [mq-deadline] kyber`: the active one, and all."""
    return parse_choice(sysfs.attribute(sysfs.whole(name, sys), "queue/scheduler", sys))


def parse_choice(line: str) -> tuple[str, tuple[str, ...]]:
    words = line.split()
    current = next((word.strip("[]") for word in words if word.startswith("[")), words[0] if len(words) == 1 else "")
    return current, tuple(word.strip("[]") for word in words)


def holders(name: str, usage: Usage, sys: Path = SYS) -> tuple[Holder, ...]:
    """The users of this device, without those of its partitions."""
    return (
        *(Holder(kind="mount", detail=f"{m.point} ({m.kind})") for m in usage.mounts_of(name)),
        *(Holder(kind="swap", detail="swap") for swap in usage.swaps if swap == name),
        *(Holder(kind="holder", detail=holder) for holder in sysfs.holders(name, sys)),
    )


def _flag(text: str) -> bool | None:
    return {"0": False, "1": True}.get(text)


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
