"""The file copy engine's program: copies files in the current directory according to the job on standard input.

It prints one JSON line for each second and one at its end, also for seconds without a completed I/O, so that a drive
that does not answer is visible at once.

    {"event": "sample", "end_ms": 1000, "read": COUNTS, "write": COUNTS}
    {"event": "end", "end_ms": 2345, "end_ns": 2345678901, "fsync_ns": 120345678, "usr_ms": …, "sys_ms": …,
     "read": COUNTS, "write": COUNTS}

COUNTS: ios, bytes, sum_ns, sum2_ns2, min_ns, max_ns and `buckets`, pairs of a latency in ns and a count, as in
fio's json+ output. `end_ms` counts from the first read. Imports only the standard library, to start quickly.
"""

import errno
import fcntl
import json
import mmap
import os
import resource
import sys
import threading
import time
from collections.abc import Callable
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

FICLONE = 0x40049409  # linux/fs.h: _IOW(0x94, 9, int)
NO_REFLINKS = (errno.EOPNOTSUPP, errno.ENOTTY, errno.EINVAL, errno.EXDEV)  # ioctl_ficlone(2)
SAMPLE_S = 1.0
_BITS = 6  # fio, stat.h: FIO_IO_U_PLAT_BITS
_FLAGS = os.O_CLOEXEC | os.O_NOFOLLOW

Job = dict[str, Any]


def bucket_ns(ns: int) -> int:
    """As contract.histogram.bucket_ns, which a program that imports only the standard library cannot import."""
    top = ns.bit_length() - 1
    if top <= _BITS:
        return ns
    width = 1 << (top - _BITS)
    return ns // width * width + width // 2


class Counts:
    """Completed I/Os of one direction. Not thread-safe: `Meter` locks."""

    def __init__(self) -> None:
        self.ios = self.bytes = self.sum_ns = self.sum2_ns2 = self.max_ns = 0
        self.min_ns: int | None = None
        self.buckets: dict[int, int] = {}

    def add(self, moved: int, ns: int) -> None:
        self.ios += 1
        self.bytes += moved
        self.sum_ns += ns
        self.sum2_ns2 += ns * ns
        self.max_ns = max(self.max_ns, ns)
        self.min_ns = ns if self.min_ns is None else min(self.min_ns, ns)
        bucket = bucket_ns(ns)
        self.buckets[bucket] = self.buckets.get(bucket, 0) + 1

    def plain(self) -> dict[str, Any]:
        return {**vars(self), "buckets": sorted(self.buckets.items())}


