"""The bytes that a run writes to drives, and their limit.

The kernel's and the drives' counters are read around writing attempts.

    begin ─► reading, unless nothing was written since the last one ─► writes ─► end ─► reading
                                        the run is closed ─► reading of drives with further writes

A drive needs milliseconds to seconds to answer, so it is queried only if its kernel counter has changed. The last
reading of each drive is kept on disk and serves as the first reading of the next attempt, even after a restart of the
worker. For an array, volume or file system, the drives under it are read.
"""

import logging
import re
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import msgspec

from worker.contract.base import MAX_LABEL
from worker.contract.inventory import DriveHealth
from worker.contract.items import DriveReading, ReadingMoment
from worker.contract.orders import LayoutRequest, SettingRequest
from worker.contract.workload import Stream
from worker.guard.refusal import GuardRefused
from worker.inventory import health
from worker.kernel import sysfs
from worker.kernel.counters import read_counters
from worker.kernel.files import load_state, save_state
from worker.kernel.sysfs import SYS
from worker.kernel.targets import OpenTarget
from worker.kernel.usage import current_boot_id
from worker.policy import Policy, PolicyEntry
from worker.process.control import Control
from worker.settings.devices import IOSTATS

log = logging.getLogger(__name__)

FOLDER = "wear"


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
        return sysfs.drives_under(names, self._sys)

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
        readings, written = self._kept(), {}
        for name in names:
            of = readings.get(sysfs.stable_id(name, self._sys)) if sysfs.exists(name, self._sys) else None
            now = self._written(name)
            if of is not None and now is not None:
                written[name] = of.written_bytes + _moved(of.last, current_boot_id(), now)
        return written

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
            readings = self._kept().values()
            still = [each.last.device for each in readings if self._is(each.last.device, each.last.drive)]
            self._read(still, ReadingMoment.CLOSED)
            self._path.unlink(missing_ok=True)

    def _read(self, names: Iterable[str], moment: ReadingMoment) -> list[DriveReading]:
        readings = self._kept()
        fresh = [reading for name in names if (reading := self._reading(name, moment, readings))]
        for reading in fresh:
            readings[reading.drive] = _following(readings.get(reading.drive), reading)
            self._emit(reading)
        if fresh:
            save_state(self._path, readings)
        return fresh

    def _reading(self, name: str, moment: ReadingMoment, readings: Mapping[str, Kept]) -> DriveReading | None:
        """A reading; None if nothing was written since the last one, or the drive is absent."""
        if not sysfs.exists(name, self._sys):
            return None
        drive, boot, written = sysfs.read_device(name, self._sys), current_boot_id(), self._written(name)
        before = readings[drive.stable_id].last if drive.stable_id in readings else None
        if before and written is not None and (before.boot_id, before.kernel_written_bytes) == (boot, written):
            return None
        return DriveReading(
            at=time.time(),
            moment=moment,
            device=name,
            drive=drive.stable_id,
            serial=drive.serial[:MAX_LABEL],
            model=drive.model[:MAX_LABEL],
            boot_id=boot,
            kernel_written_bytes=written,
            told=health.of(name, self._sys) if sysfs.transport(name, self._sys) in health.ASKED else None,
        )

    def _written(self, name: str) -> int | None:
        counters = read_counters(name, self._sys / "class/block")
        return None if counters is None else counters.write_sectors * sysfs.SECTOR_BYTES

    def _is(self, name: str, drive: str) -> bool:
        return sysfs.exists(name, self._sys) and sysfs.stable_id(name, self._sys) == drive

    def _kept(self) -> dict[str, Kept]:
        """By stable id."""
        return load_state(self._path, dict[str, Kept]) or {}


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


# The limit of bytes that one run may write to a target's drives: `max_write_bytes` of the policy.
#
# The worker compares the kernel's counter of each drive with the limit before a trial writes, and every second during
# writes, so the writes of one second may exceed the limit. All writes of the host since the run's first trial count,
# including those of other programs. A trial with a limit may not disable the counters, and stops if they are
# disabled.

CODE = "guard_write_limit"
EVERY_S = 1.0


