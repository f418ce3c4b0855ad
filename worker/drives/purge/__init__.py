"""Purge a drive: find its methods, purge it, verify the result.

    held by the guard ─► command sent ─► (progress) ─► the drive's answer ─► read samples ─► Purged
                           └── refused, failed, or data although the drive reports zeros ─► PurgeFailed

There is one module for each family of commands, with `offers` and `send`. The worker holds the drive exclusively from
the guard's check to the last sample. Most commands continue inside the drive: only a discard can be interrupted.
"""

import time
from collections.abc import Mapping

from worker.contract.items import Purged
from worker.contract.purge import PurgeMethod, PurgeOffer
from worker.drives.purge import ata, discard, nvme, scsi, zeros
from worker.drives.purge.base import Family, Lease, Progress, PurgeFailed, PurgeRun
from worker.inventory import sysfs

__all__ = ["Lease", "Progress", "PurgeFailed", "PurgeRun", "offers", "purge"]

_M = PurgeMethod
FAMILIES: Mapping[PurgeMethod, Family] = {
    _M.DISCARD: discard,
    _M.NVME_FORMAT: nvme,
    _M.NVME_FORMAT_CRYPTO: nvme,
    _M.NVME_SANITIZE_BLOCK: nvme,
    _M.NVME_SANITIZE_CRYPTO: nvme,
    _M.ATA_SECURE_ERASE: ata,
    _M.ATA_ENHANCED_ERASE: ata,
    _M.SCSI_FORMAT: scsi,
}


def offers(name: str) -> tuple[PurgeOffer, ...]:
    """The methods that a whole device supports. Changes nothing. Runs programs, so call it rarely."""
    if sysfs.whole(name) != name:
        return ()
    return tuple(offer for family in (discard, nvme, ata, scsi) for offer in family.offers(name))


def purge(drive: Lease, method: PurgeMethod, run: PurgeRun) -> Purged:
    """Purge a drive that the guard holds. Raises PurgeFailed; the drive's content is then unknown."""
    family = FAMILIES[method]
    offer = next((each for each in family.offers(drive.name) if each.method is method), None)
    if offer is None or offer.problem:
        why = offer.problem if offer else f"{drive.path} does not support {method}."
        raise PurgeFailed("purge_not_offered", f"{drive.path} cannot be purged by {method}: {why}")
    began = time.monotonic()
    sent = family.send(drive, method, run)
    seconds = time.monotonic() - began
    found = zeros.sample(drive)
    promised = family.promises_zeros(drive.name, method)
    if promised and not found.all_zeros:
        words = f"{drive.path} must read as zeros after {method}, but {found.other} of {found.samples} samples do not."
        raise PurgeFailed("purge_not_verified", words)
    return Purged(
        at=time.time(),
        device=drive.name,
        serial=sysfs.serial(drive.name),
        method=method,
        commands=sent.commands,
        said=sent.said[-2000:],
        samples=found.samples,
        samples_not_zero=found.other,
        zeros_promised=promised,
        seconds=seconds,
    )
