"""The drives of this host that we have written: `drive_state` on disk, and where its figures come from."""

import hashlib
from collections.abc import Iterable, Mapping
from pathlib import Path

import msgspec

from worker.contract.inventory import DriveHealth
from worker.contract.workload import Stream, TargetKind, Workload
from worker.drives.state import DriveCounters, DriveState, Manner, Record, after_writes, broken_off, purged, state_now
from worker.engines.fio.device import read_counters
from worker.inventory import health, sysfs
from worker.journal import current_boot_id
from worker.open_target import OpenTarget
from worker.whole_file import write_whole


class Drives:
    """Records by stable id and serial, one small file each, replaced whole. Used by one thread."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def state(self, name: str) -> DriveState:
        """Of a whole device, by its kernel name."""
        record = self._read(name)
        return state_now(record, self._count_again(name, record))

    def begin_writing(self, name: str) -> "Writing":
        """Before the first write: where this worker dies, the drive is unknown."""
        record = self._read(name)
        writing = Writing(self, name, record, self._count_again(name, record))
        self.write(name, broken_off(writing.begun))
        return writing

    def _count_again(self, name: str, record: Record | None) -> DriveCounters:
        """The drive itself is asked, which takes a program, only where the kernel's counters have begun anew."""
        return read_drive_counters(name, ask_drive=record is not None and record.counters.boot_id != current_boot_id())

    def purged(self, name: str) -> None:
        self.write(name, purged(read_drive_counters(name, ask_drive=True)))

    def _read(self, name: str) -> Record | None:
        try:
            return msgspec.json.decode(self._path(name).read_bytes(), type=Record)
        except (OSError, msgspec.DecodeError):
            return None  # unknown, which is what a damaged record is worth

    def write(self, name: str, record: Record) -> None:
        write_whole(self._path(name), msgspec.json.encode(record))

    def _path(self, name: str) -> Path:
        identity = f"{sysfs.stable_id(name)}:{sysfs.serial(name)}"
        return self._folder / f"{hashlib.sha256(identity.encode()).hexdigest()[:32]}.json"


class Writing:
    """A trial that writes to a drive, from before its first write to after the device was closed."""

    def __init__(self, drives: Drives, name: str, before: Record | None, begun: DriveCounters) -> None:
        self._drives = drives
        self.name = name
        self.before = before
        self.begun = begun

    @property
    def state(self) -> DriveState:
        """Before the first write."""
        return state_now(self.before, self.begun)

    def end(self, workloads: Iterable[Workload], told: DriveHealth | None) -> None:
        """Call when everything has been written back, so that nothing is counted later. `told`: the drive, since."""
        size = sysfs.size_bytes(self.name)
        manner = manner_of(workloads, size)
        ended = read_drive_counters(self.name, ask_drive=told is None, told=told)
        record = after_writes(self.before, self.begun, ended, manner=manner, size_bytes=size)
        self._drives.write(self.name, record)


def manner_of(workloads: Iterable[Workload], size_bytes: int) -> Manner:
    """Of all streams at one drive together."""
    manners = {_manner(work, size_bytes) for work in workloads if work.pattern.writes}
    return manners.pop() if len(manners) == 1 else Manner.OTHER


def _manner(work: Workload, size_bytes: int) -> Manner:
    """Several sequential jobs write the same blocks again; a sequential mix skips the blocks that it reads."""
    if work.size_bytes is not None and work.size_bytes < size_bytes:
        return Manner.OTHER
    if work.pattern.random:
        return Manner.RANDOM
    return Manner.OTHER if work.pattern.mixed or work.threads > 1 else Manner.SEQUENTIAL


class TrialDrives:
    """The drives of one trial: what they held before, and what they hold after it."""

    def __init__(self, drives: Drives) -> None:
        self._drives = drives
        self._written: list[tuple[Writing, list[Stream]]] = []

    def begin(self, streams: Iterable[Stream], open_targets: Mapping[int, OpenTarget]) -> dict[str, str]:
        """Facts for the trial's configuration; drives that are written are followed from here on."""
        streams_on: dict[str, list[Stream]] = {}
        for stream in streams:
            if stream.target.kind is TargetKind.BLOCK and open_targets[stream.number].device:
                streams_on.setdefault(open_targets[stream.number].device, []).append(stream)
        states = {device: self._state(device, found) for device, found in streams_on.items()}
        return {
            f"stream.{stream.number}.drive_state": states[on].value
            for on, found in streams_on.items()
            for stream in found
        }

    def _state(self, device: str, streams: list[Stream]) -> DriveState:
        if not any(stream.workload.pattern.writes for stream in streams):
            return self._drives.state(device)
        writing = self._drives.begin_writing(device)
        self._written.append((writing, streams))
        return writing.state

    def end(self, told: Mapping[str, DriveHealth]) -> None:
        """After the devices were closed, which writes back what the kernel still held. `told` by drives since then."""
        for writing, streams in self._written:
            writing.end((stream.workload for stream in streams), told.get(writing.name))


def read_drive_counters(name: str, *, ask_drive: bool, told: DriveHealth | None = None) -> DriveCounters:
    """`told` is the drive's health, if it was asked already."""
    counters = read_counters(name)
    sectors = counters.write_sectors + counters.discard_sectors if counters else None
    if ask_drive and sysfs.transport(name) in health.ASKED:
        told = health.of(name)
    host_bytes = told.host_written_bytes if told else None
    return DriveCounters(boot_id=current_boot_id(), sectors=sectors, host_written_bytes=host_bytes)
