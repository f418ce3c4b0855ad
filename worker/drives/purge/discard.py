"""BLKDISCARD (block/ioctl.c, blkdiscard(8)) on the whole device, through the descriptor that the guard holds.

It runs in steps, to show progress and to allow cancellation. The kernel sends TRIM, UNMAP or Dataset Management; a loop
device punches holes into its file, which read as zeros.
"""

import fcntl
import struct

from worker.contract.inventory import PurgeMethod, PurgeOffer
from worker.drives.purge.base import PurgeFailed, PurgeRun, Sent
from worker.guard.lease import Lease
from worker.kernel import sysfs

BLKDISCARD = 0x1277
STEPS = 50
_MIN_STEP_BYTES = 64 * 2**20


def offers(name: str) -> tuple[PurgeOffer, ...]:
    most = sysfs.number(name, "queue/discard_max_bytes")
    if most is None or sysfs.kind(name) in ("rom", "zram"):
        return ()
    problem = "" if most else "Discards are not supported (discard_max_bytes is 0)."
    return (PurgeOffer(method=PurgeMethod.DISCARD, problem=problem),)


def send(drive: Lease, method: PurgeMethod, run: PurgeRun) -> Sent:  # noqa: ARG001 - one method
    granule = max(sysfs.number(drive.name, "queue/discard_granularity") or 0, 2**20)
    step = max(_MIN_STEP_BYTES, drive.size_bytes // STEPS // granule * granule)
    for start in range(0, drive.size_bytes, step):
        if run.stopped():
            raise PurgeFailed(
                "cancelled",
                f"The discard of {drive.path} was cancelled after {start} of {drive.size_bytes} bytes. It is partly "
                "purged; its content is unknown until it is purged or filled completely.",
            )
        run.progress(100 * start / drive.size_bytes, None)
        _discard(drive, start, min(step, drive.size_bytes - start))
    return Sent((f"BLKDISCARD {drive.path} 0 {drive.size_bytes}",), "")


def _discard(drive: Lease, start: int, length: int) -> None:
    try:
        fcntl.ioctl(drive.fd, BLKDISCARD, struct.pack("=QQ", start, length))
    except OSError as error:
        words = f"{drive.path} refused to discard {length} bytes from {start}: {error.strerror}."
        raise PurgeFailed("purge_refused", words) from error


def promises_zeros(name: str, method: PurgeMethod) -> bool | None:  # noqa: ARG001 - one method
    return True if sysfs.kind(name) == "loop" else None
