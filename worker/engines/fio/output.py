"""Split fio's standard output into dumps as it arrives, and compute the I/Os of each interval and the result.

fio prints one JSON object per second and a final one. The outermost braces are alone in the first
column. Text that is not JSON, such as signals and errors, comes before an object. Each dump is
decoded directly into typed structs, which takes about 0.1 ms.
"""

import re
from collections.abc import Collection, Mapping, Sequence

import msgspec

from worker.contract.items import DeviceSample, Direction, DirectionResult, DirectionSample, LatencyKind
from worker.contract.packing import Histogram
from worker.engines.base import NO_LATENCIES, Moments, direction_result, direction_sample

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
        match = _BEGIN.search(self._buffer, 0)
        if match and match.end() < len(self._buffer):
            self._drop(match.start())
            self._inside, self._seen = True, 1
            return True
        self._drop(self._buffer.rfind(b"\n") + 1)
        if len(self._buffer) > TEXT_KEPT:
            self._drop(len(self._buffer))
        return False

    def _find_end(self) -> int | None:
        match = _END.search(self._buffer, self._seen)
        if match is None or not match.group().endswith(b"\n"):
            self._seen = max(1, self._buffer.rfind(b"\n"))
            return None
        return match.end()

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


# Convert fio's cumulative dumps to the I/Os of each interval, and to the result.
#
# All values of a dump count from the start of the job, and again from the end of its ramp. An interval is the
# difference of two dumps in counts, bytes and histogram bins. Means, maxima and printed percentiles cannot be
# subtracted.
#
# fio sets `io_bytes` and `runtime` when a dump is due, but prints the dump only after every job has completed an I/O,
# and reads the histograms then (stat.c, __show_running_run_stats). I/Os are therefore counted from the histograms,
# and so are bytes if all I/Os have the same size. Jobs leave the ramp at different times: I/Os of a job in its ramp
# have no latency and are not counted.


class Totals(msgspec.Struct, frozen=True):
    """Cumulative values of one direction."""

    ios: int = 0
    bytes: int = 0
    bins: dict[int, int] = {}


class Differ:
    """Feed it dumps in order. `io_bytes` is the size of every I/O, None if sizes differ.

    Every interval takes its I/Os from those that earlier ones have left, so that all add up to the final dump.
    """

    def __init__(
        self,
        kind: LatencyKind,
        directions: Sequence[Direction],
        *,
        io_bytes: int | None,
        expected: Collection[Direction] = (),
    ) -> None:
        """`expected`: directions that have a result even without any I/O, if another direction has some."""
        self._kind = kind
        self._io_bytes = io_bytes
        self._expected = expected
        self._reported = dict.fromkeys(directions, Totals())
        self._told = dict.fromkeys(directions, Totals())  # of all intervals so far

    def measured(self, dump: Dump) -> bool:
        """Whether any job has left its ramp."""
        return any(total.ios for total in self._totals(dump).values())

    def advance(self, dump: Dump, *, final: bool = False) -> tuple[DirectionSample, ...]:
        """The I/Os since the last interval."""
        now = self._totals(dump, final=final)
        before, self._reported = self._reported, now
        return tuple(self._tell(each, now[each], _between(before[each].bins, now[each].bins)) for each in now)

    def _tell(self, direction: Direction, now: Totals, latency: Histogram) -> DirectionSample:
        reported = self._told[direction]
        ios, moved_bytes = max(0, now.ios - reported.ios), max(0, now.bytes - reported.bytes)
        return self._counted(direction, ios, moved_bytes, latency)

    def spread(self, dump: Dump, share: float, device: DeviceSample | None) -> tuple[DirectionSample, ...]:
        """A share of the I/Os that no interval has yet, but not more than the device completed meanwhile.

        Their latencies are in the next interval. The device's counters do not contain trims.
        """
        limits = {Direction.READ: device.read_bytes, Direction.WRITE: device.write_bytes} if device else {}
        return tuple(self._part(each, total, share, limits.get(each)) for each, total in self._totals(dump).items())

    def results(self, dump: Dump) -> tuple[DirectionResult, ...]:
        """The results of the final dump, for each direction with I/O and each expected one."""
        return self._results(dump, totals_of(dump, self._kind))

    def results_until(self, dump: Dump, runtime_ms: int) -> tuple[DirectionResult, ...]:
        """The results of a dump before the final one, over `runtime_ms`. Call it after `advance`."""
        return self._results(dump, self._reported, runtime_ms)

    def _results(
        self, dump: Dump, totals: Mapping[Direction, Totals], runtime_ms: int | None = None
    ) -> tuple[DirectionResult, ...]:
        job = dump.jobs[0]  # the only one: group_reporting
        expected = self._expected if any(total.ios for total in totals.values()) else ()
        return tuple(
            _result(each, total, getattr(job, each), self._kind, runtime_ms or _lasted_ms(dump, each))
            for each, total in totals.items()
            if total.ios or each in expected
        )

    def _part(self, direction: Direction, now: Totals, share: float, limit_bytes: int | None) -> DirectionSample:
        reported = self._told[direction]
        ios, moved_bytes = max(0, now.ios - reported.ios), max(0, now.bytes - reported.bytes)
        if limit_bytes is not None and moved_bytes:
            share = min(share, limit_bytes / moved_bytes)
        ios = round(ios * share)
        return self._counted(
            direction, ios, ios * self._io_bytes if self._io_bytes else round(moved_bytes * share), NO_LATENCIES
        )

    def _counted(self, direction: Direction, ios: int, moved_bytes: int, latency: Histogram) -> DirectionSample:
        reported = self._told[direction]
        self._told[direction] = Totals(ios=reported.ios + ios, bytes=reported.bytes + moved_bytes)
        return direction_sample(direction, ios=ios, moved_bytes=moved_bytes, latency=latency)

    def _totals(self, dump: Dump, *, final: bool = False) -> dict[Direction, Totals]:
        totals = totals_of(dump, self._kind)
        if self._io_bytes is None or final:
            return {each: totals[each] for each in self._told}
        return {
            each: msgspec.structs.replace(totals[each], bytes=totals[each].ios * self._io_bytes) for each in self._told
        }


