"""The bytes that a run writes to drives: readings of the kernel's and the drives' counters around writing attempts.

    begin ─► reading, unless nothing was written since the last one ─► writes ─► end ─► reading
                                        the run is closed ─► reading of drives with further writes

A drive needs milliseconds to seconds to answer, so it is queried only if its kernel counter has changed. The last
reading of each drive is kept on disk and serves as the first reading of the next attempt, even after a restart of the
worker. For an array, volume or file system, the drives under it are read.
"""

import logging
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import msgspec

from worker.contract.inventory import DriveHealth
from worker.contract.items import DriveReading, ReadingMoment
from worker.engines.device import SECTOR_BYTES, read_counters
from worker.inventory import health, sysfs
from worker.inventory.sysfs import SYS
from worker.journal import current_boot_id
from worker.text_limits import MAX_LABEL
from worker.whole_file import write_whole

log = logging.getLogger(__name__)

FOLDER = "wear"


def drives_under(names: Iterable[str], sys: Path = SYS) -> tuple[str, ...]:
    """Kernel names of the drives under these devices, including devices that are drives."""
    known = [name for name in names if sysfs.exists(name, sys)]
    below = [each for name in known for each in (name, *sysfs.below(name, sys))]
    return tuple(each for each in dict.fromkeys(below) if not sysfs.parents(each, sys))


class Kept(msgspec.Struct, frozen=True):
    """The last reading of one drive, on disk."""

    last: DriveReading
    written_bytes: int = 0  # kernel's count, between the run's first and last reading


class Wear:
    """The readings of one run. No method raises, because a missing reading does not stop a trial."""

    def __init__(self, state: Path, run: str, emit: Callable[[DriveReading], None], sys: Path = SYS) -> None:
        self._path = state / FOLDER / f"{run}.json"
        self._emit = emit
        self._sys = sys
        self._started: list[str] = []

    def drives_under(self, names: Iterable[str]) -> tuple[str, ...]:
        return drives_under(names, self._sys)

    def begin(self, names: Iterable[str]) -> None:
        """Call before the first write of an attempt, and again for further devices."""
        with _logged_errors():
            fresh = [name for name in self.drives_under(names) if name not in self._started]
            self._started += fresh
            self._read(fresh, ReadingMoment.BEFORE)

    def end(self) -> dict[str, DriveHealth]:
        """Call after the last write, when all data is flushed. Returns the health of the written drives, by name."""
        with _logged_errors():
            return {each.device: each.told for each in self._read(self._started, ReadingMoment.AFTER) if each.told}
        return {}

    def written_bytes(self, names: Iterable[str]) -> Mapping[str, int]:
        """Bytes written to each of these drives since the run's first reading. Drives without counters are left out.

        After a restart of the host, the writes between the last reading and the restart are missing.
        """
        kept, found = self._kept(), {}
        for name in names:
            of = kept.get(sysfs.stable_id(name, self._sys)) if sysfs.exists(name, self._sys) else None
            now = self._written(name)
            if of is not None and now is not None:
                found[name] = of.written_bytes + _moved(of.last, current_boot_id(), now)
        return found

    def why_uncounted(self, name: str) -> str:
        """The reason why `written_bytes` leaves this drive out."""
        counted = self._written(name) is not None  # before `exists`: a drive that vanishes in between is gone
        if not sysfs.exists(name, self._sys):
            return "the drive is gone"
        if not counted:
            return "the setting iostats is 0"
        return f"{self._path} has no reading from before the run's first write"

    def close(self) -> None:
        """Take the last readings and delete the run's record."""
        with _logged_errors():
            kept = self._kept().values()
            still = [each.last.device for each in kept if self._is(each.last.device, each.last.drive)]
            self._read(still, ReadingMoment.CLOSED)
            self._path.unlink(missing_ok=True)

    def _read(self, names: Iterable[str], moment: ReadingMoment) -> list[DriveReading]:
        kept = self._kept()
        fresh = [reading for name in names if (reading := self._reading(name, moment, kept))]
        for reading in fresh:
            kept[reading.drive] = _following(kept.get(reading.drive), reading)
            self._emit(reading)
        if fresh:
            self._keep(kept)
        return fresh

    def _reading(self, name: str, moment: ReadingMoment, kept: Mapping[str, Kept]) -> DriveReading | None:
        """A reading; None if nothing was written since the last one, or the drive is absent."""
        if not sysfs.exists(name, self._sys):
            return None
        drive, boot, written = sysfs.stable_id(name, self._sys), current_boot_id(), self._written(name)
        before = kept[drive].last if drive in kept else None
        if before and written is not None and (before.boot_id, before.kernel_written_bytes) == (boot, written):
            return None
        return DriveReading(
            at=time.time(),
            moment=moment,
            device=name,
            drive=drive,
            serial=sysfs.serial(name, self._sys)[:MAX_LABEL],
            model=sysfs.model(name, self._sys)[:MAX_LABEL],
            boot_id=boot,
            kernel_written_bytes=written,
            told=health.of(name, self._sys) if sysfs.transport(name, self._sys) in health.ASKED else None,
        )

    def _written(self, name: str) -> int | None:
        counters = read_counters(name, self._sys / "class/block")
        return None if counters is None else counters.write_sectors * SECTOR_BYTES

    def _is(self, name: str, drive: str) -> bool:
        return sysfs.exists(name, self._sys) and sysfs.stable_id(name, self._sys) == drive

    def _kept(self) -> dict[str, Kept]:
        """By stable id."""
        try:
            return msgspec.json.decode(self._path.read_bytes(), type=dict[str, Kept])
        except (OSError, msgspec.DecodeError):
            return {}

    def _keep(self, kept: Mapping[str, Kept]) -> None:
        write_whole(self._path, msgspec.json.encode(kept))


def _following(before: Kept | None, now: DriveReading) -> Kept:
    if before is None or now.kernel_written_bytes is None:
        return Kept(now, before.written_bytes if before else 0)
    return Kept(now, before.written_bytes + _moved(before.last, now.boot_id, now.kernel_written_bytes))


def _moved(before: DriveReading, boot_id: str, written_bytes: int) -> int:
    """Increase of the kernel's counter, which starts at 0 after a restart."""
    start = before.kernel_written_bytes if before.boot_id == boot_id else 0
    return max(0, written_bytes - (start or 0))


@contextmanager
def _logged_errors() -> Iterator[None]:
    try:
        yield
    except (OSError, ValueError):
        log.warning("The drives' write counters could not be read or saved.", exc_info=True)
