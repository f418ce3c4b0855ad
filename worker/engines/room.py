"""Does the workload fit its target? fio would silently use less of a device, or let a file grow."""

import os

from worker.contract.workload import Leg, TargetKind
from worker.engines.errors import LegFailed
from worker.engines.fio.device import SECTOR_BYTES, SYS_BLOCK
from worker.place import Place


def check_room(leg: Leg, place: Place) -> None:
    """Raises LegFailed if the asked size is more than the device or file has. Directories are the guard's matter."""
    wanted, there = leg.workload.size_bytes, size_of(leg, place)
    if wanted is not None and there is not None and wanted > there:
        raise LegFailed(
            "option_refused",
            f"The workload uses {wanted} bytes, but {leg.target.path} has {there}: take a smaller size.",
        )


def size_of(leg: Leg, place: Place) -> int | None:
    """Bytes of the device or file; None where it is not known or not limited."""
    try:
        if leg.target.kind is TargetKind.BLOCK and place.device:
            return int((SYS_BLOCK / place.device / "size").read_text()) * SECTOR_BYTES
        if leg.target.kind is TargetKind.FILE:
            return os.stat(place.path, dir_fd=place.cwd_fd).st_size
    except OSError:
        return None
    return None
