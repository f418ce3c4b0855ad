"""Vdbench's flatfile.html: one row for each interval, and an average for each run.

Units: MB is 2^20 bytes and response times are ms (the comments at the head of the file; Vdbench User Guide,
"flatfile.html"). Rates are of reads and writes together, so a mixed run is one measurement without a direction.
"""

import re
from collections.abc import Sequence
from datetime import UTC, datetime

from webapp.imports.measurement import Latency, Measurement, Point, with_repeats
from webapp.imports.values import MIB, MS, ImportRefused, Row, lines, mix, number, sorted_factors
from webapp.plans.values import Value
from worker.contract.items import Direction

TOOL = "Vdbench"
_NEEDED = {"Run", "Interval", "rate", "MB/sec", "read%", "resp"}
_MAX_COLUMNS = 500
_STAMP = re.compile(r"(\d\d/\d\d/\d{4}-\d\d:\d\d:\d\d)-(?:UTC|GMT)", re.ASCII)

# Second of the day, IOPS, bytes per second, mean latency in ns. Rows of whole files need too much memory.
_Interval = tuple[float | None, float | None, float, float | None]


def sniff(head: str) -> bool:
    return any(_is_head(line.split()) for line in head.split("\n") if len(line) < 5000)


def _is_head(words: list[str]) -> bool:
    return words[:1] == ["tod"] and set(words) >= _NEEDED


def parse(text: str) -> list[Measurement]:
    """Raises ImportRefused."""
    measurements: list[Measurement] = []
    names: list[str] = []
    intervals: list[_Interval] = []
    for line in lines(text):
        words = line.split()
        if _is_head(words):
            names = words
        elif names and len(words) > 2 and not line.lstrip().startswith(("*", "<")):
            row = _row(names, words)
            if row["Interval"].startswith("avg"):
                measurements += _measured(row, intervals)
                intervals = []
            elif row["Interval"].isdigit():
                if row["Interval"] == "1":  # of the next run; the one before may have ended without an average
                    intervals = []
                intervals.append(_interval(row))
    if not measurements:
        raise ImportRefused("This flat file of Vdbench has no average of a run. It may be truncated.")
    return with_repeats(measurements)


def _row(names: list[str], words: list[str]) -> Row:
    if len(words) < len(names) or len(names) > _MAX_COLUMNS:
        raise ImportRefused(f"A row of Vdbench has {len(words)} values and its head {len(names)}: it is truncated.")
    return dict(zip(names, words, strict=False))


def _interval(row: Row) -> _Interval:
    return _seconds(row.get("tod", "")), _value(row, "rate"), (_value(row, "MB/sec") or 0) * MIB, _ns(row, "resp")


def _measured(row: Row, intervals: Sequence[_Interval]) -> list[Measurement]:
    iops = _value(row, "rate")
    if not iops:
        return []
    reads = _value(row, "read%") or 0
    direction = {100.0: Direction.READ, 0.0: Direction.WRITE}.get(reads)
    stated, mixed = _stated(row)
    factors, other = sorted_factors(stated)
    rate = _value(row, "MB/sec")
    return [
        Measurement(
            tool=TOOL,
            tool_version=row.get("version", "").removeprefix("vdbench")[:40],
            name=row["Run"][:200],
            direction=direction,
            factors=factors,
            other=other | mixed | {"average of intervals": row["Interval"][:40]},
            iops=iops,
            bytes_per_s=None if rate is None else rate * MIB,
            latency=Latency(mean_ns=_ns(row, "resp"), max_ns=_ns(row, "resp_max"), stddev_ns=_ns(row, "resp_std")),
            metrics=_metrics(row, mixed=direction is None),
            measured_at=_time(row.get("timestamp", "")),
            series=_series(intervals),
        )
    ]


def _value(row: Row, name: str) -> float | None:
    """None without the column, and where Vdbench prints n/a or a name instead."""
    text = row.get(name, "")
    return number(text, name) if re.match(r"[\d.]|-\d|nan|inf", text, re.IGNORECASE) else None


def _ns(row: Row, name: str) -> float | None:
    value = _value(row, name)
    return None if value is None else value * MS


def _stated(row: Row) -> tuple[dict[str, Value], dict[str, str]]:
    """Factors, and as text what no factor expresses. The requested transfer size, threads, read share and share of
    seeks (100: random, 0 or sequential)."""
    stated: dict[str, Value] = {}
    for name, column in (("block_size", "xfersize"), ("numjobs", "threads")):
        value = _value(row, column)
        if value is not None and value == int(value):
            stated[name] = int(value)
    reads = _value(row, "rdpct")
    seeks = 0 if row.get("seekpct", "").startswith("seq") else _value(row, "seekpct")
    if reads is None or seeks is None:
        return stated, {}
    factors, other = mix(reads, seeks)
    return stated | factors, other


def _metrics(row: Row, *, mixed: bool) -> dict[str, float]:
    metrics = {
        name: value
        for name, column in (("cpu_used_percent", "cpu_used"), ("queue_depth", "queue_depth"))
        if (value := _value(row, column)) is not None
    }
    if not mixed:
        return metrics
    columns = (("read_latency_mean_ns", "read_resp"), ("write_latency_mean_ns", "write_resp"))
    latencies = {name: value for name, column in columns if (value := _ns(row, column)) is not None}
    return metrics | latencies | {"read_percent": _value(row, "read%") or 0}


def _series(intervals: Sequence[_Interval]) -> tuple[Point, ...]:
    """The length of an interval is the difference of its times of day; without two of them there is no series."""
    seconds = [interval[0] for interval in intervals]
    if len(seconds) < 2 or None in seconds:
        return ()
    length = round((((seconds[1] or 0) - (seconds[0] or 0)) % 86400) * 1000)
    if not length:
        return ()
    return tuple(
        Point(
            offset_ms=(place + 1) * length,
            length_ms=length,
            iops=iops,
            bytes_per_s=bytes_per_s,
            latency_mean_ns=latency_ns,
        )
        for place, (_, iops, bytes_per_s, latency_ns) in enumerate(intervals)
    )


def _time(stamp: str) -> datetime | None:
    """`05/06/2019-10:00:03-UTC`, month first (Vdbench's Flat.java). None for other zones: their short names are not
    unique."""
    match = _STAMP.fullmatch(stamp)
    try:
        return datetime.strptime(match[1], "%m/%d/%Y-%H:%M:%S").replace(tzinfo=UTC) if match else None
    except ValueError:
        return None


def _seconds(time_of_day: str) -> float | None:
    match = re.fullmatch(r"(\d\d):(\d\d):(\d\d(?:\.\d{1,6})?)", time_of_day)
    return int(match[1]) * 3600 + int(match[2]) * 60 + float(match[3]) if match else None
