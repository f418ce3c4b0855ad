"""Check whether a drive reads as zeros, with evenly spaced samples that include the first and the last block."""

import fcntl
import os

import msgspec

from worker.drives.purge.base import Lease, PurgeFailed

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
        found = [os.pread(drive.fd, length, place) for place in places]
    except OSError as error:
        words = f"{drive.path} cannot be read after the purge: {error.strerror}."
        raise PurgeFailed("purge_not_verified", words) from error
    return Zeros(len(found), sum(any(part) for part in found))
