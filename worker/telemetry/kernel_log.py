"""Storage errors, resets and timeouts in the kernel's log during a trial, from /dev/kmsg.

Each record has a number (Documentation/ABI/testing/dev-kmsg), so each line is reported once, and
records that the kernel overwrote before they were read are detected.
"""

import contextlib
import os
import re
import time
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from typing import Self

from worker.contract.items import KernelLine
from worker.kernel import sysfs
from worker.kernel.sysfs import SYS
from worker.kernel.targets import OpenTarget

# Decide whether a line of the kernel's log is about the trial's devices or about something elsewhere on the host.
#
# A line is the trial's only if it names one of these:
#
#     devices   those of the targets, the members of a layout, and partitions of both
#     parents   the devices under them, down to the disks; for a loop device, the disk of its file
#     links     on the way to these disks: PCI functions, NVMe controllers, ATA ports, SCSI hosts, targets and
#               addresses, SAS, FC and iSCSI ports, and the driver's name of the adapter (mpt3sas_cm0)
#
# Every other line is elsewhere, also if it names nothing: an error of another drive must not make a trial doubtful.

_PCI_ADDRESS = sysfs.PCI_ADDRESS.pattern.removeprefix("^").removesuffix(r"\Z")
_LINK = re.compile(
    rf"ata\d+|host\d+|target\d+:\d+:\d+|\d+:\d+:\d+:\d+|nvme\d+|virtio\d+|session\d+|rport-\d+:\d+-\d+|"
    rf"(?:end_device|expander|port)-\d+:\d+(?::\d+)?|{_PCI_ADDRESS}",
    re.ASCII,
)
_NAMESPACE = re.compile(r"nvme(\d+)n(\d+)", re.ASCII)
_ARRAY = re.compile(r"md(\d+|_\w+)", re.ASCII)
_NO_WORD = r"(?<![\w-])"
# A journal's name ends with the number of its inode: jbd2/sda1-8.
_ENDS = r"(?!\w|-\D)"


class KernelNames:
    """Names of the trial's devices and links. Without names, every line is elsewhere."""

    def __init__(
        self, names: Collection[str] = (), *, disks: Collection[str] = (), numbers: Collection[str] = ()
    ) -> None:
        """`disks`: those of the names whose partitions are the trial's. `numbers`: major:minor of the devices."""
        named = [_spelling(name, is_disk=name in disks) for name in sorted(names)]
        numbered = [rf"{re.escape(each)}(?!\w|:\d)" for each in sorted(numbers)]
        self._names = re.compile(rf"{_NO_WORD}(?:{'|'.join(named)})", re.ASCII) if named else None
        self._numbers = re.compile(rf"{_NO_WORD}(?:{'|'.join(numbered)})", re.ASCII) if numbered else None

    def elsewhere(self, text: str) -> bool:
        """True if the text names nothing of the trial."""
        if self._names and self._names.search(text):
            return False
        return not (self._numbers and "device-mapper" in text and self._numbers.search(text))


def _spelling(name: str, *, is_disk: bool) -> str:
    """A pattern for the name in log lines, as a whole word: loop1 is not in loop14."""
    escaped = re.escape(name.replace("!", "/"))
    if is_disk:
        return escaped + (r"(?:p\d+)?" if name[-1].isdigit() else r"\d*") + _ENDS
    if name.startswith("mapper/"):
        return escaped + r"(?![\w.+-])"
    if _ARRAY.fullmatch(name):
        return escaped + r"(?:_\w+)?" + _ENDS  # its threads: md0_raid1
    return escaped + _ENDS


def names_in(targets: Iterable[OpenTarget], sys: Path = SYS) -> KernelNames:
    """The names for a trial on these targets."""
    return kernel_names([name for each in targets for name in (*each.devices, *each.members)], sys)


def names_at(paths: Iterable[str], sys: Path = SYS) -> KernelNames:
    """The names for a trial that has not opened its targets yet."""
    return kernel_names([sysfs.device_under(path, sys) for path in paths if path.startswith("/")], sys)


def kernel_names(devices: Iterable[str], sys: Path = SYS) -> KernelNames:
    """The names for a trial on these block devices."""
    targets = {name for name in devices if sysfs.exists(name, sys)}
    partitions = {part for name in targets for part in sysfs.partitions(name, sys)}
    every = targets | partitions | _parents(targets, sys)
    return KernelNames(
        {called for name in every for called in _called(name, sys)},
        disks={name for name in targets if not sysfs.is_partition(name, sys)},
        numbers={numbers for name in every if (numbers := sysfs.major_minor(name, sys))},
    )


def _parents(names: Iterable[str], sys: Path) -> set[str]:
    """All devices below these, also below the files of loop devices."""
    parents: set[str] = set()
    todo = list(names)
    while todo:
        name = todo.pop()
        below = {*sysfs.parents(name, sys)}
        if backing_file := sysfs.backing_file(name, sys):
            below.add(sysfs.device_under(backing_file, sys))
        todo += below - parents - {""}
        parents |= below - {""}
    return parents


def _called(name: str, sys: Path) -> Iterator[str]:
    """Names of the device and of its links in log lines."""
    yield name
    if mapped := sysfs.attribute(name, "dm/name", sys):
        yield f"mapper/{mapped}"
    for way in sysfs.ways(name, sys):
        links = [part for part in way.parts if _LINK.fullmatch(part)]
        yield from links
        for host in (link.removeprefix("host") for link in links if link.startswith("host")):
            yield from _adapter(host, sys)
        if namespace := _NAMESPACE.fullmatch(sysfs.whole(name, sys)):
            subsystem, number = namespace.groups()
            for controller in (link.removeprefix("nvme") for link in links if link.startswith("nvme")):
                yield f"nvme{subsystem}c{controller}n{number}"  # the path over one of several controllers


def _adapter(host: str, sys: Path) -> Iterator[str]:
    """Names of the adapter of a SCSI host: scsi0, and those that its driver gives it."""
    yield f"scsi{host}"
    at = sys / "class/scsi_host" / f"host{host}"
    driver, number = sysfs.text(at / "proc_name"), sysfs.text(at / "unique_id")
    if driver in ("mpt2sas", "mpt3sas"):
        yield f"{driver}_cm{number}"
    elif driver.startswith("mpt"):
        yield f"ioc{number}"
    elif driver:
        yield f"{driver}{host}"  # arcmsr0


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
        lines = [line for record in self._records() if (line := self.take(record)) is not None]
        return tuple(line for line in lines if not without or without not in line.text)

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