class WriteLimit:
    """The write limits of one trial. Without limits in the policy it does nothing."""

    def __init__(self, wear: Wear) -> None:
        self._wear = wear
        self._limits: dict[str, PolicyEntry] = {}  # by kernel name of a drive
        self._planned: dict[str, int] = {}  # bytes that will certainly be written, by kernel name of a drive

    def begin(
        self,
        allowed: Policy,
        streams: Sequence[Stream],
        open_targets: Mapping[int, OpenTarget],
        layouts: Sequence[LayoutRequest],
        settings: Iterable[SettingRequest] = (),
    ) -> None:
        """Call before settings are applied. Raises GuardRefused for a setting that would disable the counters."""
        requests = {request.pool: request for request in layouts}
        for stream in streams:
            open_target = open_targets[stream.number]
            request = requests.get(stream.target.id)
            if request is None:
                self._add(allowed.entry(stream.target.id), open_target.devices)
            for drive, member in zip(request.drives if request else (), open_target.members, strict=False):
                self._add(allowed.entry(drive.id), (member,))
        for stream in streams:
            self._refuse_commands(stream, open_targets[stream.number])
        for setting in settings:
            self._refuse_uncounted(setting, open_targets.get(setting.stream))
        if self._limits and not layouts:
            for stream in streams:
                self._will_write(stream, open_targets[stream.number])

    def _will_write(self, stream: Stream, open_target: OpenTarget) -> None:
        """Add up the writes of all streams to a drive, including streams of other policy entries."""
        for name in self._wear.drives_under(open_target.devices):
            self._planned[name] = self._planned.get(name, 0) + _certain_bytes(stream)

    def _refuse_commands(self, stream: Stream, open_target: OpenTarget) -> None:
        if stream.workload.is_counted:
            return
        for name in self._wear.drives_under(open_target.devices):
            if entry := self._limits.get(name):
                raise GuardRefused(
                    CODE, f"The kernel does not count writes by commands to {name}, but the policy limits writes to "
                    f"{entry.id} (max_write_bytes). Use another I/O engine.",
                )  # fmt: skip

    def _refuse_uncounted(self, setting: SettingRequest, open_target: OpenTarget | None) -> None:
        if open_target is None or setting.name != IOSTATS.name or not re.fullmatch("0+", setting.value):
            return
        for name in self._wear.drives_under((*open_target.devices, *open_target.members)):
            if entry := self._limits.get(name):
                raise GuardRefused(
                    CODE, f"{IOSTATS.name}={setting.value} makes the kernel stop counting writes to {name}, "
                    f"but the policy limits writes to {entry.id} (max_write_bytes). Leave {IOSTATS.name} at 1.",
                )  # fmt: skip

    def _add(self, entry: PolicyEntry | None, devices: Iterable[str]) -> None:
        """Add an entry's limit; the lowest of several limits on one drive applies. Raises GuardRefused."""
        if entry is None or entry.max_write_bytes is None:
            return
        drives = self._wear.drives_under(devices)
        if not drives:
            raise GuardRefused(CODE, f"{entry.id} has a write limit, but its drive is unknown.")
        for name in drives:
            known = self._limits.get(name)
            if known is None or _limit(entry) < _limit(known):
                self._limits[name] = entry

    @contextmanager
    def watching(self, control: Control) -> Iterator[None]:
        """Stop the trial when it exceeds the limit; checks every `EVERY_S` in a separate thread."""
        over = threading.Event()
        thread = threading.Thread(target=self._watch, args=(control, over), name="write limit", daemon=True)
        if self._limits:
            thread.start()
        try:
            yield
        finally:
            over.set()
            if self._limits:
                thread.join()

    def _watch(self, control: Control, over: threading.Event) -> None:
        while not over.wait(EVERY_S):
            try:
                self._refuse({})
            except GuardRefused as error:
                control.fail(error.code, error.message)
            except (OSError, ValueError) as error:
                control.fail(CODE, f"The write counter of {', '.join(self._limits)} cannot be read: {error}")

    def check(self) -> None:
        """Call before the first write. Raises GuardRefused if the trial would exceed the limit."""
        self._refuse(self._planned)

    def _refuse(self, planned: Mapping[str, int]) -> None:
        """`planned`: bytes by drive."""
        written = self._wear.written_bytes(self._limits)
        for name, entry in self._limits.items():
            if name not in written:
                raise GuardRefused(
                    CODE, f"The policy limits writes to {entry.id} (max_write_bytes), but the kernel does not "
                    f"count writes to {name}: {self._wear.why_uncounted(name)}.",
                )  # fmt: skip
            if written[name] + planned.get(name, 0) > _limit(entry):
                raise GuardRefused(CODE, _words(entry, name, written[name], planned.get(name, 0)))


def _certain_bytes(stream: Stream) -> int:
    """Bytes that the stream will certainly write."""
    work = stream.workload
    if not work.writes or work.moved_bytes is None:
        return 0
    return round(work.moved_bytes * work.write_share)


def _limit(entry: PolicyEntry) -> int:
    assert entry.max_write_bytes is not None
    return entry.max_write_bytes


def _words(entry: PolicyEntry, name: str, written: int, planned: int) -> str:
    more = f", and the trial writes {planned} more" if planned else ""
    return (
        f"The run has written {written} bytes to {name}{more}; the policy allows {entry.max_write_bytes} per run to "
        f"{entry.id} (max_write_bytes)."
    )
