"""Split fio's standard output into dumps as it arrives.

fio prints one JSON object per second and a final one. The outermost braces are alone in the first
column. Text that is not JSON, such as signals and errors, comes before an object. Each dump is
decoded directly into typed structs, which takes about 0.1 ms.
"""

import re

import msgspec

MAX_DUMP_BYTES = 8 * 1024 * 1024
TEXT_KEPT = 16 * 1024
_BEGIN = re.compile(rb"^\{[ \t\r]*$", re.MULTILINE)
_END = re.compile(rb"^\}[ \t\r]*(?:\n|\Z)", re.MULTILINE)
_NOT_JSON = re.compile(rb"(:\s*)-?(?:nan|inf)\b", re.IGNORECASE)


class BadOutput(ValueError):
    """fio's output is invalid."""


class Latency(msgspec.Struct, frozen=True):
    """In ns. `N` and `bins` are missing if they are empty."""

    min: float = 0
    max: float = 0
    mean: float = 0
    stddev: float = 0
    N: int = 0
    bins: dict[int, int] = {}


class Flow(msgspec.Struct, frozen=True):
    """One direction, cumulative since the start of the job, or since the end of its ramp."""

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
        """Average number of running processes during the longest one: `runtime` of a direction is the longest."""
        longest_ms = max(self.read.runtime, self.write.runtime, self.trim.runtime)
        return self.job_runtime / longest_ms if longest_ms else 1.0


class Dump(msgspec.Struct, frozen=True):
    """The used fields of a JSON object of fio, and its text."""

    text: str
    version: str
    timestamp_ms: int
    jobs: tuple[Job, ...]


class _Body(msgspec.Struct, frozen=True):
    version: str = msgspec.field(name="fio version", default="")
    timestamp_ms: int = 0
    jobs: tuple[Job, ...] = ()


class OutputReader:
    """Collects output: `feed` returns the dumps that are now complete."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._seen = 0  # no end of a dump lies before this offset
        self._inside = False
        self.text = ""  # the last of what was not JSON

    def feed(self, data: bytes) -> list[Dump]:
        """Raises BadOutput if a dump exceeds MAX_DUMP_BYTES."""
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
            raise BadOutput(f"A JSON object of fio exceeds {MAX_DUMP_BYTES} bytes.")
        return dumps

    def _find_begin(self) -> bool:
        """Drop the text before the next dump, but keep a last line that may start one."""
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
        """Decode a possible dump; if it is not one, its first line was only text."""
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
    """The dump in this text; None if it is not an object of fio."""
    text = raw.decode(errors="replace")
    for candidate in (text.encode(), _NOT_JSON.sub(rb"\g<1>0", text.encode())):
        try:
            body = msgspec.json.decode(candidate, type=_Body)
        except msgspec.DecodeError:
            continue
        return Dump(text.strip(), body.version, body.timestamp_ms, body.jobs) if body.jobs else None
    return None
