"""The limit of bytes that one run may write to a target's drives: `max_write_bytes` of the policy.

The worker compares the kernel's counter of each drive with the limit before a trial writes, and every second during
writes, so the writes of one second may exceed the limit. All writes of the host since the run's first trial count,
including those of other programs. A trial with a limit may not disable the counters, and stops if they are disabled.
"""

import re
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager

from worker.contract.orders import LayoutRequest, SettingRequest
from worker.contract.workload import Stream
from worker.control import Control
from worker.drives.wear import Wear
from worker.guard import GuardRefused
from worker.open_target import OpenTarget
from worker.policy import Policy, PolicyEntry
from worker.settings.queue_numbers import IOSTATS

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
        for setting in settings:
            self._refuse_uncounted(setting, open_targets.get(setting.stream))
        if self._limits and not layouts:
            for stream in streams:
                self._will_write(stream, open_targets[stream.number])

    def _will_write(self, stream: Stream, open_target: OpenTarget) -> None:
        """Add up the writes of all streams to a drive, including streams of other policy entries."""
        for name in self._wear.drives_under(open_target.devices):
            self._planned[name] = self._planned.get(name, 0) + _certain_bytes(stream)

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
