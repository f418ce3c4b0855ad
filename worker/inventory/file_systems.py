"""Mounted file systems on block devices, each once, even if mounted several times."""

from pathlib import Path

from worker.contract.inventory import FileSystem
from worker.inventory.sysfs import SYS, text
from worker.inventory.usage import Mount, Usage
from worker.text_limits import MAX_LABEL, MAX_TEXT


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
    return "/".join(sorted(entry.name for entry in at.glob("*") if (entry / "total_bytes").exists() and _used(entry)))


def _used(profile: Path) -> bool:
    return text(profile / "total_bytes") not in ("", "0")
