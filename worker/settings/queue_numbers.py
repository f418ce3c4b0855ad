"""The plain numbers of the block queue (kernel: Documentation/ABI/stable/sysfs-block)."""

from worker.settings.queue_file import QueueFile

READ_AHEAD = QueueFile("read_ahead_kb", "read-ahead of buffered reads, KiB")
NR_REQUESTS = QueueFile("nr_requests", "requests that the queue holds for each direction")
RQ_AFFINITY = QueueFile(
    "rq_affinity", "where requests complete: 0 anywhere, 1 same group of CPUs, 2 same CPU", choices=("0", "1", "2")
)
NOMERGES = QueueFile("nomerges", "merging of requests: 0 all, 1 only the simple kind, 2 none", choices=("0", "1", "2"))
# Writing it makes the kernel work out the read-ahead anew (seen on 6.18: 64 KiB became 1024).
MAX_SECTORS = QueueFile("max_sectors_kb", "largest single request, KiB", rank=1, disturbs=("read_ahead_kb",))