class Meter:
    """Counts of the current second and of the whole copy."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._second = {"read": Counts(), "write": Counts()}
        self._whole = {"read": Counts(), "write": Counts()}
        self._began = time.monotonic_ns()

    def add(self, direction: str, moved: int, ns: int) -> None:
        with self._lock:
            self._second[direction].add(moved, ns)
            self._whole[direction].add(moved, ns)

    def timed(self, direction: str, call: Callable[[], int]) -> int:
        began = time.monotonic_ns()
        moved = call()
        self.add(direction, moved, time.monotonic_ns() - began)
        return moved

    def end_ns(self) -> int:
        return time.monotonic_ns() - self._began

    def say_sample(self, end_ms: int) -> None:
        with self._lock:
            second, self._second = self._second, {"read": Counts(), "write": Counts()}
            _say("sample", end_ms=end_ms, **{name: counts.plain() for name, counts in second.items()})

    def say_end(self, **more: int) -> None:
        with self._lock:
            _say("end", **more, **{name: counts.plain() for name, counts in self._whole.items()})


def _say(event: str, **fields: Any) -> None:
    sys.stdout.write(json.dumps({"event": event, **fields}, separators=(",", ":")) + "\n")
    sys.stdout.flush()


@contextmanager
def _opened(name: str, flags: int) -> Any:
    fd = os.open(name, flags | _FLAGS, 0o600)
    try:
        yield fd
    finally:
        os.close(fd)


def copy_file(job: Job, source: str, copy: str, meter: Meter) -> int:
    """Copy one file; returns the duration of its fsync in ns."""
    direct = os.O_DIRECT if job["method"] == "direct" else 0
    new = os.O_WRONLY | os.O_CREAT | os.O_EXCL
    with _opened(source, os.O_RDONLY | direct) as read, _opened(copy, new | direct) as write:
        _METHODS[job["method"]](job, read, write, meter)
        began = time.monotonic_ns()
        if job["fsync"]:
            os.fsync(write)
        return time.monotonic_ns() - began


def _by_blocks(job: Job, read: int, write: int, meter: Meter) -> None:
    with mmap.mmap(-1, job["block_bytes"]) as memory, memoryview(memory) as buffer:  # aligned, for O_DIRECT
        left = job["size_bytes"]
        while left:
            wanted = min(left, job["block_bytes"])
            with buffer[:wanted] as part:
                got = meter.timed("read", partial(os.readv, read, [part]))
            if got == 0:
                raise OSError(errno.EIO, "the source file has become shorter")
            written = 0
            while written < got:
                with buffer[written:got] as part:
                    written += meter.timed("write", partial(os.writev, write, [part]))
            left -= got


def _in_kernel(job: Job, read: int, write: int, meter: Meter) -> None:
    """Each call reads and writes, so it counts as one read and one write with the same latency."""
    left = job["size_bytes"]
    while left:
        began = time.monotonic_ns()
        moved = os.copy_file_range(read, write, min(left, job["block_bytes"]))
        if moved == 0:
            raise OSError(errno.EIO, "the source file has become shorter")
        took = time.monotonic_ns() - began
        meter.add("read", moved, took)
        meter.add("write", moved, took)
        left -= moved


def _by_reflink(job: Job, read: int, write: int, meter: Meter) -> None:
    """One call per file. It counts the file's bytes, although no data is moved."""
    began = time.monotonic_ns()
    fcntl.ioctl(write, FICLONE, read)
    meter.add("write", job["size_bytes"], time.monotonic_ns() - began)


_METHODS: dict[str, Callable[[Job, int, int, Meter], None]] = {
    "buffered": _by_blocks,
    "direct": _by_blocks,
    "kernel": _in_kernel,
    "reflink": _by_reflink,
}


def remove(names: list[str]) -> None:
    for name in names:
        with suppress(FileNotFoundError):
            Path(name).unlink()


def _tick(meter: Meter, stop: threading.Event) -> None:
    due = time.monotonic() + SAMPLE_S
    while not stop.wait(max(0.0, due - time.monotonic())):
        meter.say_sample(meter.end_ns() // 1_000_000)
        due += SAMPLE_S


def run(job: Job) -> None:
    """Copy all files and print the measurements. Raises OSError. The worker removes the copies."""
    remove(job["copies"])
    stop, meter = threading.Event(), Meter()
    ticker = threading.Thread(target=_tick, args=(meter, stop), daemon=True)
    before = resource.getrusage(resource.RUSAGE_SELF)
    ticker.start()
    try:
        fsync_ns = sum(
            copy_file(job, source, copy, meter) for source, copy in zip(job["sources"], job["copies"], strict=True)
        )
        end_ns = meter.end_ns()
        after = resource.getrusage(resource.RUSAGE_SELF)
    finally:
        stop.set()
        ticker.join()
    end_ms = end_ns // 1_000_000
    meter.say_sample(end_ms)
    meter.say_end(
        end_ms=end_ms,
        end_ns=end_ns,
        fsync_ns=fsync_ns,
        usr_ms=round(1000 * (after.ru_utime - before.ru_utime)),
        sys_ms=round(1000 * (after.ru_stime - before.ru_stime)),
    )


def words(error: OSError, method: str) -> str:
    of_system = f"{error.filename or method}: {error.strerror} (errno {error.errno})"
    if method == "reflink" and not error.filename and error.errno in NO_REFLINKS:
        return f"the file system of the target has no reflinks. Use btrfs or XFS, or another copy method. {of_system}"
    return of_system


def main() -> int:
    job = json.load(sys.stdin)
    try:
        run(job)
    except OSError as error:
        sys.stderr.write(f"{words(error, job['method'])}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
