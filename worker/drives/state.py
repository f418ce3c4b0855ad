"""What a drive holds as far as we know, from what we did to it. Pure.

    unknown ──► purged ──► used ──► sequentially filled ──► used ──► random filled ─► …
       ▲          (a purge or a whole pass leads there from every state)
       └── somebody else wrote, the host was restarted and the drive cannot say otherwise, a write was broken off

A pass is as many bytes as the drive has, written in one manner over the whole of it without anything else in between.
Less of the manner that filled it leaves it as it is; less of anything else makes it used; an unknown drive stays
unknown until it was purged or filled. "Random filled" says that a drive's capacity was written at random places, not
that every block was.

Somebody else wrote where the kernel's counters of written and discarded sectors are not as we left them. After a
restart they begin anew: then the host bytes of the drive's own SMART must be unchanged. Neither sees what another host
does to a shared drive, nor commands that bypass the block layer (nvme format by hand).
"""

from enum import StrEnum

import msgspec

SECTOR_BYTES = 512


class DriveState(StrEnum):
    UNKNOWN = "unknown"
    PURGED = "purged"
    SEQUENTIAL = "sequentially filled"
    RANDOM = "random filled"
    USED = "used"


class Manner(StrEnum):
    """How a trial writes to a drive."""

    SEQUENTIAL = "sequential"
    RANDOM = "random"
    OTHER = "other"  # in part of it, in several manners at once, or with reads in between: never a pass


_FILLED = {Manner.SEQUENTIAL: DriveState.SEQUENTIAL, Manner.RANDOM: DriveState.RANDOM}


class DriveCounters(msgspec.Struct, frozen=True, kw_only=True):
    """A drive's counters at one moment."""

    boot_id: str
    sectors: int | None  # written and discarded since the drive appeared; None: the kernel does not count
    host_written_bytes: int | None = None  # the drive's own figure; None: it does not tell


class Record(msgspec.Struct, frozen=True, kw_only=True):
    """What we knew of a drive when we let go of it."""

    state: DriveState
    counters: DriveCounters
    manner: Manner = Manner.OTHER  # of the last writes
    written_bytes: int = 0  # in that manner, without anything else in between


def state_now(record: Record | None, now: DriveCounters) -> DriveState:
    """The state of a drive that is looked at again."""
    return record.state if record is not None and _untouched(record.counters, now) else DriveState.UNKNOWN


def _untouched(before: DriveCounters, now: DriveCounters) -> bool:
    if now.sectors is None or before.sectors is None:
        return False
    if now.boot_id == before.boot_id:
        return now.sectors == before.sectors
    told = now.host_written_bytes
    return told is not None and told == before.host_written_bytes


def broken_off(now: DriveCounters) -> Record:
    """What is written down before anything is changed: it stands where the worker does not live to say more."""
    return Record(state=DriveState.UNKNOWN, counters=now)


def purged(now: DriveCounters) -> Record:
    return Record(state=DriveState.PURGED, counters=now)


def after_writes(
    before: Record | None, begun: DriveCounters, ended: DriveCounters, *, manner: Manner, size_bytes: int
) -> Record:
    """A trial wrote in this manner between two looks, alone; `before` is what was known when it began."""
    known = state_now(before, begun)
    if begun.sectors is None or ended.sectors is None or ended.sectors < begun.sectors:
        return broken_off(ended)
    wrote = (ended.sectors - begun.sectors) * SECTOR_BYTES
    if wrote == 0 and before is not None and known is before.state:
        return msgspec.structs.replace(before, counters=ended)
    goes_on = before is not None and known is before.state and before.manner is manner
    in_a_row = wrote + (before.written_bytes if goes_on and before is not None else 0)
    state = _after(known, manner, in_a_row, size_bytes)
    return Record(state=state, counters=ended, manner=manner, written_bytes=in_a_row)


def _after(known: DriveState, manner: Manner, in_a_row: int, size_bytes: int) -> DriveState:
    filled = _FILLED.get(manner)
    if filled is not None and (known is filled or in_a_row >= size_bytes > 0):
        return filled
    return DriveState.UNKNOWN if known is DriveState.UNKNOWN else DriveState.USED
