"""The plain files of the block queue (kernel: Documentation/ABI/stable/sysfs-block)."""

from worker.settings.base import QueueFile

_ON_OFF = ("0", "1")
# The kernel recalculates the read-ahead whenever a limit or feature of the queue is written
# (observed on 6.18: 64 KiB became 1024), so these settings are written before the read-ahead.
_RECKONS_READ_AHEAD = 1
_READ_AHEAD = ("read_ahead_kb",)
# mq-deadline recalculates its async_depth (observed on 6.1: it becomes the previous nr_requests).
NR_REQUESTS = QueueFile(
    "nr_requests", "size of the request queue, for each direction", disturbs=("mq-deadline.async_depth",)
)
RQ_AFFINITY = QueueFile(
    "rq_affinity", "where requests complete: 0 anywhere, 1 same group of CPUs, 2 same CPU", choices=("0", "1", "2")
)
NOMERGES = QueueFile("nomerges", "merging of requests: 0 all, 1 only simple merges, 2 none", choices=("0", "1", "2"))
MAX_SECTORS = QueueFile("max_sectors_kb", "largest single request, KiB", rank=_RECKONS_READ_AHEAD, disturbs=_READ_AHEAD)
# Since 5.16 the kernel ignores writes: only poll queues of the driver count. Reading the value back shows this.
IO_POLL = QueueFile(
    "io_poll",
    "polled completions, 1 on (needs poll queues of the driver)",
    choices=_ON_OFF,
    rank=_RECKONS_READ_AHEAD,
    disturbs=_READ_AHEAD,
)
ROTATIONAL = QueueFile(
    "rotational",
    "whether the kernel treats the drive as a rotating disk: 1 yes",
    choices=_ON_OFF,
    rank=_RECKONS_READ_AHEAD,
    disturbs=_READ_AHEAD,
)
ADD_RANDOM = QueueFile(
    "add_random",
    "whether completions feed the kernel's random pool: 1 yes",
    choices=_ON_OFF,
    rank=_RECKONS_READ_AHEAD,
    disturbs=_READ_AHEAD,
)
IOSTATS = QueueFile(
    "iostats",
    "whether the kernel counts the device's I/O: 1 yes",
    choices=_ON_OFF,
    rank=_RECKONS_READ_AHEAD,
    disturbs=_READ_AHEAD,
)
# The kernel's assumption, not the drive's own cache mode: with "write through" the kernel sends no flushes.
WRITE_CACHE = QueueFile(
    "write_cache",
    "whether the kernel sends flushes: write back yes, write through no",
    choices=("write back", "write through"),
    rank=_RECKONS_READ_AHEAD,
    disturbs=_READ_AHEAD,
    by_name_only=True,
)
QUEUE_DEPTH = QueueFile(
    "queue_depth", "maximum number of commands in flight at a SCSI drive", file="device/queue_depth"
)
