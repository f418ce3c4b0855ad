"""xdd's own output: the settings of a run, and its COMBINED line.

Columns (7.x): pass, target, queue, bytes, operations, elapsed s, MB/s, IOPS, latency, % CPU, operation, request size.
6.x has the same ones under `T Q Bytes Ops Time Rate IOPS Latency %CPU OP_Type ReqSize`, with one number less in front.
The latency is elapsed time divided by operations of each queue, so it is kept as a metric and not as a mean latency.
"""

import re
from collections.abc import Mapping

from webapp.imports.errors import ImportRefused
from webapp.imports.measurement import Measurement
from webapp.imports.values import MEGABYTE, lines, number, sorted_factors, whole
from webapp.plans.values import Value
from worker.contract.items import Direction

_COMBINED = re.compile(r"\s*combined\s+(\S.*)", re.IGNORECASE)
_VERSION = re.compile(r".*XDD version (\S{1,60})", re.IGNORECASE)
_SETTINGS = ("Seek pattern", "Read/write ratio", "Direct I/O", "Target", "Processor")
_OPERATIONS = {"read": Direction.READ, "write": Direction.WRITE, "mixed": None}


def sniff(head: str) -> bool:
    return "IOIOIOIOIOI" in head or bool(
        re.search(r"^[ \t]*(What[ \t]+Pass[ \t]+Target|T[ \t]+Q[ \t]+Bytes[ \t]+Ops)", head, re.MULTILINE)
    )


def parse(text: str) -> list[Measurement]:
    measurements: list[Measurement] = []
    version = ""
    settings: dict[str, str] = {}
    for line in lines(text):
        if begins := _VERSION.match(line):
            version, settings = begins[1], {}
        elif combined := _COMBINED.fullmatch(line):
            measurements.append(_measured(version, settings, combined[1].split()))
        else:
            name, comma, value = line.strip().partition(",")
            if comma and name in _SETTINGS:
                settings[name] = value.strip()
    return measurements


def _measured(version: str, settings: Mapping[str, str], fields: list[str]) -> Measurement:
    columns = 12 if len(fields) >= 12 and fields[10].isalpha() else 11
    if len(fields) < columns or fields[columns - 2] not in _OPERATIONS:
        raise ImportRefused(
            f"A COMBINED line of xdd is not understood: `{' '.join(fields)[:80]}`. It may be truncated."
        )
    queue, moved, operations, elapsed, rate, iops, latency, cpu, kind, request = fields[columns - 10 : columns]
    factors, other = sorted_factors(_stated(settings, kind, whole(request, "request size"), whole(queue, "queue")))
    return Measurement(
        tool="xdd",
        tool_version=version,
        name=kind,
        direction=_OPERATIONS[kind],
        factors=factors,
        other=other | _other(settings),
        iops=number(iops, "IOPS"),
        bytes_per_s=number(rate, "rate") * MEGABYTE,
        ios=whole(operations, "number of operations"),
        bytes=whole(moved, "number of bytes"),
        runtime_ms=round(number(elapsed, "elapsed time") * 1000),
        metrics={"latency_as_printed": number(latency, "latency"), "cpu_percent": number(cpu, "CPU share")},
    )


def _stated(settings: Mapping[str, str], kind: str, request: int, queue: int) -> dict[str, Value]:
    """xdd's queue is a number of threads, each with one request at a time."""
    stated: dict[str, Value] = {"block_size": request, "numjobs": queue}
    random, reads = settings.get("Seek pattern", ""), settings.get("Read/write ratio", "").split(",")[0].strip()
    prefix = {"sequential": "", "random": "rand"}.get(random)
    if prefix is not None:
        stated["pattern"] = ("randrw" if prefix else "readwrite") if kind == "mixed" else prefix + kind
    if kind == "mixed" and re.fullmatch(r"\d{1,3}\.00", reads):
        stated["read_percent"] = int(reads[:-3])
    if "Direct I/O" in settings:
        stated["direct"] = settings["Direct I/O"] == "enabled"
    return stated


def _other(settings: Mapping[str, str]) -> dict[str, str]:
    pattern = settings.get("Seek pattern", "")
    return {"seek pattern": pattern[:100]} if pattern not in ("", "sequential", "random") else {}
