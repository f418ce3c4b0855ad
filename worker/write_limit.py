"""What one run may write to a target's drives: `max_write_bytes` of the policy, whatever an order says.

The kernel's counter of each drive is held against it before a trial writes, and every second while it does: a second's
writes may come on top. Everything that the host writes to the drive since the run's
first trial counts, whoever writes it.
"""

import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager

from worker.contract.orders import LayoutWish
from worker.contract.workload import Leg
from worker.control import Control
from worker.guard import GuardRefused
from worker.place import Place
from worker.policy import Policy, PolicyEntry
from worker.wear import Wear

CODE = "guard_write_limit"
EVERY_S = 1.0


class WriteLimit:
    """Of one trial. Without a limit in the policy it looks at nothing."""

    def __init__(self, wear: Wear) -> None:
        self._wear = wear
        self._limits: dict[str, PolicyEntry] = {}  # by kernel name of a drive

    def begin(self, allowed: Policy, legs: Iterable[Leg], places: Mapping[int, Place], wish: LayoutWish | None) -> None:
        """Before the first leg. Raises GuardRefused where the trial is known to write more than is left."""
        legs = tuple(legs)
        for leg in legs:
            place = places[leg.number]
            if wish is None:
                self._add(allowed.entry(leg.target.id), place.devices)
            for drive, member in zip(wish.drives if wish else (), place.members, strict=False):
                self._add(allowed.entry(drive.id), (member,))
        self._refuse(self._coming(legs, places) if self._limits and wish is None else {})

    def _coming(self, legs: Iterable[Leg], places: Mapping[int, Place]) -> Mapping[str, int]:
        """Bytes that are sure to be written, by drive: all legs at it together, those of other entries too."""
        coming: dict[str, int] = {}
        for leg in legs:
            for name in self._wear.drives_under(places[leg.number].devices):
                coming[name] = coming.get(name, 0) + _sure(leg)
        return coming

    def _add(self, entry: PolicyEntry | None, devices: Iterable[str]) -> None:
        """Of several entries at one drive the least limit counts. Raises GuardRefused."""
        if entry is None or entry.max_write_bytes is None:
            return
        drives = self._wear.drives_under(devices)
        if not drives:
            raise GuardRefused(
                CODE, f"{entry.id} may be written to within limits, and on which drive it lies is not known."
            )
        for name in drives:
            known = self._limits.get(name)
            if known is None or _limit(entry) < _limit(known):
                self._limits[name] = entry

    @contextmanager
    def watching(self, control: Control) -> Iterator[None]:
        """Stops the trial once it has written too much; looks every `EVERY_S`, in a thread of its own."""
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
            written = self._wear.written_bytes(self._limits)
            for name, entry in self._limits.items():
                if written.get(name, 0) > _limit(entry):
                    control.fail(CODE, _words(entry, name, written[name], 0))

    def _refuse(self, coming: Mapping[str, int]) -> None:
        """`coming`: bytes by drive."""
        written = self._wear.written_bytes(self._limits)
        for name, entry in self._limits.items():
            if name not in written:
                raise GuardRefused(
                    CODE, f"{entry.id} may be written to within limits, and the kernel does not count what is written "
                    f"to {name} (its iostats are off).",
                )  # fmt: skip
            if written[name] + coming.get(name, 0) > _limit(entry):
                raise GuardRefused(CODE, _words(entry, name, written[name], coming.get(name, 0)))


def _sure(leg: Leg) -> int:
    """Bytes that the leg is known to write."""
    work = leg.workload
    if not work.pattern.writes or work.amount_bytes is None:
        return 0
    return round(work.amount_bytes * (1 - (work.read_percent or 0) / 100))


def _limit(entry: PolicyEntry) -> int:
    assert entry.max_write_bytes is not None
    return entry.max_write_bytes


def _words(entry: PolicyEntry, name: str, written: int, coming: int) -> str:
    more = f" and the trial writes {coming} more" if coming else ""
    return (
        f"The run has written {written} bytes to {name}{more}; the policy allows {entry.max_write_bytes} a run to "
        f"{entry.id} (max_write_bytes)."
    )
