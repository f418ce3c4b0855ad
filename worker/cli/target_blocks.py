"""Ready-made `[[target]]` tables for drives that the policy does not list."""

import json
from collections.abc import Collection, Iterator
from pathlib import Path

from worker.cli import formatting
from worker.contract.inventory import BlockDevice, Inventory
from worker.stable_id import is_stable

BY_ID = Path("/dev/disk/by-id")
DISK = "disk"


def unlisted_drives(found: Inventory, listed: Collection[str]) -> list[BlockDevice]:
    """Whole drives whose stable id is not among those of the policy."""
    return [d for d in found.block_devices if d.kind == DISK and d.stable_id not in listed and not d.read_only]


def block(drive: BlockDevice, found: Inventory) -> str:
    """The table of one drive. It allows only reading, and only while nothing on the drive is in use."""
    lines = [f"# {_words(drive)}", *_uses(drive, found), "[[target]]", f"id = {json.dumps(drive.name)}"]
    lines += ['kind = "block"', f"path = {json.dumps(_path(drive))}", f"stable_id = {json.dumps(drive.stable_id)}"]
    lines += [f"serial = {json.dumps(drive.serial)}"] if drive.serial else []
    if is_stable(drive.stable_id):
        lines.append("# destroy = true    # allows trials that write: they destroy the data on the drive")
        if types := _signatures(drive, found):
            lines.append(f"# destroy_signatures = {json.dumps(types)}    # what is on the drive now")
    return "\n".join(lines)


def _words(drive: BlockDevice) -> str:
    words = f"{drive.model or 'drive without a model name'}, {formatting.size(drive.size_bytes)}"
    words += f", {drive.signature}" if drive.signature else ""
    return "".join(character if character.isprintable() else "?" for character in words)


def _signatures(drive: BlockDevice, found: Inventory) -> list[str]:
    """Of the drive and its partitions."""
    devices = (device for device in found.block_devices if device.name == drive.name or drive.name in device.parents)
    return list(dict.fromkeys(name for device in devices for name in device.signature.split(", ") if name))


def _uses(drive: BlockDevice, found: Inventory) -> Iterator[str]:
    """Comments on what uses the drive or a partition of it."""
    for device in found.block_devices:
        if device.name == drive.name or drive.name in device.parents:
            for holder in device.holders:
                yield f"# in use: {device.name}: {holder.kind} {holder.detail}".replace("\n", " ")


def _path(drive: BlockDevice) -> str:
    """The link under /dev/disk/by-id, which stays the same when the drive gets another kernel name."""
    links = sorted(link for link in BY_ID.glob("*") if link.resolve().name == drive.name) if BY_ID.is_dir() else []
    own = [link for link in links if link.name == drive.stable_id]
    return str((own or links or [Path(drive.path)])[0])
