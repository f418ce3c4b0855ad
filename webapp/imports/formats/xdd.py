"""xdd: its own output (6.x and 7.x), and tables of many runs by block size and number of threads.

Units: MB/s is 10^6 bytes/s (bytes / elapsed of every line of xdd's own test outputs gives the printed rate), block
and request sizes are bytes.
"""

import re
from collections.abc import Mapping

from webapp.imports.measurement import Measurement, with_repeats
from webapp.imports.values import MEGABYTE, ImportRefused, lines, number, sorted_factors, whole
from webapp.plans.values import Value
from worker.contract.items import Direction

TOOL = "xdd"


def sniff(head: str) -> bool:
    return _is_table(head) or _is_output(head)


def parse(text: str) -> list[Measurement]:
    """Raises ImportRefused."""
    measurements = _of_table(text) if _is_table(text) else _of_output(text)
    if not measurements:
        raise ImportRefused("There is no result of xdd in this text: no table with figures and no COMBINED line.")
    return with_repeats(measurements)


# Tables of runs: IOPS and MB/s by block size (rows) and number of threads (columns).

_TITLE = re.compile(r"\s*(Random|Sequential) (READ|WRITE|READ/WRITE \[(\d{1,3})/(\d{1,3})\]) tests:\s*")
_THREADS = re.compile(r"\s*(\d{1,5}) Threads?\s*", re.IGNORECASE)
_CELL = re.compile(r"\s*(\d{1,12})\s+(\d{1,12}(?:\.\d{1,6})?)\s*")
_PATTERNS = {
    ("Random", "READ"): "randread",
    ("Random", "WRITE"): "randwrite",
    ("Random", "MIX"): "randrw",
    ("Sequential", "READ"): "read",
    ("Sequential", "WRITE"): "write",
    ("Sequential", "MIX"): "readwrite",
}
_DIRECTIONS = {"READ": Direction.READ, "WRITE": Direction.WRITE, "MIX": None}


def _is_table(head: str) -> bool:
    return "Blocksize |" in head and bool(
        re.search(r"^\s*(Random|Sequential) (READ|WRITE)[^\n]{0,20} tests:", head, re.M)
    )


def _of_table(text: str) -> list[Measurement]:
    measurements: list[Measurement] = []
    title: re.Match[str] | None = None
    threads: list[int] = []
    for line_number, line in enumerate(lines(text), start=1):
        cells = line.split("|")
        if begins := _TITLE.fullmatch(line):
            title, threads = begins, []
        elif title and len(cells) > 1 and any(_THREADS.fullmatch(cell) for cell in cells):
            threads = [int(match[1]) for cell in cells if (match := _THREADS.fullmatch(cell))]
        elif title and threads and len(cells) > 1 and cells[0].strip()[:1].isdigit():
            measurements += _of_row(title, threads, cells, line_number)
        elif title and threads and line.strip() and len(cells) == 1:
            title, threads = None, []
    return measurements


def _of_row(title: re.Match[str], threads: list[int], cells: list[str], line: int) -> list[Measurement]:
    block = whole(cells[0], "block size")
    if any(cell.strip() for cell in cells[1 + len(threads) :]):
        raise ImportRefused(f"Line {line} has more columns than the head of its table.")
    measurements = []
    for count, cell in zip(threads, cells[1:], strict=False):
        if not cell.strip():
            continue
        figures = _CELL.fullmatch(cell)
        if figures is None:
            raise ImportRefused(f"Line {line}: `{cell.strip()[:40]}` is not a pair of IOPS and MB/s.")
        measurements.append(_of_cell(title, count, block, figures[1], figures[2]))
    return measurements


def _of_cell(title: re.Match[str], threads: int, block: int, iops: str, mb_per_s: str) -> Measurement:
    kind = "MIX" if title[3] else title[2]
    stated: dict[str, Value] = {"pattern": _PATTERNS[title[1], kind], "block_size": block, "numjobs": threads}
    factors, other = sorted_factors(stated | ({"read_percent": int(title[3])} if title[3] else {}))
    return Measurement(
        tool="xdd",
        name=f"{title[1]} {title[2]}",
        direction=_DIRECTIONS[kind],
        factors=factors,
        other=other,
        iops=number(iops, "IOPS"),
        bytes_per_s=number(mb_per_s, "bandwidth") * MEGABYTE,
        notes=("Bandwidth as printed, in whole MB/s.",),
    )


# xdd's own output: the settings of a run, and its COMBINED line.
#
# Columns (7.x): pass, target, queue, bytes, operations, elapsed s, MB/s, IOPS, latency, % CPU, operation, request size.
# 6.x has the same ones under `T Q Bytes Ops Time Rate IOPS Latency %CPU OP_Type ReqSize`, with one number less.
# The latency is elapsed time divided by operations of each queue, so it is kept as a metric and not as a mean latency.

_COMBINED = re.compile(r"\s*combined\s+(\S.*)", re.IGNORECASE)
_VERSION = re.compile(r".*XDD version (\S{1,60})", re.IGNORECASE)
_SETTINGS = ("Seek pattern", "Read/write ratio", "Direct I/O", "Target", "Processor")
_OPERATIONS = {"read": Direction.READ, "write": Direction.WRITE, "mixed": None}


def _is_output(head: str) -> bool:
    return "IOIOIOIOIOI" in head or bool(
        re.search(r"^[ \t]*(What[ \t]+Pass[ \t]+Target|T[ \t]+Q[ \t]+Bytes[ \t]+Ops)", head, re.MULTILINE)
    )


def _of_output(text: str) -> list[Measurement]:
    measurements: list[Measurement] = []
    version = ""
    settings: dict[str, str] = {}
    for line in lines(text):
        if begins := _VERSION.match(line):
            version, settings = begins[1], {}
        elif combined := _COMBINED.fullmatch(line):
            measurements.append(_of_line(version, settings, combined[1].split()))
        else:
            name, comma, value = line.strip().partition(",")
            if comma and name in _SETTINGS:
                settings[name] = value.strip()
    return measurements


def _of_line(version: str, settings: Mapping[str, str], fields: list[str]) -> Measurement:
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
