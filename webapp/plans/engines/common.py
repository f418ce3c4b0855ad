"""Factors shared by several engines."""

from webapp.plans.factor import Factor, FactorKind
from webapp.plans.values import Choice, Count, Duration, Multiple, Size, Switch
from worker.contract.workload import Buffers

SIZE = Factor(
    "size",
    "Size",
    Size(whole="whole device"),
    unit="B",
    cost=20,
    example="1G",
    help="size of each file, or of the used part of a device; `whole` for a whole device",
)
SIZE_PERCENT = Factor(
    "size_percent",
    "Size, share of capacity",
    Count(1, 100, " %"),
    unit="%",
    kind=FactorKind.OPTION,
    cost=20,
    example="10..100 +10",
    help="of a device or file, or of the free space of a directory; resolved when a run starts",
)
SIZE_MEMORY = Factor(
    "size_memory",
    "Size, multiple of memory",
    Multiple(),
    kind=FactorKind.OPTION,
    cost=20,
    example="0.5x, 2x",
    help="of the host's memory; resolved when a run starts",
)
RUNTIME = Factor("runtime", "Time", Duration(low=1), unit="s", default=10, help="of one trial", example="10s")
FILES = Factor("files", "Files", Count(1, 1024), cost=20, default=1, help="in a directory", directories_only=True)
PREFILL = Factor(
    "prefill",
    "Written first",
    Switch(),
    cost=10,
    default=True,
    help="files in a directory are written completely before the first read",
    directories_only=True,
)
BUFFERS = Factor(
    "buffers",
    "Data",
    Choice(tuple(Buffers)),
    cost=10,
    default=Buffers.INCOMPRESSIBLE.value,
    help="data written: incompressible, refilled for every I/O (slows fio), one random buffer repeated, or zeroes",
)
DROP_CACHES = Factor(
    "drop_caches", "Caches dropped", Switch(), default=False, help="drops the host's page cache before each trial"
)
