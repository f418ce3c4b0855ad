"""The array action engine: the kernel checks or rebuilds the md array of a layout, beside other streams.

An action that is not complete in time is stopped.
"""

import logging
import re
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from worker import __version__
from worker.contract.array_action import ArrayAction, ArrayActionWorkload
from worker.contract.inventory import EngineOffer
from worker.contract.items import Direction, StreamResult
from worker.engines.base import Check, State, StreamFailed, direction_result, direction_sample
from worker.engines.running import Running, Sampler
from worker.kernel.counters import SYS_BLOCK
from worker.kernel.sysfs import SECTOR_BYTES
from worker.kernel.targets import LayoutArray
from worker.recipes.array_action import METRICS

# An md array that is checked or rebuilt (kernel: Documentation/admin-guide/md.rst).
#
# The progress comes from /proc/mdstat: `md/sync_completed` changes only after each sixteenth of the array.

CODE = "array_action_failed"
STOP_LIMIT_S = 60.0
_LOOK_EVERY_S = 0.1
_PROGRESS = re.compile(r"\b(?:recovery|check) *= *[0-9.]+% \(([0-9]+)/([0-9]+)\)")
_KIB = 1024

MDSTAT = Path("/proc/mdstat")


class Progress(msgspec.Struct, frozen=True):
    done_bytes: int
    total_bytes: int


def progress_in(mdstat: str, name: str) -> Progress | None:
    """The progress of the check or rebuild of an array; None without one. An array's further lines are indented."""
    of = ""
    for line in mdstat.splitlines():
        of = of if line.startswith(" ") else line.partition(" ")[0]
        if of == name and (match := _PROGRESS.search(line)):
            return Progress(_KIB * int(match[1]), _KIB * int(match[2]))
    return None


class Array:
    """One array by its kernel name. All methods raise StreamFailed if the kernel refuses."""

    def __init__(self, name: str) -> None:
        self.name = name

    @property
    def action(self) -> str:
        """`idle`, `check`, `recover`, `frozen` …"""
        return self._read("sync_action")

    @property
    def degraded(self) -> bool:
        """Whether a member is missing or not rebuilt."""
        return self._read("degraded") != "0"

    @property
    def member_bytes(self) -> int:
        """The part of each member that the array uses."""
        return _KIB * int(self._read("component_size"))

    @property
    def checked_bytes(self) -> int:
        """The bytes of a complete check, as the kernel counts them: those of one member, or of the array for RAID 10.

        Linux, drivers/md/raid10.c: `resync_max_sectors` is the size of the array.
        """
        if self._read("level") != "raid10":
            return self.member_bytes
        return SECTOR_BYTES * int(self._read("../size"))

    @property
    def progress(self) -> Progress | None:
        try:
            return progress_in(MDSTAT.read_text(), self.name)
        except OSError as error:
            raise StreamFailed(CODE, f"{MDSTAT} cannot be read: {error.strerror}.") from error

    @property
    def check_was_stopped(self) -> bool:
        """Whether the last check was stopped: the kernel then keeps its position in `sync_min`, else 0."""
        return self._read("sync_min") != "0"

    def begin_check(self) -> None:
        """Check the whole array. The kernel would continue where an earlier check was stopped."""
        self._write("sync_min", "0")
        self._write("sync_action", "check")

    def stop(self, state: str) -> None:
        """End the current action: `idle`, or `frozen`, which also prevents the kernel from starting it again."""
        self._write("sync_action", state)
        until = time.monotonic() + STOP_LIMIT_S
        while (now := self.action) != state:
            if time.monotonic() > until:
                raise StreamFailed(CODE, f"The kernel did not end {now} of {self.name} within {STOP_LIMIT_S:.0f} s.")
            time.sleep(_LOOK_EVERY_S)

    def _file(self, name: str) -> Path:
        return SYS_BLOCK / self.name / "md" / name

    def _read(self, name: str) -> str:
        try:
            return self._file(name).read_text().strip()
        except OSError as error:
            raise StreamFailed(CODE, f"{name} of {self.name} cannot be read: {error.strerror}.") from error

    def _write(self, name: str, value: str) -> None:
        try:
            self._file(name).write_text(value)
        except OSError as error:
            words = f"{name} of {self.name} was not set to {value}: {error.strerror}."
            raise StreamFailed(CODE, words) from error


log = logging.getLogger(__name__)

SAMPLE_S = 1.0
LOOK_EVERY_S = 0.1
BEGIN_LIMIT_S = 10.0  # a degraded array may be idle for this time before or after its rebuild


