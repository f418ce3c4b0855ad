"""fio's terse output (--minimal, --output-format=terse), versions 2 to 5: one line for each job or group.

Units: bandwidth KiB/s, amounts KiB, runtimes ms, latencies µs. Terse output has no job options. Version 2 has no
version of fio in its head. Source: fio's stat.c (show_thread_status_terse_v2, show_thread_status_terse_all,
show_ddir_status_terse) and HOWTO, "Terse output".

Lines of one job name and group are either the jobs of one run, which ran at the same time, or runs appended to one
file. From version 3 on, each line ends with the counters of the disks over the whole run, which are equal in all lines
of a run and differ between runs. Without such counters, nothing tells both cases apart.
"""

import io
import re
from collections.abc import Hashable, Iterator, Mapping, Sequence

import msgspec
from msgspec.structs import replace

from webapp.imports.measurement import Latency, Measurement, with_repeats
from webapp.imports.values import KIB, US, ImportRefused, lines, number, whole
from webapp.results.reading.doubts import BESIDE_JOBS
from worker.contract.items import Direction

TOOL = "fio"
_LINE = re.compile(r"[2345];")
_PERCENTILES = 20
# Amount, bandwidth, IOPS, runtime; slat and clat; percentiles; lat; bandwidth's min, max, share, mean, deviation.
_WIDTH = 4 + 8 + _PERCENTILES + 4 + 5
_FIELDS = {
    2: _WIDTH,
    3: _WIDTH,
    4: _WIDTH,
    5: _WIDTH + 6,
}  # 5: samples of the bandwidth; min, max, mean, deviation and samples of the IOPS
_HEAD = {2: 4, 3: 5, 4: 5, 5: 5}
_MOST_DIRECTIONS = {2: 3, 3: 2, 4: 3, 5: 3}
_MOST_FIELDS = 4000
# After the CPU time: context switches, two kinds of page faults, 7 queue depths, 10 + 12 latencies; then the disks.
_BEFORE_DISKS = 2 + 3 + 7 + 10 + 12
_MIXED = (None,)  # unified_rw_reporting=1: reads and writes together
_UNKNOWN_RUN = "unless the equal lines are repeated runs"


def sniff(head: str) -> bool:
    return any(_is_terse(line) for line in io.StringIO(head))


def _is_terse(line: str) -> bool:
    return bool(_LINE.match(line)) and line.count(";") >= 40


class _Line(msgspec.Struct, frozen=True):
    name: str
    group: str
    disks: tuple[str, ...]  # their counters, and the description of the job
    measured: Mapping[Direction | None, Measurement]

    @property
    def run(self) -> Hashable:
        """Equal in the lines of one run; None if the disks counted nothing."""
        counted = any(field.strip("0.%") for field in self.disks if field[:1].isdigit())
        return self.disks if counted else None


def parse(text: str) -> list[Measurement]:
    """Raises ImportRefused."""
    jobs_of_file = [job for line in lines(text) if _LINE.match(line) for job in (_line(line),) if job.measured]
    if not jobs_of_file:
        raise ImportRefused("No line of fio's terse output has any I/O.")
    return with_repeats(
        measured for jobs in _tests(jobs_of_file) for measured in _combined(jobs, _beside(jobs[0], jobs_of_file))
    )


def _tests(jobs_of_file: Sequence[_Line]) -> list[list[_Line]]:
    """The jobs of one name in one group of one run. A line of an unknown run is a test of its own."""
    tests: dict[Hashable, list[_Line]] = {}
    for place, line in enumerate(jobs_of_file):
        tests.setdefault((line.name, line.group, line.run or place), []).append(line)
    return list(tests.values())


def _beside(line: _Line, jobs_of_file: Sequence[_Line]) -> str:
    """The names of jobs that ran at the same time."""
    if line.run is None:
        alike = sum((other.name, other.group) == (line.name, line.group) for other in jobs_of_file)
        return f"{line.name}, {_UNKNOWN_RUN}" if alike > 1 else ""
    together = (other.name for other in jobs_of_file if (other.group, other.run) == (line.group, line.run))
    return ", ".join(name for name in dict.fromkeys(together) if name != line.name)


def _combined(jobs: Sequence[_Line], beside: str) -> Iterator[Measurement]:
    for direction in (*Direction, None):
        parts = [job.measured[direction] for job in jobs if direction in job.measured]
        if parts:
            measurement = parts[0] if len(parts) == 1 else _sum(parts)
            yield replace(measurement, other={BESIDE_JOBS: beside[:500]}) if beside else measurement


