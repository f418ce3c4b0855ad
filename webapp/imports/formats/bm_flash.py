"""bm-flash: tables of random reads and writes by block size and number of threads.

Units: `M` is MiB/s (512 B x 8,695 IOPS is printed as 4.2M), `K` is KiB/s, block sizes are binary.
A cell without figures is a gap in the table, not a measurement. The form is that of published tables of the tool.
"""

import re

from webapp.imports.measurement import Measurement, with_repeats
from webapp.imports.values import GIB, KIB, MIB, ImportRefused, lines, number, size, sorted_factors
from worker.contract.items import Direction

TOOL = "bm-flash"
_TITLE = re.compile(r"\s*(Read|Write) Tests:\s*")
_THREADS = re.compile(r"\s*(\d{1,5}) threads?\s*")
_ROW = re.compile(r"\s*(\d{1,6}[BKM])\s*\|(.*)")
_CELL = re.compile(r"\s*(\d{1,12})\s+(\d{1,12}(?:\.\d{1,6})?)([KMG])\s*")
_UNITS = {"K": KIB, "M": MIB, "G": GIB}
_TESTS = {"Read": (Direction.READ, "randread"), "Write": (Direction.WRITE, "randwrite")}


def sniff(head: str) -> bool:
    return bool(re.search(r"^[ \t]*(Read|Write) Tests:[ \t\r]*$", head, re.MULTILINE)) and "Block |" in head


def parse(text: str) -> list[Measurement]:
    """Raises ImportRefused."""
    measurements: list[Measurement] = []
    test = ""
    threads: list[int] = []
    for number_of_line, line in enumerate(lines(text), start=1):
        if title := _TITLE.fullmatch(line):
            test, threads = title[1], []
        elif line.lstrip().startswith("Block |"):
            threads = [int(match[1]) for cell in line.split("|")[1:] if (match := _THREADS.fullmatch(cell))]
        elif (row := _ROW.fullmatch(line)) and test and threads:
            measurements += _row(test, threads, row[1], row[2].split("|"), number_of_line)
        elif test and measurements and line.strip() and "|" not in line:
            test, threads = "", []
    if not measurements:
        raise ImportRefused("There is no table of bm-flash with figures in this text.")
    return with_repeats(measurements)


def _row(test: str, threads: list[int], block: str, cells: list[str], line: int) -> list[Measurement]:
    if len(cells) > len(threads) and any(cell.strip() for cell in cells[len(threads) :]):
        raise ImportRefused(f"Line {line} has more columns than the head of its table.")
    measurements = []
    for count, cell in zip(threads, cells, strict=False):
        if not cell.strip():
            continue
        figures = _CELL.fullmatch(cell)
        if figures is None:
            raise ImportRefused(
                f"Line {line}: `{cell.strip()[:40]}` is not a pair of IOPS and bandwidth like `8695 4.2M`."
            )
        measurements.append(_measured(test, count, size(block), figures[1], number(figures[2]) * _UNITS[figures[3]]))
    return measurements


def _measured(test: str, threads: int, block: int, iops: str, bytes_per_s: float) -> Measurement:
    direction, pattern = _TESTS[test]
    factors, other = sorted_factors({"pattern": pattern, "block_size": block, "numjobs": threads})
    return Measurement(
        tool=TOOL,
        name=f"{test} test",
        direction=direction,
        factors=factors,
        other=other,
        iops=number(iops, "IOPS"),
        bytes_per_s=bytes_per_s,
        notes=("Bandwidth as printed, with one decimal.",),
    )