DIRECTIONS = (Direction.READ, Direction.WRITE, Direction.TRIM)  # of fio


def runtime_ms(dump: Dump) -> int:
    """Length of the measured part on fio's clock: that of the longest direction and job."""
    return max(flow.runtime for job in dump.jobs for flow in (job.read, job.write, job.trim))


def totals_of(dump: Dump, kind: LatencyKind) -> dict[Direction, Totals]:
    return {direction: _totals([getattr(job, direction) for job in dump.jobs], kind) for direction in DIRECTIONS}


def _totals(flows: list[Flow], kind: LatencyKind) -> Totals:
    bins: dict[int, int] = {}
    for flow in flows:
        for latency_ns, count in latency_of(flow, kind).bins.items():
            bins[latency_ns] = bins.get(latency_ns, 0) + count
    return Totals(
        ios=sum(latency_of(flow, kind).N for flow in flows),
        bytes=sum(flow.io_bytes for flow in flows),
        bins=bins,
    )


def latency_of(flow: Flow, kind: LatencyKind) -> Latency:
    return flow.lat_ns if kind is LatencyKind.LAT else flow.clat_ns


def _between(before: dict[int, int], now: dict[int, int]) -> Histogram:
    """Difference of two counters. A counter that decreased was reset at the end of the ramp."""
    return _histogram({b: n - before.get(b, 0) for b, n in now.items()})


def _histogram(bins: dict[int, int]) -> Histogram:
    bins_with_ios = sorted((latency_ns, count) for latency_ns, count in bins.items() if count > 0)
    return Histogram(latency_ns=tuple(b for b, _ in bins_with_ios), counts=tuple(n for _, n in bins_with_ios))


def _lasted_ms(dump: Dump, direction: Direction) -> int:
    """fio's own time of a direction. A direction without I/O has the time of the others."""
    flow: Flow = getattr(dump.jobs[0], direction)
    return flow.runtime or runtime_ms(dump)


def _result(direction: Direction, total: Totals, flow: Flow, kind: LatencyKind, runtime_ms: int) -> DirectionResult:
    latency = latency_of(flow, kind)
    return direction_result(
        direction,
        ios=total.ios,
        moved_bytes=total.bytes,
        runtime_ms=runtime_ms,
        latency=_histogram(total.bins),
        moments=Moments(latency.min, latency.mean, latency.max, latency.stddev),
        kind=kind,
    )
