"""fio's terse output (--minimal, --output-format=terse), versions 2 to 5: one line for each job or group.

Units: bandwidth KiB/s, amounts KiB, runtimes ms, latencies µs. Terse output has no job options. Version 2 has no
version of fio in its head. Source: fio's stat.c (show_thread_status_terse_v2, show_thread_status_terse_all,
show_ddir_status_terse) and HOWTO, "Terse output".
"""

import re
from collections.abc import Sequence

from webapp.imports.errors import ImportRefused
from webapp.imports.measurement import Latency, Measurement, with_repeats
from webapp.imports.values import KIB, US, lines, number, whole
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


def sniff(head: str) -> bool:
    return any(_is_terse(line) for line in head.split("\n"))


def _is_terse(line: str) -> bool:
    return bool(_LINE.match(line)) and line.count(";") >= 40


def parse(text: str) -> list[Measurement]:
    """Raises ImportRefused."""
    found = [measured for line in lines(text) if _LINE.match(line) for measured in _job(line)]
    if not found:
        raise ImportRefused("No line of fio's terse output has any I/O.")
    return with_repeats(found)


def _job(line: str) -> list[Measurement]:
    fields = line.split(";", _MOST_FIELDS)
    version = int(fields[0])
    head, width = _HEAD[version], _FIELDS[version]
    directions = next((n for n in (2, _MOST_DIRECTIONS[version]) if _is_share(fields, head + n * width)), 0)
    if not directions:  # the CPU shares follow the directions
        raise ImportRefused(f"A line of fio's terse output has {len(fields)} fields: it is truncated or damaged.")
    parts = [fields[head + i * width : head + (i + 1) * width] for i in range(directions)]
    cpu = fields[head + directions * width :][:2]
    name, error = (fields[1], fields[3]) if version == 2 else (fields[2], fields[4])
    notes = (f"fio reports error {whole(error, 'error')} in this job.",) if whole(error, "error") else ()
    return [
        _measured(part, direction, name, "" if version == 2 else fields[1], cpu, notes)
        for part, direction in zip(parts, Direction, strict=False)
        if whole(part[0], "amount")
    ]


def _is_share(fields: Sequence[str], place: int) -> bool:
    return len(fields) > place + 1 and fields[place].endswith("%") and fields[place + 1].endswith("%")


def _measured(
    part: Sequence[str],
    direction: Direction,
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
    return Latency(kind=kind, min_ns=low, max_ns=high, mean_ns=mean, stddev_ns=deviation, percentiles=percentiles)


def _percentiles(fields: Sequence[str]) -> dict[float, float]:
    """`99.000000%=1400`; unused places are `0%=0`."""
    found = {}
    for field in fields:
        percent, sign, value = field.partition("%=")
        if not sign:
            raise ImportRefused(f"The percentile `{field[:40]}` is not understood.")
        if number(percent, "percentile"):
            found[number(percent)] = number(value, "percentile") * US
    return found


def _cpu(fields: Sequence[str]) -> dict[str, float]:
    names = ("usr_cpu_percent", "sys_cpu_percent")
    shares = [field.removesuffix("%") for field in fields]
    return {name: number(share, name) for name, share in zip(names, shares, strict=False) if share}
