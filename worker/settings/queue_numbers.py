"""The plain files of the block queue (kernel: Documentation/ABI/stable/sysfs-block)."""

from worker.settings.queue_file import QueueFile

_ON_OFF = ("0", "1")
# The kernel works out the read-ahead anew whenever one of the queue's limits or features is written
# (seen on 6.18: 64 KiB became 1024), so these are written before it.
_RECKONS_READ_AHEAD = 1
_READ_AHEAD = ("read_ahead_kb",)
# mq-deadline reckons its async_depth anew (seen on 6.1: it becomes what nr_requests was before).
NR_REQUESTS = QueueFile(
    "nr_requests", "requests that the queue holds for each direction", disturbs=("mq-deadline.async_depth",)
)
RQ_AFFINITY = QueueFile(
    "rq_affinity", "where requests complete: 0 anywhere, 1 same group of CPUs, 2 same CPU", choices=("0", "1", "2")
)
NOMERGES = QueueFile("nomerges", "merging of requests: 0 all, 1 only the simple kind, 2 none", choices=("0", "1", "2"))
MAX_SECTORS = QueueFile("max_sectors_kb", "largest single request, KiB", rank=_RECKONS_READ_AHEAD, disturbs=_READ_AHEAD)
# Since 5.16 the kernel takes a write and ignores it: polling comes with the driver's poll queues. Read back, it shows.
IO_POLL = QueueFile(
    "io_poll",
    "polled completions, 1 on (needs poll queues of the driver)",
    choices=_ON_OFF,
    rank=_RECKONS_READ_AHEAD,
    disturbs=_READ_AHEAD,
)
ROTATIONAL = QueueFile(
    "rotational",
    "what the kernel takes the drive for: 1 a disk with a seek time",
    choices=_ON_OFF,
    rank=_RECKONS_READ_AHEAD,
    disturbs=_READ_AHEAD,
)
ADD_RANDOM = QueueFile(
    "add_random",
    "completions feed the kernel's random pool: 1 yes",
    choices=_ON_OFF,
    rank=_RECKONS_READ_AHEAD,
    disturbs=_READ_AHEAD,
)
IOSTATS = QueueFile(
    "iostats",
    "the kernel counts the device's I/O: 0 saves the counting",
    choices=_ON_OFF,
    rank=_RECKONS_READ_AHEAD,
    disturbs=_READ_AHEAD,
)
# The kernel's belief, not the drive's switch: "write through" makes it send no flushes any more.
WRITE_CACHE = QueueFile(
    "write_cache",
    "whether the kernel sends flushes: write back yes, write through no (what barriers were about)",
    choices=("write back", "write through"),
    rank=_RECKONS_READ_AHEAD,
    disturbs=_READ_AHEAD,
    by_name_only=True,
)
QUEUE_DEPTH = QueueFile("queue_depth", "commands that a SCSI drive is given at once", file="device/queue_depth")
