"""Storage errors, resets and timeouts in the kernel's log during a trial, from /dev/kmsg.

Each record has a number (Documentation/ABI/testing/dev-kmsg), so each line is reported once, and
records that the kernel overwrote before they were read are detected.
"""

import contextlib
import os
import re
import time
from typing import Self

from worker.contract.items import KernelLine
from worker.telemetry.kernel_names import KernelNames

ERROR, WARNING = 3, 4  # syslog levels
MAX_LINES = 200  # of one trial; a failing drive can cause ten thousand equal lines
MAX_OTHER_LINES = 50  # of these, lines about anything elsewhere on the host
MAX_RECORDS = 2_000  # in one read
MAX_LINE = 1_000
# Sources: block layer, NVMe, SCSI and its hosts, ATA, RAID controllers, md, device mapper, file systems, PCIe.
_STORAGE = re.compile(
    r"(?<![\w/-])(nvme\w*|sd[a-z]+\d*|sd \d+:|scsi\d*|ata\d+(\.\d+)?|ahci|mpt\d?(sas|base|scsih|spi|fc)\w*|ioc\d+|"
    r"megaraid\w*|megasas|hpsa|smartpqi|aacraid|arcmsr|3w-\w+|mvsas|virtio_blk|virtio_scsi|vd[a-z]+\d*|loop\d+|"
    r"md\d*|md/raid\w*|dm-\d+|device-mapper|blk_\w+|EXT[234]-fs|XFS|JFS|BTRFS|F2FS-fs|jbd2|pcieport|AER|PCIe)"
    r"(?![A-Za-z])",
    re.ASCII,
)
_WHOEVER = re.compile(
    r"I/O error|medium error|blocked for more than \d+ seconds|Remounting filesystem read-only",
    re.IGNORECASE | re.ASCII,
)
_TROUBLE = re.compile(
    r"error|fail|fault|reset|time[d ]*out|abort|offline|degraded|corrupt|lost|disabl|not respond|frozen|dead|removed|"
    r"detached|uncorrect|unrecover|read-only|reject|sense key",
    re.IGNORECASE,
)


class KernelWatch:
    """Reads the log from its current end. `readable` is False without permission, usually in a container."""

    def __init__(self, names: KernelNames | None = None) -> None:
        self.readable = False
        self._fd: int | None = None
        self._next: int | None = None
        self._told = self._elsewhere = 0
        self._names = names or KernelNames()
        self._since = time.time()

    def __enter__(self) -> Self:
        with contextlib.suppress(OSError):
            self._fd = os.open("/dev/kmsg", os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
            os.lseek(self._fd, 0, os.SEEK_END)
            self.readable = True
        return self

    def __exit__(self, *_: object) -> None:
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None

    def about(self, names: KernelNames) -> None:
        """Set the devices of the trial. Lines that are read before this call are elsewhere."""
        self._names = names

    def lines(self, *, without: str = "") -> tuple[KernelLine, ...]:
        """Lines about storage since the last call, at most MAX_LINES per trial. Lines that contain the text `without`
        report what the worker itself did, and are left out."""
        found = [line for record in self._records() if (line := self.take(record)) is not None]
        return tuple(line for line in found if not without or without not in line.text)

    def take(self, record: str) -> KernelLine | None:
        """The line of a record `priority,sequence,microseconds,flags;text`, if it reports a storage problem."""
        head, _, rest = record.partition(";")
        fields = head.split(",")
        if len(fields) < 3 or not all(field.isdigit() for field in fields[:3]):
            return None
        level, sequence, at_us = int(fields[0]) & 7, int(fields[1]), int(fields[2])
        missed = sequence - self._next if self._next is not None else 0
        self._next = sequence + 1
        text = rest.partition("\n")[0]
        is_problem = is_storage_problem(level, text)
        if missed <= 0 and not is_problem:
            return None
        elsewhere = not is_problem or self._names.elsewhere(text)
        if missed > 0:
            text, level = f"{missed} records before this one were overwritten: {text}", min(level, WARNING)
        if self._told >= MAX_LINES or (elsewhere and self._elsewhere >= MAX_OTHER_LINES):
            return None
        self._told += 1
        self._elsewhere += elsewhere
        if self._told == MAX_LINES:
            text = f"{text} (further lines of this trial are dropped)"
        elif elsewhere and self._elsewhere == MAX_OTHER_LINES:
            text = f"{text} (further lines about the rest of the host are dropped)"
        at = self._unix_time(at_us)
        return KernelLine(sequence=sequence, at=at, level=level, text=text[:MAX_LINE], elsewhere=elsewhere)

    def _unix_time(self, at_us: int) -> float:
        """Convert µs since boot to Unix time. The log's clock drifts, so the result is limited to the trial's time."""
        now = time.time()
        return min(now, max(self._since, now - time.clock_gettime(time.CLOCK_MONOTONIC) + at_us / 1e6))

    def _records(self) -> list[str]:
        records: list[str] = []
        while self._fd is not None and len(records) < MAX_RECORDS:
            try:
                records.append(os.read(self._fd, 8192).decode(errors="replace"))
            except BrokenPipeError:
                continue  # overtaken by the ring buffer: the next read continues with the oldest line
            except OSError:
                break
        return records


def is_storage_problem(level: int, text: str) -> bool:
    """True if the line is about storage and reports an error."""
    if _WHOEVER.search(text):
        return True
    return _STORAGE.search(text) is not None and (level <= ERROR or _TROUBLE.search(text) is not None)