def _sum(parts: Sequence[Measurement]) -> Measurement:
    """Rates and amounts are added, and means are weighted with IOPS. Percentiles and deviations cannot be added."""
    latencies = [part.latency for part in parts]
    iops = sum(part.iops or 0 for part in parts)
    whole = Latency()
    if len({latency.kind for latency in latencies}) == 1 and latencies[0].kind and iops:
        whole = Latency(
            kind=latencies[0].kind,
            min_ns=min(latency.min_ns or 0 for latency in latencies),
            max_ns=max(latency.max_ns or 0 for latency in latencies),
            mean_ns=sum((part.iops or 0) * (part.latency.mean_ns or 0) for part in parts) / iops,
        )
    return replace(
        parts[0],
        iops=iops,
        bytes_per_s=sum(part.bytes_per_s or 0 for part in parts),
        bytes=sum(part.bytes or 0 for part in parts),
        runtime_ms=max(part.runtime_ms or 0 for part in parts),
        latency=whole,
        metrics={name: sum(part.metrics.get(name, 0) for part in parts) for name in parts[0].metrics},
        notes=(*parts[0].notes, f"The sum of {len(parts)} jobs of one run. Their percentiles cannot be combined."),
    )


def _line(line: str) -> _Line:
    fields = line.split(";", _MOST_FIELDS)
    version = int(fields[0])
    head, width = _HEAD[version], _FIELDS[version]
    directions = next((n for n in (2, _MOST_DIRECTIONS[version], 1) if _is_share(fields, head + n * width)), 0)
    if not directions:  # the CPU shares follow the directions
        raise ImportRefused(f"A line of fio's terse output has {len(fields)} fields: it is truncated or damaged.")
    parts = [fields[head + i * width : head + (i + 1) * width] for i in range(directions)]
    rest = fields[head + directions * width :]
    name, group, error = (fields[1], fields[2], fields[3]) if version == 2 else (fields[2], fields[3], fields[4])
    notes = (f"fio reports error {whole(error, 'error')} in this job.",) if whole(error, "error") else ()
    measured = {
        direction: _measured(part, direction, name, "" if version == 2 else fields[1], rest[:2], notes)
        for part, direction in zip(parts, Direction if directions > 1 else _MIXED, strict=False)
        if whole(part[0], "amount")
    }
    return _Line(name, group, () if version == 2 else tuple(rest[_BEFORE_DISKS:]), measured)


def _is_share(fields: Sequence[str], place: int) -> bool:
    return len(fields) > place + 1 and fields[place].endswith("%") and fields[place + 1].endswith("%")


def _measured(
    part: Sequence[str],
    direction: Direction | None,
    name: str,
    tool_version: str,
    cpu: Sequence[str],
    notes: tuple[str, ...],
) -> Measurement:
    return Measurement(
        tool=TOOL,
        tool_version=tool_version.removeprefix("fio-"),
        name=name,
        direction=direction,
        factors={},
        iops=number(part[2], "IOPS"),
        bytes_per_s=number(part[1], "bandwidth") * KIB,
        bytes=whole(part[0], "amount") * KIB,
        runtime_ms=whole(part[3], "runtime"),
        latency=_latency(part[4:]),
        metrics=_cpu(cpu),
        notes=notes,
    )


def _latency(fields: Sequence[str]) -> Latency:
    """Completion latency with its percentiles. Without completion latency, total latency."""
    clat, lat = fields[4:8], fields[8 + _PERCENTILES : 12 + _PERCENTILES]
    kind, chosen = ("clat", clat) if number(clat[1], "clat") else ("lat", lat)
    if not number(chosen[1], kind):
        return Latency()
    low, high, mean, deviation = (number(field, kind) * US for field in chosen)
    percentiles = _percentiles(fields[8 : 8 + _PERCENTILES]) if kind == "clat" else {}
    return Latency(
        kind=kind, min_ns=low, max_ns=high, mean_ns=mean, stddev_ns=deviation, percentiles=percentiles,
        percentile_step_ns=US,
    )  # fmt: skip


def _percentiles(fields: Sequence[str]) -> dict[float, float]:
    """`99.000000%=1400`; unused places are `0%=0`."""
    values: dict[float, float] = {}
    for field in fields:
        percent, sign, value = field.partition("%=")
        if not sign:
            raise ImportRefused(f"The percentile `{field[:40]}` is not understood.")
        if number(percent, "percentile"):
            values[number(percent)] = number(value, "percentile") * US
    return values


def _cpu(fields: Sequence[str]) -> dict[str, float]:
    names = ("usr_cpu_percent", "sys_cpu_percent")
    shares = [field.removesuffix("%") for field in fields]
    return {name: number(share, name) for name, share in zip(names, shares, strict=False) if share}
