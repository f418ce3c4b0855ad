"""The state of a drive, derived from the worker's writes and purges. Pure functions.

    unknown ──► purged ──► used ──► sequentially filled ──► used ──► random filled ─► …
       ▲          (a purge or a complete pass leads there from every state)
       └── another program wrote, the host restarted and the drive has no write counter, or a write was stopped

A pass writes the drive's capacity in one manner over the whole drive, without other writes in between. A shorter write
in the same manner keeps the state; any other write makes it used. An unknown drive stays unknown until it is purged
or filled. "Random filled" means that the drive's capacity was written at random offsets, not that every block was
written.

Another program wrote if the kernel's counters of written and discarded sectors have changed. They start at 0 after a
restart; the drive's SMART counter of host writes must then be unchanged. Neither counter shows writes by another host
to a shared drive, or commands that bypass the block layer (a manual nvme format).
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
    OTHER = "other"  # part of the drive, several manners at once, or mixed with reads: never a complete pass


_FILLED = {Manner.SEQUENTIAL: DriveState.SEQUENTIAL, Manner.RANDOM: DriveState.RANDOM}


class DriveCounters(msgspec.Struct, frozen=True, kw_only=True):
    """A drive's counters at one moment."""

    boot_id: str
    sectors: int | None  # written and discarded since the drive appeared; None if not counted
    host_written_bytes: int | None = None  # the drive's SMART counter; None without one


class Record(msgspec.Struct, frozen=True, kw_only=True):
    """The last known state of a drive."""

    state: DriveState
    counters: DriveCounters
    manner: Manner = Manner.OTHER  # of the last writes
    written_bytes: int = 0  # in that manner, without other writes in between


def state_now(record: Record | None, now: DriveCounters) -> DriveState:
    """The current state of a drive, from its last record and its counters."""
    return record.state if record is not None and _untouched(record.counters, now) else DriveState.UNKNOWN


def _untouched(before: DriveCounters, now: DriveCounters) -> bool:
    if now.sectors is None or before.sectors is None:
        return False
    if now.boot_id == before.boot_id:
        return now.sectors == before.sectors
    told = now.host_written_bytes
    return told is not None and told == before.host_written_bytes


def interrupted(now: DriveCounters) -> Record:
    """The record during a write: it stays if the worker dies."""
    return Record(state=DriveState.UNKNOWN, counters=now)


def purged(now: DriveCounters) -> Record:
    return Record(state=DriveState.PURGED, counters=now)


def after_writes(
    before: Record | None, at_start: DriveCounters, at_end: DriveCounters, *, manner: Manner, size_bytes: int
) -> Record:
    """The record after a trial that wrote in this manner. `before`: the last record before the trial."""
    known = state_now(before, at_start)
    if at_start.sectors is None or at_end.sectors is None or at_end.sectors < at_start.sectors:
        return interrupted(at_end)
    wrote = (at_end.sectors - at_start.sectors) * SECTOR_BYTES
    if wrote == 0 and before is not None and known is before.state:
        return msgspec.structs.replace(before, counters=at_end)
    goes_on = before is not None and known is before.state and before.manner is manner
    in_a_row = wrote + (before.written_bytes if goes_on and before is not None else 0)
    state = _after(known, manner, in_a_row, size_bytes)
    return Record(state=state, counters=at_end, manner=manner, written_bytes=in_a_row)


def _after(known: DriveState, manner: Manner, in_a_row: int, size_bytes: int) -> DriveState:
    filled = _FILLED.get(manner)
    if filled is not None and (known is filled or in_a_row >= size_bytes > 0):
        return filled
    return DriveState.UNKNOWN if known is DriveState.UNKNOWN else DriveState.USED
