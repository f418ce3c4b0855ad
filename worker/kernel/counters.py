"""Counters of the block device under a stream, from /sys/class/block/<name>/stat (Documentation/block/stat.rst)."""

import time
from collections.abc import Sequence
from pathlib import Path

import msgspec

from worker.contract.base import MAX_LABEL
from worker.contract.items import DeviceSample
from worker.kernel.sysfs import SECTOR_BYTES, SYS

SYS_BLOCK = SYS / "class/block"
FROZEN_IOS_PER_S = 0.1


class Counters(msgspec.Struct, frozen=True):
    at_s: float  # monotonic
    read_ios: int
    read_sectors: int
    write_ios: int
    write_sectors: int
    io_ms: int  # time with at least one I/O in flight
    queue_ms: int  # the same, summed over the I/Os
    discard_sectors: int = 0  # 0 on kernels before 4.18
    in_flight: int = 0


def read_counters(device: str, sys_block: Path = SYS_BLOCK) -> Counters | None:
    """None if the device does not exist, its name is unknown, or it does not count (its iostats are off)."""
    if not device:
        return None
    try:
        if (sys_block / device / "queue" / "iostats").read_text().strip() == "0":
            return None  # the counters do not change, which would look like an idle device
    except OSError:
        pass  # a partition has no queue
    try:
        return counters_in((sys_block / device / "stat").read_bytes())
    except OSError:
        return None


def counters_in(stat: bytes) -> Counters | None:
    """From the content of a `stat` that was read now; None if it is empty, because the device was removed."""
    fields = [int(word) for word in stat.split()]
    if len(fields) < 11:
        return None
    discarded = fields[13] if len(fields) > 13 else 0
    moved = (fields[0], fields[2], fields[4], fields[6])
    return Counters(time.monotonic(), *moved, fields[9], fields[10], discarded, in_flight=fields[8])


Counted = tuple[Counters | None, ...]  # of several devices


def has_counted_nothing(before: Counted, after: Counted) -> bool:
    """Whether no I/O was completed in between; False if a device does not count."""
    counted = [_completed(*each) for each in zip(before, after, strict=True)]
    return bool(counted) and all(ios == 0 for ios in counted)


def is_frozen(before: Counted, after: Counted) -> bool:
    """Whether I/O is in flight at the end, but the devices completed at most one I/O in ten seconds in between.

    A drive that completes more is slow. The limit is not zero, because the kernel and other programs may read other
    parts of a drive that does not answer the engine.
    """
    is_busy = any(each is not None and each.in_flight > 0 for each in after)
    return is_busy and all(_completes_little(*each) for each in zip(before, after, strict=True))


def _completes_little(before: Counters | None, after: Counters | None) -> bool:
    ios = _completed(before, after)
    return (
        ios is not None
        and before is not None
        and after is not None
        and ios <= FROZEN_IOS_PER_S * (after.at_s - before.at_s)
    )


def _completed(before: Counters | None, after: Counters | None) -> int | None:
    if before is None or after is None:
        return None
    ios = after.read_ios + after.write_ios - before.read_ios - before.write_ios
    return ios + after.discard_sectors - before.discard_sectors


def is_gone(device: str, sys_block: Path = SYS_BLOCK) -> bool:
    """Whether a named device was unplugged: the kernel takes its size away, then its name."""
    try:
        return bool(device) and (sys_block / device / "size").read_text().strip() == "0"
    except OSError:
        return True


def sample_of_all(
    devices: Sequence[str], before: Sequence[Counters | None], after: Sequence[Counters | None]
) -> DeviceSample | None:
    """Of one device, or of several under one file system together: all are sums but the utilisation, their mean.

    None where one of them is not known.
    """
    samples = [sample_between(*each) for each in zip(devices, before, after, strict=True)]
    known = [each for each in samples if each is not None]
    if not known or len(known) < len(samples):
        return None
    return DeviceSample(
        device=", ".join(devices)[:MAX_LABEL],
        utilisation_percent=sum(each.utilisation_percent for each in known) / len(known),
        queue_depth=sum(each.queue_depth for each in known),
        read_ios=sum(each.read_ios for each in known),
        write_ios=sum(each.write_ios for each in known),
        read_bytes=sum(each.read_bytes for each in known),
        write_bytes=sum(each.write_bytes for each in known),
    )


def sample_between(device: str, before: Counters | None, after: Counters | None) -> DeviceSample | None:
    """The interval's utilisation (share of time with I/O in flight) and time-weighted mean queue depth."""
    if before is None or after is None or after.at_s <= before.at_s:
        return None
    elapsed_ms = (after.at_s - before.at_s) * 1000
    return DeviceSample(
        device=device,
        utilisation_percent=min(100.0, max(0.0, (after.io_ms - before.io_ms) * 100 / elapsed_ms)),
        queue_depth=max(0, after.queue_ms - before.queue_ms) / elapsed_ms,
        read_ios=max(0, after.read_ios - before.read_ios),
        write_ios=max(0, after.write_ios - before.write_ios),
        read_bytes=max(0, after.read_sectors - before.read_sectors) * SECTOR_BYTES,
        write_bytes=max(0, after.write_sectors - before.write_sectors) * SECTOR_BYTES,
    )
