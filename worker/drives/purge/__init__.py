"""Purge a drive: find its methods, purge it, verify the result.

    held by the guard ─► command sent ─► (progress) ─► the drive's answer ─► read samples ─► Purged
                           └── refused, failed, or data although the drive reports zeros ─► PurgeFailed

There is one module for each family of commands, with `offers` and `send`. The worker holds the drive exclusively from
the guard's check to the last sample. Most commands continue inside the drive: only a discard can be interrupted.
"""

import fcntl
import logging
import os
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec

from worker import guard
from worker.contract.inventory import PurgeMethod, PurgeOffer
from worker.contract.items import Phase, PhaseName, Purged
from worker.contract.workload import TargetRef
from worker.drives.purge import ata, discard, nvme, scsi
from worker.drives.purge.base import Family, Progress, PurgeFailed, PurgeRun
from worker.drives.records import Drives
from worker.guard.lease import Lease
from worker.journal import Journal
from worker.kernel import sysfs
from worker.policy import Policy

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
    sampled = sample(drive)
    promised = family.promises_zeros(drive.name, method)
    if promised and not sampled.all_zeros:
        words = (
            f"{drive.path} must read as zeros after {method}, but {sampled.other} of {sampled.samples} samples do not."
        )
        raise PurgeFailed("purge_not_verified", words)
    return Purged(
        at=time.time(),
        device=drive.name,
        serial=drive.serial,
        method=method,
        commands=sent.commands,
        said=sent.said[-2000:],
        samples=sampled.samples,
        samples_not_zero=sampled.other,
        zeros_promised=promised,
        seconds=seconds,
    )


# Check whether a drive reads as zeros, with evenly spaced samples that include the first and the last block.

BLKFLSBUF = 0x1261
SAMPLES = 256
SAMPLE_BYTES = 64 * 1024


class Zeros(msgspec.Struct, frozen=True):
    samples: int
    other: int  # samples that are not all zeros

    @property
    def all_zeros(self) -> bool:
        return self.other == 0


def sample(drive: Lease) -> Zeros:
    """Drop the kernel's cache of the drive, then read. Raises PurgeFailed if it cannot be read."""
    length = min(SAMPLE_BYTES, drive.size_bytes)
    last = drive.size_bytes - length
    places = sorted({last * number // (SAMPLES - 1) // 512 * 512 for number in range(SAMPLES)} | {last})
    try:
        fcntl.ioctl(drive.fd, BLKFLSBUF, 0)
        blocks = [os.pread(drive.fd, length, place) for place in places]
    except OSError as error:
        words = f"{drive.path} cannot be read after the purge: {error.strerror}."
        raise PurgeFailed("purge_not_verified", words) from error
    return Zeros(len(blocks), sum(any(part) for part in blocks))


# Purge one drive under the guard, and record its new state.

log = logging.getLogger(__name__)

PROGRESS_EVERY_S = 1.0


def purge_target(
    target: TargetRef, method: PurgeMethod, allowed: Policy, armed: tuple[str, ...], *,
    drives: Drives, journal: Journal, state: Path, emit: Callable[[Phase | Purged], None], stopped: threading.Event,
) -> None:  # fmt: skip
    """Raises GuardRefused or PurgeFailed; the drive's state is then unknown."""
    with guard.lease_drive(target, allowed, armed, method) as drive:
        guard.refuse_quarantined([drive.stable_id], state)
        drives.begin_writing(drive.name)
        log.warning("Purging %s (%s) by %s.", drive.path, target.serial, method)
        run = PurgeRun(journal, state, _progress(target, method, emit), stopped.is_set)
        emit(purge(drive, method, run))
    drives.purged(drive.name)


def _progress(target: TargetRef, method: PurgeMethod, emit: Callable[[Phase | Purged], None]) -> Progress:
    emitted_at = -PROGRESS_EVERY_S
    phase = Phase(at=0.0, name=PhaseName.PURGE, target=target.path, method=method)

    def progress(percent: float | None, expected_s: float | None) -> None:
        nonlocal emitted_at
        if time.monotonic() - emitted_at >= PROGRESS_EVERY_S:
            emitted_at = time.monotonic()
            emit(msgspec.structs.replace(phase, at=time.time(), percent=percent, expected_s=expected_s))

    return progress
