"""Geometry of md arrays and device-mapper volumes."""

from pathlib import Path

from worker.contract.inventory import Geometry
from worker.inventory import sysfs
from worker.inventory.sysfs import SYS, attribute
from worker.process import ToolError, ask
from worker.text_limits import MAX_LABEL


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
        said = ask("dmsetup", "table", limit_s=2)
    except ToolError:
        return {}
    rows = (line.partition(": ") for line in said.out.splitlines()) if said.exit_code == 0 else ()
    found: dict[str, str] = {}
    for volume, _, row in rows:
        found[volume] = f"{found[volume]}\n{row}" if volume in found else row
    return found
