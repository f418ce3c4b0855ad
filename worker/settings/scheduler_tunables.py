"""Tunables of the I/O schedulers. They exist only while their scheduler is in use.

Kernel: Documentation/block/{deadline-iosched,kyber-iosched,bfq-iosched}.rst. They are written
after the scheduler was selected, and disappear when another scheduler is selected.
"""

from pathlib import Path

from worker.kernel import sysfs
from worker.settings.base import QueueFile, SettingError, refused
from worker.settings.scheduler import SCHEDULER

_RANK, _AFTER_OTHERS = 3, 4
# When enabled, it raises bfq's idling time to at least 8 ms (bfq_strict_guarantees_store in block/bfq-iosched.c).
_DISTURBS = {"strict_guarantees": ("bfq.slice_idle_us",)}


class SchedulerTunable(QueueFile):
    def __init__(self, scheduler: str, tunable: str, description: str) -> None:
        super().__init__(
            f"{scheduler}.{tunable}",
            description,
            file=f"queue/iosched/{tunable}",
            rank=_AFTER_OTHERS if tunable == "slice_idle_us" else _RANK,
            disturbs=_DISTURBS.get(tunable, ()),
        )
        self.scheduler = scheduler

    def path(self, subject: str) -> Path:
        if SCHEDULER.read(subject) != self.scheduler:
            raise refused(self.missing(subject))
        return super().path(subject)

    def missing(self, subject: str) -> str:
        now = SCHEDULER.read(subject) if sysfs.exists(subject) else "no scheduler"
        if now == self.scheduler:
            return f"{self.scheduler} of this kernel has no {self.name.partition('.')[2]}."
        return f"{self.name} exists only with scheduler {self.scheduler}; {subject} has {now}: also set scheduler."

    def vanished(self, subject: str) -> bool:
        return SCHEDULER.read(subject) != self.scheduler or not self.path(subject).exists()

    def discover(self, subject: str) -> bool:
        try:
            return super().discover(subject)
        except SettingError:
            return False


_KNOWN = {
    "mq-deadline": {
        "read_expire": "deadline of a read, ms",
        "write_expire": "deadline of a write, ms",
        "writes_starved": "batches of reads before a batch of writes",
        "fifo_batch": "requests of one direction in a batch",
        "front_merges": "merging at the front of a request: 0 off",
        "async_depth": "maximum number of requests for asynchronous writes",
        "prio_aging_expire": "maximum wait of low-priority requests, ms",
    },
    "kyber": {
        "read_lat_nsec": "target latency of reads, ns",
        "write_lat_nsec": "target latency of writes, ns",
    },
    "bfq": {
        "low_latency": "prefer interactive processes: 0 off",
        "slice_idle_us": "time to wait for the next request of a process, µs",
        "max_budget": "sectors served for a process before the next one, 0 chosen by bfq",
        "timeout_sync": "time that a process may use the drive for synchronous requests, ms",
        "strict_guarantees": "one request at a time: 1 on",
        "fifo_expire_sync": "deadline of a synchronous request, ms",
        "fifo_expire_async": "deadline of an asynchronous request, ms",
        "back_seek_max": "maximum backward seek, KiB",
        "back_seek_penalty": "cost of a backward seek relative to a forward seek",
    },
}
SCHEDULER_TUNABLES = tuple(
    SchedulerTunable(scheduler, tunable, words)
    for scheduler, known in _KNOWN.items()
    for tunable, words in known.items()
)
