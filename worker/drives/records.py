"""Records of the drives that this worker has written, on disk, and the state that follows from them."""

import hashlib
from collections.abc import Iterable, Mapping
from enum import StrEnum
from pathlib import Path

import msgspec

from worker.contract.inventory import DriveHealth
from worker.contract.workload import Stream, TargetKind, Workload
from worker.inventory import health
from worker.kernel import sysfs
from worker.kernel.counters import read_counters
from worker.kernel.files import load_state, save_state
from worker.kernel.targets import OpenTarget
from worker.kernel.usage import current_boot_id

# The state of a drive, derived from the worker's writes and purges. Pure functions.
#
#     unknown ──► purged ──► used ──► sequentially filled ──► used ──► random filled ─► …
#        ▲          (a purge or a complete pass leads there from every state)
#        └── another program wrote, the host restarted and the drive has no write counter, or a write was stopped
#
# A pass writes the drive's capacity in one manner over the whole drive, without other writes in between. A shorter
# write in the same manner keeps the state; any other write makes it used. An unknown drive stays unknown until it is
# purged or filled. "Random filled" means that the drive's capacity was written at random offsets, not that every
# block was written.
#
# Another program wrote if the kernel's counters of written and discarded sectors have changed. They start at 0 after
# a restart; the drive's SMART counter of host writes must then be unchanged. Neither counter shows writes by another
# host to a shared drive, or commands that bypass the block layer (a manual nvme format).


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
    host_bytes = now.host_written_bytes
    return host_bytes is not None and host_bytes == before.host_written_bytes


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
    wrote = (at_end.sectors - at_start.sectors) * sysfs.SECTOR_BYTES
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


class Drives:
    """Records by stable id and serial, in one file each. Not thread-safe."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def state(self, name: str) -> DriveState:
        """The state of a whole device, by its kernel name."""
        record = self._read(name)
        return state_now(record, self._count_again(name, record))

    def is_purged(self, name: str) -> bool:
        """Whether a whole device is known to be purged. Unknown after a restart of the host: the drive is not asked."""
        record = self._read(name)
        return state_now(record, read_drive_counters(name, ask_drive=False)) is DriveState.PURGED

    def begin_writing(self, name: str) -> "Writing":
        """Call before the first write. If the worker dies during the write, the drive's state is unknown."""
        record = self._read(name)
        writing = Writing(self, name, record, self._count_again(name, record))
        self.write(name, interrupted(writing.at_start))
        return writing

    def _count_again(self, name: str, record: Record | None) -> DriveCounters:
        """Ask the drive itself only after a restart of the host, because that runs a program."""
        return read_drive_counters(name, ask_drive=record is not None and record.counters.boot_id != current_boot_id())

    def purged(self, name: str) -> None:
        self.write(name, purged(read_drive_counters(name, ask_drive=True)))

    def _read(self, name: str) -> Record | None:
        return load_state(self._path(name), Record)  # a damaged record means an unknown state

    def write(self, name: str, record: Record) -> None:
        save_state(self._path(name), record)

    def _path(self, name: str) -> Path:
        identity = f"{sysfs.stable_id(name)}:{sysfs.serial(name)}"
        return self._folder / f"{hashlib.sha256(identity.encode()).hexdigest()[:32]}.json"


class Writing:
    """The writes of one trial to one drive, from before the first write until the device is closed."""

    def __init__(self, drives: Drives, name: str, before: Record | None, at_start: DriveCounters) -> None:
        self._drives = drives
        self.name = name
        self.before = before
        self.at_start = at_start

    @property
    def state(self) -> DriveState:
        """The drive's state before the first write."""
        return state_now(self.before, self.at_start)

    def end(self, workloads: Iterable[Workload], health: DriveHealth | None, *, whole: bool) -> None:
        """Call after the kernel has written everything back. `health`: the drive's health read after that.

        `whole`: the target was the drive itself, and not a partition of it.
        """
        size = sysfs.size_bytes(self.name)
        manner = manner_of(workloads, size) if whole else Manner.OTHER
        at_end = read_drive_counters(self.name, ask_drive=health is None, known=health)
        record = after_writes(self.before, self.at_start, at_end, manner=manner, size_bytes=size)
        self._drives.write(self.name, record)


def manner_of(workloads: Iterable[Workload], size_bytes: int) -> Manner:
    """The manner of all streams on one drive together."""
    manners = {_manner(work, size_bytes) for work in workloads if work.writes}
    return manners.pop() if len(manners) == 1 else Manner.OTHER


def _manner(work: Workload, size_bytes: int) -> Manner:
    """Several sequential jobs write blocks twice; a sequential mix skips the blocks that it reads."""
    if work.size_bytes is not None and work.size_bytes < size_bytes:
        return Manner.OTHER
    if work.random:
        return Manner.RANDOM
    return Manner.SEQUENTIAL if work.writes_in_order else Manner.OTHER


class TrialDrives:
    """The drives of one trial: their states before and after it."""

    def __init__(self, drives: Drives) -> None:
        self._drives = drives
        self._written: list[tuple[Writing, list[Stream]]] = []
        self._on_partitions: set[str] = set()  # kernel names of disks

    def begin(self, streams: Iterable[Stream], open_targets: Mapping[int, OpenTarget]) -> dict[str, str]:
        """Return facts for the trial's configuration, and start to record writes."""
        streams_on: dict[str, list[Stream]] = {}
        for stream in streams:
            if stream.target.kind is TargetKind.BLOCK and open_targets[stream.number].device:
                device, size = open_targets[stream.number].device, open_targets[stream.number].size_bytes
                streams_on.setdefault(device, []).append(stream)
                if size is not None and size != sysfs.size_bytes(device):
                    self._on_partitions.add(device)
        states = {device: self._state(device, streams_of_device) for device, streams_of_device in streams_on.items()}
        return {
            f"stream.{stream.number}.drive_state": states[on].value
            for on, streams_of_device in streams_on.items()
            for stream in streams_of_device
        }

    def _state(self, device: str, streams: list[Stream]) -> DriveState:
        if not any(stream.workload.writes for stream in streams):
            return self._drives.state(device)
        writing = self._drives.begin_writing(device)
        self._written.append((writing, streams))
        return writing.state

    def end(self, health: Mapping[str, DriveHealth]) -> None:
        """Call after closing the devices, which flushes the kernel's caches. `health`: of the drives after that."""
        for writing, streams in self._written:
            workloads, whole = (stream.workload for stream in streams), writing.name not in self._on_partitions
            writing.end(workloads, health.get(writing.name), whole=whole)


def read_drive_counters(name: str, *, ask_drive: bool, known: DriveHealth | None = None) -> DriveCounters:
    """`known` is the drive's health, if it has already been read."""
    counters = read_counters(name)
    sectors = counters.write_sectors + counters.discard_sectors if counters else None
    if ask_drive and sysfs.transport(name) in health.ASKED:
        known = health.of(name)
    host_bytes = known.host_written_bytes if known else None
    return DriveCounters(boot_id=current_boot_id(), sectors=sectors, host_written_bytes=host_bytes)
