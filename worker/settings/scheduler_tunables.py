"""Tunables of the I/O schedulers, there only while their scheduler is in use.

Kernel: Documentation/block/{deadline-iosched,kyber-iosched,bfq-iosched}.rst. They are written
after the scheduler was chosen; when another scheduler is switched on they are gone with theirs.
"""

from pathlib import Path

from worker.inventory import sysfs
from worker.settings.base import SettingError, refused
from worker.settings.queue_file import QueueFile
from worker.settings.scheduler import SCHEDULER

_RANK, _AFTER_OTHERS = 3, 4
# Switched on, it makes bfq's idling at least 8 ms (bfq_strict_guarantees_store in block/bfq-iosched.c).
_DISTURBS = {"strict_guarantees": ("bfq.slice_idle_us",)}


class SchedulerTunable(QueueFile):
    vanishes = True

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
        return f"{self.name} is there only with scheduler {self.scheduler}; {subject} has {now}: set scheduler, too."

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
        "front_merges": "merging in front of a request: 0 off",
        "async_depth": "requests that asynchronous writes may take",
        "prio_aging_expire": "how long low priority may wait, ms",
    },
    "kyber": {
        "read_lat_nsec": "latency that reads aim at, ns",
        "write_lat_nsec": "latency that writes aim at, ns",
    },
    "bfq": {
        "low_latency": "prefer interactive processes: 0 off",
        "slice_idle_us": "idling for the next request of a process, µs",
        "max_budget": "sectors that a process may have served in one go, 0 chosen by bfq",
        "timeout_sync": "time a process may have the drive for synchronous requests, ms",
        "strict_guarantees": "one request at a time: 1 on",
        "fifo_expire_sync": "deadline of a synchronous request, ms",
        "fifo_expire_async": "deadline of an asynchronous request, ms",
        "back_seek_max": "farthest seek backwards, KiB",
        "back_seek_penalty": "cost of a seek backwards, times a seek forwards",
    },
}
SCHEDULER_TUNABLES = tuple(
    SchedulerTunable(scheduler, tunable, words)
    for scheduler, known in _KNOWN.items()
    for tunable, words in known.items()
)
