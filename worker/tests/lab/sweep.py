"""Scheduler × read-ahead × layout × file system, on the drives behind the RAID controller.

`python -m worker.tests.lab.sweep` prints a line of JSON for each point. The layouts are built
under the guard, the scheduler is set on the drives and the read-ahead on what was built of them;
every value is read back. A file is read from its first byte to its last through the page cache.
"""

import itertools
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

import msgspec

from worker import engines, guard, layouts
from worker.contract.items import LegResult, LegStarted, SettingRecord
from worker.contract.orders import SettingWish
from worker.contract.workload import KIB, MIB, Engine, Leg, Pattern, TargetKind, TargetRef, Workload
from worker.inventory import sysfs
from worker.journal import Journal
from worker.layouts import Built
from worker.place import Place
from worker.policy import Policy
from worker.process import open_scope
from worker.recipes.layouts import parse
from worker.settings import session
from worker.tests.lab.drives import RAID, allow, by_serial

SHAPES = {
    "single": "single",
    "md RAID 0": "raid0 x4 chunk 64k",
    "LVM stripe": "4 legs of single / lvm stripe 64k",
}
FILE_SYSTEMS = ("xfs", "jfs")
SCHEDULERS = ("none", "mq-deadline")
READ_AHEAD_KB = ("0", "1024")
FILE_BYTES = 8 * MIB
RUN, BUILT = "sweep", "built"


class Point(msgspec.Struct, frozen=True):
    """What was set as it was read back, and what came of it."""

    layout: str
    file_system: str
    scheduler: str
    read_ahead_kb: str
    bytes_per_s: float
    p99_ns: int | None


class Bench:
    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.state = directory / "state"
        self.state.mkdir(mode=0o700)
        self.journal = Journal(self.state / "journal.db")

    def points(self) -> Iterator[Point]:
        for shape, file_system in itertools.product(SHAPES, FILE_SYSTEMS):
            layout = parse(f"{SHAPES[shape]} / {file_system}")
            serials = RAID[: layout.drives]
            entries = allow(self.directory, *serials).targets
            built = layouts.build(
                layout, entries, serials, key="lab", run=RUN, state=self.state, journal=self.journal
            )  # fmt: skip
            try:
                for scheduler, read_ahead in itertools.product(SCHEDULERS, READ_AHEAD_KB):
                    yield self._point(shape, file_system, built, serials, scheduler, read_ahead)
            finally:
                back = session.restore_run(RUN, self.journal)
                layouts.take_down(built.record, state=self.state, journal=self.journal)
            if left := [item for item in back if not item.restored]:
                raise SystemExit(f"Not put back: {left}")

    def _point(
        self, shape: str, file_system: str, built: Built, serials: tuple[str, ...], scheduler: str, read_ahead: str
    ) -> Point:
        allowed = allow(
            self.directory, *serials,
            **{BUILT: {"kind": "directory", "path": built.mount_point, "settings": ["read_ahead_kb"]}},
        )  # fmt: skip
        records = self._settle(allowed, built, serials, scheduler, read_ahead)
        result = self._read_file(allowed, built)
        observed = {record.name: record.observed for record in records}
        measured = result.directions[0]
        return Point(
            layout=shape,
            file_system=file_system,
            scheduler=observed["scheduler"],
            read_ahead_kb=observed["read_ahead_kb"],
            bytes_per_s=measured.bytes_per_s,
            p99_ns=measured.latency.percentile(99.0),
        )

    def _settle(
        self, allowed: Policy, built: Built, serials: tuple[str, ...], scheduler: str, read_ahead: str
    ) -> list[SettingRecord]:
        names = by_serial()
        places = {
            leg: Place(path=f"/dev/{names[serial]}", device=names[serial], target=serial)
            for leg, serial in enumerate(serials)
        }
        top = Path(built.device).resolve().name
        places[len(serials)] = Place(path=built.mount_point, device=top, target=BUILT)
        wishes = [SettingWish(name="scheduler", value=scheduler, leg=leg) for leg in range(len(serials))]
        wishes.append(SettingWish(name="read_ahead_kb", value=read_ahead, leg=len(serials)))
        records = session.settle(wishes, RUN, places, allowed, self.journal)
        wrong = [record for record in records if record.observed != record.asked]
        if wrong:
            raise SystemExit(f"Read back otherwise: {wrong}")
        return records

    def _read_file(self, allowed: Policy, built: Built) -> LegResult:
        work = Workload(
            pattern=Pattern.READ, block_bytes=64 * KIB, engine=Engine.PSYNC, iodepth=1, direct=False,
            size_bytes=FILE_BYTES, amount_bytes=FILE_BYTES,
        )  # fmt: skip
        target = TargetRef(
            id=BUILT, kind=TargetKind.DIRECTORY, path=built.mount_point,
            stable_id=sysfs.shortened(f"dir:{built.mount_point}"),
        )  # fmt: skip
        leg = Leg(number=0, target=target, workload=work)
        limits = {"cancelled": threading.Event(), "silence_limit_s": 60.0, "total_limit_s": 120.0}
        with guard.admit(leg, allowed, ()) as place:
            if not any(Path(built.mount_point).rglob("*sweetspot*")):
                with open_scope(self.state, "prefill") as scope:
                    engines.prefill(leg, place, scope=scope, on_progress=lambda _: None, **limits)  # type: ignore[arg-type]
            with open_scope(self.state, "leg") as scope:
                return engines.run_leg(
                    leg, place, scope=scope, on_started=_nothing, on_sample=lambda _: None, **limits  # type: ignore[arg-type]
                )  # fmt: skip


def _nothing(_: LegStarted) -> None:
    """The job's text is of no interest here."""


def main() -> int:
    if missing := set(RAID) - set(by_serial()):
        print(f"This is no lab machine: it has no drive {', '.join(sorted(missing))}.", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory() as directory:
        for point in Bench(Path(directory)).points():
            print(msgspec.json.encode(point).decode(), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
