"""fio's standard output, cut into dumps as it arrives.

fio prints one pretty object a second and a last one; its outermost braces stand alone in the
first column. Text that is not JSON comes before an object (fio names signals and errors
there). A dump is decoded straight into typed structs, which costs some 0.1 ms.
"""

import re

import msgspec

MAX_DUMP_BYTES = 8 * 1024 * 1024
TEXT_KEPT = 16 * 1024
_BEGIN = re.compile(rb"^\{[ \t\r]*$", re.MULTILINE)
_END = re.compile(rb"^\}[ \t\r]*(?:\n|\Z)", re.MULTILINE)
_NOT_JSON = re.compile(rb"(:\s*)-?(?:nan|inf)\b", re.IGNORECASE)


class BadOutput(ValueError):
    """What fio printed cannot be understood."""


class Latency(msgspec.Struct, frozen=True):
    """In ns. `N` and `bins` are missing where they are empty."""

    min: float = 0
    max: float = 0
    mean: float = 0
    stddev: float = 0
    N: int = 0
    bins: dict[int, int] = {}


class Flow(msgspec.Struct, frozen=True):
    """One direction, summed up since the job (or the end of its ramp) began."""

    io_bytes: int = 0
    runtime: int = 0  # ms
    lat_ns: Latency = Latency()
    clat_ns: Latency = Latency()


class Job(msgspec.Struct, frozen=True):
    """With group_reporting, one entry for all processes of the job."""

    error: int = 0
    usr_cpu: float = 0  # percent of `job_runtime`
    sys_cpu: float = 0
    job_runtime: int = 0  # ms, the sum over the processes (fio's stat.c: total_run_time)
    read: Flow = Flow()
    write: Flow = Flow()
    trim: Flow = Flow()

    @property
    def usr_cpu_percent(self) -> float:
        """CPU time of all processes together in user mode, in percent of one CPU."""
        return self.usr_cpu * self._processes

    @property
    def sys_cpu_percent(self) -> float:
        """As `usr_cpu_percent`, in kernel mode."""
        return self.sys_cpu * self._processes

    @property
    def _processes(self) -> float:
        """How many processes ran on average while the longest one did: `runtime` of a direction is the longest."""
        longest_ms = max(self.read.runtime, self.write.runtime, self.trim.runtime)
        return self.job_runtime / longest_ms if longest_ms else 1.0


class Dump(msgspec.Struct, frozen=True):
    """One of fio's objects, as far as we use it, and its text."""

    text: str
    version: str
    timestamp_ms: int
    jobs: tuple[Job, ...]


class _Body(msgspec.Struct, frozen=True):
    version: str = msgspec.field(name="fio version", default="")
    timestamp_ms: int = 0
    jobs: tuple[Job, ...] = ()


class OutputReader:
    """`feed` it whatever arrives; it returns the dumps that have become complete."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._seen = 0  # no end of a dump lies before this offset
        self._inside = False
        self.text = ""  # the last of what was not JSON

    def feed(self, data: bytes) -> list[Dump]:
        """Raises BadOutput if a dump grows beyond every measure."""
        self._buffer += data
        dumps = []
        while True:
            if not self._inside and not self._find_begin():
                break
            end = self._find_end()
            if end is None:
                break
            dumps += self._take(end)
        if len(self._buffer) > MAX_DUMP_BYTES:
            raise BadOutput(f"fio's output goes on for more than {MAX_DUMP_BYTES} bytes without an end.")
        return dumps

    def _find_begin(self) -> bool:
        """Drop what is before the next dump. A last line that may still become one is kept."""
        found = _BEGIN.search(self._buffer, 0)
        if found and found.end() < len(self._buffer):
            self._drop(found.start())
            self._inside, self._seen = True, 1
            return True
        self._drop(self._buffer.rfind(b"\n") + 1)
        if len(self._buffer) > TEXT_KEPT:
            self._drop(len(self._buffer))
        return False

    def _find_end(self) -> int | None:
        found = _END.search(self._buffer, self._seen)
        if found is None or not found.group().endswith(b"\n"):
            self._seen = max(1, self._buffer.rfind(b"\n"))
            return None
        return found.end()

    def _take(self, end: int) -> list[Dump]:
        """Decode what looks like a dump; if it is none, its first line was only text."""
        raw = bytes(self._buffer[:end])
        dump = decode(raw)
        self._inside, self._seen = False, 0
        if dump is None:
            self._drop(raw.index(b"\n") + 1)
            return []
        del self._buffer[:end]
        return [dump]

    def _drop(self, count: int) -> None:
        if count:
            self.text = (self.text + self._buffer[:count].decode(errors="replace"))[-TEXT_KEPT:]
            del self._buffer[:count]


def decode(raw: bytes) -> Dump | None:
    """The dump in this text; None if it is not one of fio's objects."""
    text = raw.decode(errors="replace")
    for candidate in (text.encode(), _NOT_JSON.sub(rb"\g<1>0", text.encode())):
        try:
            body = msgspec.json.decode(candidate, type=_Body)
        except msgspec.DecodeError:
            continue
        return Dump(text.strip(), body.version, body.timestamp_ms, body.jobs) if body.jobs else None
    return None
