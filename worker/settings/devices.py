"""Settings of block devices and of NVMe controllers. Most are rows of `DEVICE_SETTINGS`: one file of the kernel each.

Kernel: Documentation/ABI/stable/sysfs-block, and Documentation/admin-guide/md.rst for arrays. After the rows that only
name their file come those that do more: read-ahead in sectors, write-back throttling, the drive's own cache, the
scheduler and its tunables, and features of NVMe controllers.
"""

import contextlib
import fcntl
import os
import re
import struct
from collections.abc import Callable
from pathlib import Path

from worker.kernel import sysfs
from worker.kernel.sysfs import SYS, active_choice, parse_choice
from worker.settings.base import KernelFile, Setting, SettingError, SettingScope, read_file, refused, write_file

_ON_OFF = ("0", "1")
_CACHE_MODES = ("write back", "write through")
_SYSTEM = "system"
READ_AHEAD = KernelFile("read_ahead_kb", "read-ahead of buffered reads, KiB", stacked=True)
SECTORS_PER_KIB = 2


class ReadAheadSectors(KernelFile):
    """The state of `read_ahead_kb`, in sectors of 512 bytes as `blockdev --setra` counts."""

    @property
    def key(self) -> str:
        return READ_AHEAD.name

    def read(self, subject: str) -> str:
        return str(int(READ_AHEAD.read(subject)) * SECTORS_PER_KIB)

    def apply(self, subject: str, value: str) -> None:
        self._refuse_malformed(value)
        if int(value) % SECTORS_PER_KIB:
            raise refused(f"{self.name} cannot be {value}: the kernel stores whole KiB, so it must be even.")
        self._write(subject, str(int(value) // SECTORS_PER_KIB))

    def capture(self, subject: str) -> str:
        return READ_AHEAD.capture(subject)


class WritebackThrottling(KernelFile):
    """The target read latency of write-back throttling, in µs; 0 is off, -1 is the kernel's default."""

    def verify(self, subject: str, asked: str, observed: str) -> bool:
        """After -1 the kernel shows the default that it chose."""
        return observed.isdecimal() if asked == "-1" else super().verify(subject, asked, observed)

    def restore(self, subject: str, state: str) -> None:
        """Write -1 first: after writing a number, the kernel no longer adjusts its default."""
        with contextlib.suppress(SettingError):
            self._write(subject, "-1")
            if self.read(subject) == state:
                return
        self._write(subject, state)


class DriveWriteCache(KernelFile):
    """The write cache inside a SCSI or SATA drive; the kernel sends MODE SELECT (scsi_disk's cache_type).

    Drives may keep this setting over a power cycle, so it is also restored after a restart."""

    survives_reboot = True

    def path(self, subject: str) -> Path:
        disk = sysfs.node(sysfs.whole(subject, self._sys), self._sys)
        file = next((disk / "device/scsi_disk").glob("*:*:*:*/cache_type"), None)
        if file is None:
            raise refused(self.missing(subject))
        return file

    def missing(self, subject: str) -> str:
        return f"{subject} is not a SCSI or SATA drive whose write cache the kernel can switch."


def sync_speed(end: str, description: str, sys: Path = SYS) -> KernelFile:
    """The file shows `1000 (system)` or `5000 (local)`; writing `system` returns to the host's limit."""

    def meaning(text: str) -> str:
        number, _, origin = text.partition(" ")
        return _SYSTEM if origin == f"({_SYSTEM})" else number

    return KernelFile(
        f"md.sync_speed_{end}",
        f"{description} of rebuild and check, KiB/s, or `{_SYSTEM}`",
        file=f"md/sync_speed_{end}",
        form=re.compile(rf"{_SYSTEM}|[0-9]{{1,18}}"),
        meaning=meaning,
        stacked=True,
        sys=sys,
    )


def _limit(name: str, description: str, *, choices: tuple[str, ...] = (), by_name_only: bool = False) -> KernelFile:
    """A limit or feature of the queue. The kernel recalculates the read-ahead whenever one is written.

    Observed on 6.18: 64 KiB became 1024. So these settings are written before the read-ahead.
    """
    return KernelFile(
        name, description, choices=choices, by_name_only=by_name_only, rank=1, disturbs=(READ_AHEAD.name,)
    )


# The I/O scheduler. The file shows all of them with the one in use in brackets: `none [mq-deadline] kyber`.
#
# A newly selected scheduler starts with its defaults. The captured state is therefore the name with all tunables:
# `mq-deadline fifo_batch=16 read_expire=100`.

# Modules on many systems, including Debian.
_HINTS = {
    name: f" If it is a module, load it on the host: `modprobe {module}`."
    for name, module in (("bfq", "bfq"), ("kyber", "kyber-iosched"), ("mq-deadline", "mq-deadline"))
}


class Scheduler(KernelFile):
    def choices(self, subject: str) -> tuple[str, ...]:
        try:
            return parse_choice(self.text(subject))[1]
        except SettingError:
            return ()

    def apply(self, subject: str, value: str) -> None:
        """Accept only schedulers that the kernel lists, because any other name would make it load a module."""
        listed = self.choices(subject)
        if value not in listed:
            raise refused(
                f"scheduler of {subject} cannot be {value!r}; possible values: {', '.join(listed) or 'none'}."
                f"{_HINTS.get(value, '')}"
            )
        self._write(subject, value)

    def capture(self, subject: str) -> str:
        tunables = (f"{name}={value}" for name, value in self._tunables(subject).items())
        return " ".join((self.read(subject), *tunables))

    def same(self, one: str, other: str) -> bool:
        """Compare by name: tunables are captured and restored as separate settings."""
        return self.shown(one) == self.shown(other)

    def shown(self, state: str) -> str:
        return state.partition(" ")[0]

    def restore(self, subject: str, state: str) -> None:
        name, *pairs = state.split()
        self._write(subject, name)
        now = self._tunables(subject)
        for pair in pairs:
            tunable, _, value = pair.partition("=")
            if now.get(tunable) != value:
                self._write_tunable(subject, tunable, value)

    def _write_tunable(self, subject: str, tunable: str, value: str) -> None:
        path, what = self.path(subject).parent / "iosched" / tunable, f"{tunable} of {subject}'s scheduler"
        write_file(path, value, what)
        if read_file(path, what) != value:
            raise SettingError("setting_clamped", f"{what} could not be restored to {value}.")

    def _tunables(self, subject: str) -> dict[str, str]:
        directory = self.path(subject).parent / "iosched"
        if not directory.is_dir():
            return {}
        return {path.name: read_file(path, path.name) for path in sorted(directory.iterdir()) if path.is_file()}


# A change resets the number of requests and write-back throttling to their defaults.
SCHEDULER = Scheduler(
    "scheduler", "I/O scheduler", meaning=active_choice, rank=0, disturbs=("nr_requests", "wbt_lat_usec")
)


# Tunables of the I/O schedulers. They exist only while their scheduler is in use.
#
# Kernel: Documentation/block/{deadline-iosched,kyber-iosched,bfq-iosched}.rst. They are written after the scheduler
# was selected, and disappear when another scheduler is selected.

_RANK, _AFTER_OTHERS = 3, 4
# When enabled, it raises bfq's idling time to at least 8 ms (bfq_strict_guarantees_store in block/bfq-iosched.c).
_DISTURBS = {"strict_guarantees": ("bfq.slice_idle_us",)}


class SchedulerTunable(KernelFile):
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
IOSTATS = _limit("iostats", "whether the kernel counts the device's I/O: 1 yes", choices=_ON_OFF)


DEVICE_SETTINGS: tuple[Setting, ...] = (
    SCHEDULER,
    READ_AHEAD,
    ReadAheadSectors(
        "read_ahead_sectors",
        "read-ahead in sectors of 512 bytes, as blockdev --setra counts",
        file="queue/read_ahead_kb",
        stacked=True,
    ),
    # mq-deadline recalculates its async_depth (observed on 6.1: it becomes the previous nr_requests).
    KernelFile("nr_requests", "size of the request queue, for each direction", disturbs=("mq-deadline.async_depth",)),
    KernelFile(
        "rq_affinity", "where requests complete: 0 anywhere, 1 same group of CPUs, 2 same CPU", choices=("0", "1", "2")
    ),
    KernelFile("nomerges", "merging of requests: 0 all, 1 only simple merges, 2 none", choices=("0", "1", "2")),
    WritebackThrottling(
        "wbt_lat_usec",
        "target latency of write-back throttling, µs (-1: default)",
        form=re.compile(r"-1|[0-9]{1,18}"),
    ),
    _limit("max_sectors_kb", "largest single request, KiB"),
    # Since 5.16 the kernel ignores writes: only poll queues of the driver count. Reading the value back shows this.
    _limit("io_poll", "polled completions, 1 on (needs poll queues of the driver)", choices=_ON_OFF),
    _limit("rotational", "whether the kernel treats the drive as a rotating disk: 1 yes", choices=_ON_OFF),
    _limit("add_random", "whether completions feed the kernel's random pool: 1 yes", choices=_ON_OFF),
    IOSTATS,
    # The kernel's assumption, not the drive's own cache mode: with "write through" the kernel sends no flushes.
    _limit(
        "write_cache",
        "whether the kernel sends flushes: write back yes, write through no",
        choices=_CACHE_MODES,
        by_name_only=True,
    ),
    KernelFile("queue_depth", "maximum number of commands in flight at a SCSI drive", file="device/queue_depth"),
    DriveWriteCache(
        "drive_write_cache", "the write cache inside a SCSI or SATA drive", choices=_CACHE_MODES, by_name_only=True
    ),
    *SCHEDULER_TUNABLES,
    KernelFile(
        "md.stripe_cache_size",
        "size of the stripe cache of RAID 4, 5 and 6, in pages per drive",
        file="md/stripe_cache_size",
        stacked=True,
    ),
    sync_speed("min", "minimum speed"),
    sync_speed("max", "maximum speed"),
)


# Features of an NVMe controller, read and set through the kernel's admin passthrough, without a tool.
#
# NVM Express Base Specification 1.4, 5.14 Get Features, 5.21 Set Features; the command's layout is `struct
# nvme_passthru_cmd` of linux/nvme_ioctl.h.

_ADMIN_COMMAND = 0xC0484E41  # NVME_IOCTL_ADMIN_CMD
_COMMAND = struct.Struct("=BBHIIIQQIIIIIIIIII")
_SET_FEATURES, _GET_FEATURES = 0x09, 0x0A
_LIMIT_MS = 5000
_POWER_STATE, _WRITE_CACHE = 0x02, 0x06


class NvmeFeature(Setting):
    """One number in Dword 11. It is set without "save", so a restart of the controller resets it."""

    scope = SettingScope.CONTROLLER
    by_name_only = True

    def __init__(
        self, name: str, feature: int, description: str, allowed: Callable[[str], bool], mask: int, *, sys: Path = SYS
    ) -> None:
        self.name = name
        self._feature = feature
        self.description = description
        self._allowed = allowed
        self._mask = mask
        self._sys = sys

    def read(self, subject: str) -> str:
        return str(self._command(subject, _GET_FEATURES) & self._mask)

    def apply(self, subject: str, value: str) -> None:
        if not (value.isascii() and value.isdigit() and self._allowed(value)):
            raise refused(f"{self.name} cannot be {value!r}: {self.description}.")
        self._command(subject, _SET_FEATURES, int(value))

    def missing(self, subject: str) -> str:
        return f"{subject} is not an NVMe controller, or has no {self.name}."

    def _command(self, subject: str, opcode: int, value: int = 0) -> int:
        """The command's result; raises SettingError with the kernel's or the controller's reason."""
        head, tail = (opcode, *[0] * 9), (0, 0, 0, 0, _LIMIT_MS, 0)
        command = bytearray(_COMMAND.pack(*head, self._feature, value, *tail))
        try:
            fd = os.open(self._device(subject), os.O_RDWR | os.O_CLOEXEC)
            try:
                status = fcntl.ioctl(fd, _ADMIN_COMMAND, command)
            finally:
                os.close(fd)
        except OSError as error:
            raise refused(f"{self.name} of {subject}: {error.strerror}.") from error
        if status:
            raise refused(f"{self.name} of {subject}: the controller refused the command with status {status:#x}.")
        return int(_COMMAND.unpack(bytes(command))[-1])

    def _device(self, subject: str) -> Path:
        device = next((self._sys / "bus/pci/devices" / subject / "nvme").glob("nvme*"), None)
        if device is None:
            raise refused(self.missing(subject))
        return Path("/dev") / device.name


NVME_WRITE_CACHE = NvmeFeature(
    "nvme.write_cache", _WRITE_CACHE, "the volatile write cache of the controller: 0 off, 1 on", "01".__contains__, 1
)
NVME_POWER_STATE = NvmeFeature(
    "nvme.power_state", _POWER_STATE, "power state of the controller, 0 (fastest) to 31", lambda v: int(v) < 32, 31
)
