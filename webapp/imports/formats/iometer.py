"""Iometer's results file: CSV with several heads.

Units: `MBps (Decimal)` is 10^6 bytes/s, `MBps (Binary)`, `MiBps (Binary)` and the older `MBps` are 2^20, response times
are ms (Iometer's ManagerList.cpp, SaveResults, and IOCommon.h). Only the row ALL of each test is read: the sum of all
managers and workers.
"""

from collections.abc import Mapping

from webapp.imports.measurement import Latency, Measurement, with_repeats
from webapp.imports.values import (
    MEGABYTE,
    MIB,
    MS,
    ImportRefused,
    Row,
    fields,
    lines,
    mix,
    number,
    optional,
    rows,
    sorted_factors,
    whole,
)
from webapp.plans.values import Value
from worker.contract.items import Direction

TOOL = "Iometer"
_HEAD = "'Target Type,Target Name,Access Specification Name,"
_SPECIFICATION = "'Access specification name,default assignment"
_SPECIFICATION_LINES = "'size,% of size,% reads,% random,"
_RATES = (("{} MBps (Decimal)", MEGABYTE), ("{} MiBps (Binary)", MIB), ("{} MBps (Binary)", MIB), ("{} MBps", MIB))


def sniff(head: str) -> bool:
    return _HEAD in head or ("'Test Type,Test Description" in head and "'Version" in head)


def parse(text: str) -> list[Measurement]:
    """Raises ImportRefused."""
    measurements: list[Measurement] = []
    names: list[str] = []
    specifications: dict[str, list[Row]] = {}
    specification, kind, version = "", "", ""
    for line in map(str.strip, lines(text)):
        if line.startswith("'"):
            kind = line
            names = fields(line[1:]) if line.startswith((_HEAD, _SPECIFICATION_LINES)) else names
        elif not line:
            continue
        elif kind.startswith("'Version"):
            version, kind = line[:40], ""
        elif kind.startswith(_SPECIFICATION):
            specification = fields(line)[0]
            specifications[specification] = []
        elif kind.startswith(_SPECIFICATION_LINES):
            specifications.setdefault(specification, []).extend(rows(names, [line]))
        elif kind.startswith(_HEAD) and line.startswith("ALL,"):
            row = next(rows(names, [line]))
            measurements += _measured(row, specifications.get(row["Access Specification Name"], []), version)
    if not measurements:
        raise ImportRefused("There is no row ALL with I/O in this results file of Iometer. It may be truncated.")
    return with_repeats(measurements)


def _measured(row: Row, specification: list[Row], version: str) -> list[Measurement]:
    stated, mixed = _stated(row, specification)
    factors, other = sorted_factors(stated)
    return [
        Measurement(
            tool=TOOL,
            tool_version=version,
            name=row["Access Specification Name"][:200],
            direction=direction,
            factors=factors,
            other=other | mixed,
            iops=optional(row, f"{word} IOps"),
            bytes_per_s=_bytes_per_s(row, word),
            ios=_count(row, f"{word} I/Os"),
            bytes=_count(row, {"Read": "Bytes Read", "Write": "Bytes Written"}[word]),
            latency=_latency(row, word),
            metrics=_metrics(row, word),
        )
        for word, direction in (("Read", Direction.READ), ("Write", Direction.WRITE))
        if optional(row, f"{word} IOps")
    ]


def _bytes_per_s(row: Row, word: str) -> float | None:
    for name, unit in _RATES:
        if (rate := optional(row, name.format(word))) is not None:
            return rate * unit
    return None


def _count(row: Row, name: str) -> int | None:
    return whole(row[name], name) if row.get(name) else None


def _latency(row: Row, word: str) -> Latency:
    mean, longest = optional(row, f"Average {word} Response Time"), optional(row, f"Maximum {word} Response Time")
    return Latency(
        mean_ns=None if mean is None else mean * MS,
        max_ns=None if longest is None else longest * MS,
    )


def _metrics(row: Row, word: str) -> dict[str, float]:
    columns: Mapping[str, str] = {"cpu_percent": "% CPU Utilization", "errors": f"{word} Errors"}
    return {name: value for name, column in columns.items() if (value := optional(row, column)) is not None}


def _stated(row: Row, specification: list[Row]) -> tuple[dict[str, Value], dict[str, str]]:
    """Factors, and as text what no factor expresses. Workers are threads, the queue depth is of each. Several access
    lines together have no pattern of ours."""
    stated: dict[str, Value] = {}
    for name, column in (("numjobs", "# Workers"), ("iodepth", "Queue Depth")):
        if row.get(column):
            stated[name] = whole(row[column], column)
    if len(specification) != 1:
        return stated, {"access lines": str(len(specification))} if specification else {}
    access = specification[0]
    stated["block_size"] = whole(access["size"], "size")
    factors, other = mix(_percent(access, "% reads"), _percent(access, "% random"))
    return stated | factors, other


def _percent(row: Row, column: str) -> float:
    """Raises ImportRefused."""
    value = number(row[column], column)
    if value > 100:
        raise ImportRefused(f"The access specification states {value:g} for `{column}`, which is more than 100.")
    return value
