"""Layouts of every kind are built, read back, measured and taken down; some while the worker or the guest crashes."""

from collections.abc import Iterator, Mapping

from dev.console import say, step
from dev.lab.storage_host import BAYS, DRIVES, POOL
from dev.lab.system import LAYOUT, System, layouts_built, locks, not_as_asked, not_done
from webapp.plans.document import Order, Part, PlanDocument
from webapp.runs.models import Run, SettingChange

LINES = (
    "raid1 x2 / ext4",
    "raid5 x3 chunk 64k",
    "raid5 x4 chunk 128k / xfs",
    "raid6 x4 chunk 64k / ext4",
    "raid10 x4 chunk 64k / xfs",
    "raid0 x4 chunk 64k / ext4",
    "raid0 x2 chunk 256k / xfs noatime",
    "raid0 x2 chunk 64k / xfs untold",
    "4 drives / lvm stripe 64k",
    "2 arrays of raid1 x2 / lvm stripe 64k / ext4",
    "2 arrays of raid0 x2 chunk 64k / lvm stripe 128k / xfs",
    "2 arrays of raid1 x2 / md chunk 64k / xfs",
    "2 drives / btrfs raid0",
    "2 drives / btrfs raid1",
    "3 drives / btrfs raid5",
    "4 drives / btrfs raid10",
    "single / f2fs",
    "raid0 x2 chunk 64k / f2fs",
    "single share 60% / jfs",
    "2 arrays of raid1 x2 share 50% / lvm stripe 64k / jfs",
)
SHORT = {"pattern": "randread", "ioengine": "psync", "block_size": "4k", "size": "8M", "runtime": "1s"}
LONG = {**SHORT, "runtime": "600s"}
# Built when the worker is killed, or when the power is cut. Together they contain every kind of layer.
KILLED = ("4 drives / btrfs raid10",)
CUT = (
    "2 arrays of raid1 x2 / lvm stripe 64k / xfs",
    "2 arrays of raid0 x2 chunk 64k share 60% / md chunk 128k / ext4",
)
REUSED = "2 drives / btrfs raid1"
OTHER_LABEL = "other"


def document(title: str, lines: tuple[str, ...], work: Mapping[str, str]) -> PlanDocument:
    part = Part(name="main", factors={**work, LAYOUT: ", ".join(lines)})
    return PlanDocument(title=title, parts=(part,), repeats=1, order=Order.LISTED)


def layouts(system: System) -> list[str]:
    """The problems."""
    return [
        *_all(system),
        *(problem for line in KILLED for problem in _killed(system, line)),
        *(problem for line in CUT for problem in _cut(system, line)),
        *_reused(system),
    ]


def _all(system: System) -> list[str]:
    with step(f"{len(LINES)} layouts in sequence"):
        run = system.finish(system.start(document("Layouts", LINES, SHORT), POOL))
    found = layouts_built(run)
    for line in LINES:
        say(f"    {'✓' if found.get(line) == line else '✗'} {line}")
    missing = [f"{line} was not built" for line in LINES if line not in found]
    return [*missing, *not_done(run), *not_as_asked(run), *_left(system)]


def _left(system: System) -> list[str]:
    return [*system.storage.left_on_drives(), *locks()]


def _start_measuring(system: System, line: str) -> Run:
    """A run that measures on this layout."""
    run = system.start(document(f"Measuring {line}"[:200], (line,), LONG), POOL)
    system.await_measuring(run)
    return run


def _killed(system: System, line: str) -> list[str]:
    with step(f"SIGKILL of the worker on {line}"):
        run = _start_measuring(system, line)
        system.storage.kill_worker()
        system.finish(run)
    return [*_ended_as_died(run), *not_as_asked(run), *_left(system)]


def _cut(system: System, line: str) -> list[str]:
    """At the next start, Debian assembles all arrays that it finds."""
    with step(f"power cut on {line}"):
        system.storage.assemble_arrays_at_start()
        run = _start_measuring(system, line)
        system.machine.reset()
        system.finish(run)
    return [*_ended_as_died(run), *not_as_asked(run), *_left(system)]


def _ended_as_died(run: Run) -> Iterator[str]:
    trial = run.trials.get()
    if (trial.state, trial.reason_code) != ("failed", "worker_died"):
        yield f"{run}: its trial ended as {trial.state} {trial.reason_code}: {trial.reason}"


def _reused(system: System) -> list[str]:
    """A drive that got a new file system after the crash is left alone, and the server reports that."""
    drive = f"/dev/disk/by-id/{DRIVES[BAYS[1]][0]}"
    with step("a drive gets a new file system after the worker was killed"):
        system.storage.disable_restart()
        run = _start_measuring(system, REUSED)
        system.storage.kill_worker()
        system.storage.await_stopped()
        system.storage.run("mkfs.ext4", "-q", "-F", "-L", OTHER_LABEL, drive)
        system.storage.enable_restart()
        system.storage.start_service()
        system.finish(run)
    problems = list(_ended_as_died(run))
    notes = SettingChange.objects.filter(attempt__run=run, name=LAYOUT, restoring=True, restored=False)
    if not any(OTHER_LABEL in change.note for change in notes):
        problems.append(f"{run} does not report the new use of {drive}: {[change.note for change in notes]}")
    if system.storage.run("blkid", "-s", "LABEL", "-o", "value", drive).strip() != OTHER_LABEL:
        problems.append(f"{drive} was in use and was changed.")
    system.storage.run("wipefs", "--all", "--quiet", drive)
    system.storage.stop_service()
    system.storage.run("/usr/local/bin/sweetspot-worker", "restore", "--yes")
    system.storage.start_service()
    with step("the server unlocks the blank drives"):
        system.wait_until(lambda: not locks(), "the drives are unlocked")
    return [*problems, *_left(system)]
