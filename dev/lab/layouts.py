"""Every kind of layout: built, read back, measured, taken down to blank drives; and what a crash leaves of one."""

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
# What stands when the worker is killed, and when the power is cut: every kind of layer in few layouts.
KILLED = ("4 drives / btrfs raid10",)
CUT = (
    "2 arrays of raid1 x2 / lvm stripe 64k / xfs",
    "2 arrays of raid0 x2 chunk 64k share 60% / md chunk 128k / ext4",
)
TAKEN = "2 drives / btrfs raid1"
THEIRS = "theirs"


def document(title: str, lines: tuple[str, ...], work: Mapping[str, str]) -> PlanDocument:
    part = Part(name="main", factors={**work, LAYOUT: ", ".join(lines)})
    return PlanDocument(title=title, parts=(part,), repeats=1, order=Order.LISTED)


def layouts(system: System) -> list[str]:
    """What was wrong."""
    return [
        *_all(system),
        *(words for line in KILLED for words in _killed(system, line)),
        *(words for line in CUT for words in _cut(system, line)),
        *_taken(system),
    ]


def _all(system: System) -> list[str]:
    with step(f"{len(LINES)} layouts, one after the other"):
        run = system.finish(system.start(document("Layouts", LINES, SHORT), POOL))
    found = layouts_built(run)
    for line in LINES:
        say(f"    {'✓' if found.get(line) == line else '✗'} {line}")
    missing = [f"{line} was not built" for line in LINES if line not in found]
    return [*missing, *not_done(run), *not_as_asked(run), *_left(system)]


def _left(system: System) -> list[str]:
    return [*system.storage.left_on_drives(), *locks()]


def _standing(system: System, line: str) -> Run:
    """A run that measures on it."""
    run = system.start(document(f"Standing {line}"[:200], (line,), LONG), POOL)
    system.until_measuring(run)
    return run


def _killed(system: System, line: str) -> list[str]:
    with step(f"SIGKILL of the worker on {line}"):
        run = _standing(system, line)
        system.storage.kill_worker()
        system.finish(run)
    return [*_ended_as_died(run), *not_as_asked(run), *_left(system)]


def _cut(system: System, line: str) -> list[str]:
    """With Debian's own way of assembling whatever it finds at the start."""
    with step(f"the power is cut on {line}"):
        system.storage.assemble_what_is_found()
        run = _standing(system, line)
        system.machine.reset()
        system.finish(run)
    return [*_ended_as_died(run), *not_as_asked(run), *_left(system)]


def _ended_as_died(run: Run) -> Iterator[str]:
    trial = run.trials.get()
    if (trial.state, trial.reason_code) != ("failed", "worker_died"):
        yield f"{run}: its trial ended as {trial.state} {trial.reason_code}: {trial.reason}"


def _taken(system: System) -> list[str]:
    """A drive that somebody took into use after the crash is left alone, and said so."""
    drive = f"/dev/disk/by-id/{DRIVES[BAYS[1]][0]}"
    with step("somebody takes a drive of a killed worker into use"):
        system.storage.keep_ended()
        run = _standing(system, TAKEN)
        system.storage.kill_worker()
        system.storage.until_ended()
        system.storage.run("mkfs.ext4", "-q", "-F", "-L", THEIRS, drive)
        system.storage.restart_again()
        system.storage.start_service()
        system.finish(run)
    problems = list(_ended_as_died(run))
    told = SettingChange.objects.filter(attempt__run=run, name=LAYOUT, restoring=True, restored=False)
    if not any(THEIRS in change.note for change in told):
        problems.append(f"{run} does not say that {drive} was taken into use: {[change.note for change in told]}")
    if system.storage.run("blkid", "-s", "LABEL", "-o", "value", drive).strip() != THEIRS:
        problems.append(f"{drive} was in somebody's use and is not as they left it.")
    system.storage.run("wipefs", "--all", "--quiet", drive)
    system.storage.stop_service()
    system.storage.run("/opt/sweetspot-worker/bin/sweetspot-worker", "restore")
    system.storage.start_service()
    with step("the server learns that nothing is on the drives any more"):
        system.until(lambda: not locks(), "the drives are free")
    return [*problems, *_left(system)]
