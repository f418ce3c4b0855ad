"""A plan of scheduler × read-ahead × layout × file system on the RAID controller's drives.

It reads files sequentially through the page cache, so that read-ahead has an effect.
"""

from collections.abc import Sequence

from dev.console import columns, say, step
from dev.lab.storage_host import POOL
from dev.lab.system import System, differences, layouts_built, locks, not_as_asked, not_done
from webapp.plans.document import Part, PlanDocument
from webapp.results.models import Result, known
from webapp.runs.models import Run

SHAPES = ("single", "raid0 x4 chunk 64k", "4 drives / lvm stripe 64k")
FILE_SYSTEMS = ("xfs", "jfs")
FACTORS = ("layout", "scheduler", "read_ahead_kb")
DOCUMENT = PlanDocument(
    title="Sweep",
    repeats=1,
    drop_caches=True,
    parts=(
        Part(
            name="sweep",
            factors={
                "layout": ", ".join(f"{shape} / {kind}" for shape in SHAPES for kind in FILE_SYSTEMS),
                "scheduler": "none, mq-deadline",
                "read_ahead_kb": "0, 1024",
                "pattern": "read", "ioengine": "psync", "direct": "no", "block_size": "64k",
                "size": "8M", "amount": "8M",
            },
        ),
    ),
)  # fmt: skip


def sweep(system: System) -> list[str]:
    """The problems. Two inventories, before and after, must be equal in the product's own comparison."""
    before = system.take_inventory()
    with step("running 24 points on layouts that the plan builds"):
        run = system.finish(system.start(DOCUMENT, POOL))
    say("\n".join(["", *columns(_rows(run)), ""]))
    after = system.take_inventory()
    say(f"  {run.trial_count} points, {len(layouts_built(run))} layouts; the inventory is unchanged"
        if not (left := differences(before, after)) else "  The inventory has changed:")  # fmt: skip
    return [*not_done(run), *not_as_asked(run), *left, *system.storage.left_on_drives(), *locks()]


def _rows(run: Run) -> Sequence[Sequence[str]]:
    results = Result.objects.filter(run=run).order_by("trial__index")
    points = sorted((tuple(str(r.point[name]) for name in FACTORS), known(r.bytes_per_s), r.p99_ns) for r in results)
    numbers = [(f"{rate / 1e6:.1f}", f"{p99 / 1000:.0f}" if p99 is not None else "–") for _, rate, p99 in points]
    return [(*FACTORS, "MB/s", "p99 µs"), *((*point, *n) for (point, _, _), n in zip(points, numbers, strict=True))]