def run_stream(running: Running) -> StreamResult:
    """As `engines.Engine` says. The device's counters are those of all members.

    Call after the member to rebuild was removed. Also raises LayoutFailed if it cannot be added.
    """
    stream, work, array = running.stream, running.stream.workload, running.target.array
    assert isinstance(work, ArrayActionWorkload)
    if array is None:
        raise StreamFailed(CODE, "The target is not a layout with an md array.")
    started_at = time.time()
    running.report_start(started_at, running.recipe(), metrics=METRICS)
    with _stopped_at_end(work.action, Array(array.name)) as md:
        sampler = Sampler(stream.number, running.target.members, running.report, running.telemetry)
        _begin(work.action, array, md)
        following = Following(md, sampler, work, running.cancelled)
        following.run()
    return StreamResult(
        stream=stream.number,
        started_at=started_at,
        began_at=sampler.began_unix,
        ended_at=time.time(),
        engine_version=__version__,
        exit_code=0,
        stderr="",
        directions=(
            direction_result(Direction.RESYNC, ios=0, moved_bytes=following.done_bytes, runtime_ms=sampler.length_ms),
        ),
        usr_cpu_percent=0,
        sys_cpu_percent=0,
        device=sampler.whole(),
        samples=sampler.count,
        metrics={"complete_s": sampler.length_ms / 1000} if following.complete else {},
    )


def _begin(action: ArrayAction, array: LayoutArray, md: Array) -> None:
    if action is ArrayAction.REBUILD:
        array.add_member()
    else:
        md.begin_check()


@contextmanager
def _stopped_at_end(action: ArrayAction, md: Array) -> Iterator[Array]:
    """At the end, stop the action if it still runs. If the stream failed before, a failure to stop is only logged."""
    try:
        yield md
    except BaseException:
        try:
            _stop(action, md)
        except StreamFailed as failed:
            log.warning("The array action could not be stopped: %s", failed)
        raise
    _stop(action, md)


def _stop(action: ArrayAction, md: Array) -> None:
    """The kernel starts a rebuild again unless the array is frozen."""
    if md.action != "idle" or md.degraded:
        md.stop("frozen" if action is ArrayAction.REBUILD else "idle")


class Following:
    """Follows the action until it is complete or its run time ends, and sends a sample each second."""

    def __init__(self, md: Array, sampler: Sampler, work: ArrayActionWorkload, cancelled: threading.Event) -> None:
        self.done_bytes = 0
        self.complete = False
        self._md = md
        self._sampler = sampler
        self._cancelled = cancelled
        self._checks = work.action is ArrayAction.CHECK
        self._began = self._idle_since = time.monotonic()
        self._ends_at = self._began + work.runtime_s
        self._total_bytes = md.checked_bytes if self._checks else md.member_bytes

    def run(self) -> None:
        """Raises StreamFailed if it is cancelled or stopped, if the array stays degraded, or if it never ran."""
        while not self.complete and time.monotonic() < self._ends_at:
            due = min(self._sampler.ended + SAMPLE_S, self._ends_at)
            while not self.complete and time.monotonic() < due:
                if self._cancelled.wait(LOOK_EVERY_S):
                    raise StreamFailed("cancelled", "The stream was cancelled.")
                self.complete = self._is_complete()
            self._emit()
        if not self.complete and self._idle_since == self._began:
            raise self._not_rebuilt()

    def _is_complete(self) -> bool:
        if self._md.action != "idle":
            self._idle_since = time.monotonic()
            return False
        if self._md.degraded and time.monotonic() > self._idle_since + BEGIN_LIMIT_S:
            raise self._not_rebuilt()
        if self._checks and self._md.check_was_stopped:
            raise StreamFailed(CODE, f"Another program stopped the check of {self._md.name}.")
        return not self._md.degraded

    def _not_rebuilt(self) -> StreamFailed:
        return StreamFailed(CODE, f"{self._md.name} is degraded, and the kernel does not rebuild it.")

    def _emit(self) -> None:
        before = self.done_bytes
        if self.complete:
            self.done_bytes = max(before, self._total_bytes)
        elif progress := self._md.progress:
            self._total_bytes = progress.total_bytes
            self.done_bytes = max(before, progress.done_bytes)
        moved = direction_sample(Direction.RESYNC, ios=0, moved_bytes=self.done_bytes - before)
        self._sampler.emit((moved,), time.monotonic())


def offer() -> EngineOffer:
    """On every host: the layouts that it offers decide whether it has md."""
    return EngineOffer(version=__version__, features=tuple(ArrayAction))


def installation() -> str:
    return __version__


def check() -> Iterator[Check]:
    yield Check("array actions", State.OK, f"version {__version__}")
