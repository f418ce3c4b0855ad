"""Checks and rebuilds of md arrays beside a reader; some while the worker is killed or the run is cancelled."""

from collections.abc import Iterator, Sequence

from dev.console import columns, say, step
from dev.lab.storage_host import POOL
from dev.lab.system import LAYOUT, System, locks, not_as_asked, not_done
from webapp.analysis.shares import shares_of
from webapp.plans.document import Part, PartStream, PlanDocument
from webapp.results.metrics import IOPS
from webapp.results.models import Result, Sample
from webapp.runs.models import Run, SettingChange
from webapp.runs.services import cancel_run
from worker.contract.items import Direction

READER = PartStream(
    name="reader", factors={"pattern": "randread", "ioengine": "psync", "block_size": "4k", "size": "64M"}
)
SECONDS = 15
LIMIT = {"md.sync_speed_min": "5000", "md.sync_speed_max": "5000"}  # KiB/s: no member is complete in time
LINES = ("raid5 x3 chunk 64k", "raid10 x4 chunk 64k share 50% / ext4")
REBUILD, CHECK = ({"engine": "array_action", "action": action} for action in ("rebuild", "check"))
LONG_S = {"runtime": "1200s"}  # of the action; the reader ends before it


def _document(title: str, lines: Sequence[str], array: dict[str, str], **factors: str) -> PlanDocument:
    named = (READER, PartStream(name="array", factors=array))
    own = {LAYOUT: ", ".join(lines), "runtime": f"{SECONDS}s", **factors}
    return PlanDocument(title=title, parts=(Part(name="main", factors=own, streams=named),), repeats=1)


IN_PART = _document("Rebuilds that are stopped", LINES, REBUILD, streams="alone, together", **LIMIT)
COMPLETE = (
    _document("check on raid5 x3 chunk 64k / xfs", ("raid5 x3 chunk 64k / xfs",), CHECK | LONG_S),
    _document("rebuild on raid1 x2 share 20%", ("raid1 x2 share 20%",), REBUILD | LONG_S),
)
LONG = _document("Rebuild", ("raid5 x3 chunk 64k",), REBUILD, **LIMIT | LONG_S)


def rebuilds(system: System) -> list[str]:
    """Run all cases. Returns the problems."""
    return [*_in_part(system), *_complete(system), *_killed(system), *_cancelled(system)]


def _in_part(system: System) -> list[str]:
    """Rebuilds that the run time stops. After each one, the layout must be built again."""
    with step(f"rebuilds on {len(LINES)} layouts, alone and beside a reader"):
        run = system.finish(system.start(IN_PART, POOL))
    _show(run)
    found = _resyncs(run)
    built = SettingChange.objects.filter(attempt__run=run, name=LAYOUT, restoring=False, took_s__isnull=False).count()
    acting = 2 * len(LINES)
    return [
        *([] if len(found) == acting else [f"{run} has {len(found)} results of arrays, not {acting}"]),
        *([] if built >= acting else [f"{run} built {built} layouts for {acting} trials with a rebuild"]),
        *(f"{result.point}: it was complete in {SECONDS} s" for result in found if "complete_s" in result.metrics),
        *(f"{result.point}: it has no bytes" for result in found if not result.bytes),
        *(text for result in found for text in _not_each_second(result)),
        *(f"{run}: no share of the {stream}" for stream in {"reader", "array"} - _shared(run)),
        *_left(system, run),
    ]


def _complete(system: System) -> list[str]:
    """A check and a rebuild that are complete."""
    problems: list[str] = []
    for document in COMPLETE:
        with step(f"a complete {document.title}"):
            run = system.finish(system.start(document, POOL))
        _show(run)
        found = _resyncs(run)
        problems += [f"{run}: the action was not complete" for each in found if "complete_s" not in each.metrics]
        problems += [*([] if found else [f"{run} has no result of the array"]), *_left(system, run)]
    return problems


def _killed(system: System) -> list[str]:
    with step("SIGKILL of the worker during a rebuild"):
        run = _rebuilding(system)
        system.storage.kill_worker()
        system.finish(run)
    trial = run.trials.get()
    died = (trial.state, trial.reason_code) == ("failed", "worker_died")
    wrong = [] if died else [f"{run}: its trial ended as {trial.state} {trial.reason_code}: {trial.reason}"]
    return [*wrong, *not_as_asked(run), *system.storage.left_on_drives(), *locks()]


def _cancelled(system: System) -> list[str]:
    with step("a run is cancelled during a rebuild"):
        run = _rebuilding(system)
        cancel_run(run=run, by=None)
        system.finish(run)
    wrong = [] if run.state == "cancelled" else [f"{run} ended as {run.state}: {run.reason}"]
    return [*wrong, *not_as_asked(run), *system.storage.left_on_drives(), *locks()]


def _rebuilding(system: System) -> Run:
    """A run that rebuilds for a long time."""
    run = system.start(LONG, POOL)
    samples = Sample.objects.filter(attempt__run=run, direction=Direction.RESYNC, bytes__gt=0)
    system.wait_until(samples.exists, f"{run} rebuilds")
    return run


def _left(system: System, run: Run) -> list[str]:
    return [*not_done(run), *not_as_asked(run), *system.storage.left_on_drives(), *locks()]


def _resyncs(run: Run) -> list[Result]:
    return list(Result.objects.filter(run=run, direction=Direction.RESYNC).order_by("trial__index"))


def _not_each_second(result: Result) -> Iterator[str]:
    """Every second has a sample, and progress nearly always."""
    samples = Sample.objects.filter(attempt__trial=result.trial, direction=Direction.RESYNC)
    moved = list(samples.values_list("bytes", flat=True))
    if sum(moved) != result.bytes:
        yield f"{result.point}: the samples have {sum(moved)} bytes, the result {result.bytes}"
    if sum(count > 0 for count in moved) < SECONDS / 2:
        yield f"{result.point}: progress in only {sum(count > 0 for count in moved)} of {len(moved)} samples"


def _shared(run: Run) -> set[str]:
    """Streams that were matched with themselves alone. One repeat is too few for a ratio."""
    return {name for share in shares_of(run, IOPS) if share.n for name in share.streams}


def _show(run: Run) -> None:
    rows = [
        (
            str(result.point["stream"]), f"beside {result.point['beside']}", str(result.point[LAYOUT]),
            f"{(result.bytes_per_s or 0) / 1e6:.1f} MB/s", f"{(result.runtime_ms or 0) / 1000:.0f} s",
            f"complete in {result.metrics['complete_s']:.0f} s" if "complete_s" in result.metrics else "",
        )
        for result in Result.objects.filter(run=run).order_by("trial__index", "id")
    ]  # fmt: skip
    say("\n".join(["", *columns(rows), ""]))
