"""Tables of xdd runs: IOPS and MB/s by block size (rows) and number of threads (columns)."""

import re

from webapp.imports.errors import ImportRefused
from webapp.imports.measurement import Measurement
from webapp.imports.values import MEGABYTE, lines, number, sorted_factors, whole
from webapp.plans.values import Value
from worker.contract.items import Direction

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


def sniff(head: str) -> bool:
    return "Blocksize |" in head and bool(
        re.search(r"^\s*(Random|Sequential) (READ|WRITE)[^\n]{0,20} tests:", head, re.M)
    )


def parse(text: str) -> list[Measurement]:
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
            measurements += _row(title, threads, cells, line_number)
        elif title and threads and line.strip() and len(cells) == 1:
            title, threads = None, []
    return measurements


def _row(title: re.Match[str], threads: list[int], cells: list[str], line: int) -> list[Measurement]:
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
        measurements.append(_measured(title, count, block, figures[1], figures[2]))
    return measurements


def _measured(title: re.Match[str], threads: int, block: int, iops: str, mb_per_s: str) -> Measurement:
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
