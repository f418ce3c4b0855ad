"""Every cell of the tables, compared with an independent reading of the same text."""

import re

import pytest

from webapp.imports.formats import bm_flash, xdd
from webapp.imports.formats.tests.examples import only, parsed, text
from webapp.imports.values import ImportRefused
from worker.contract.items import Direction

MIB = 1024 * 1024
_SIZES = [512 * 2**n for n in range(14)]
_CELL = re.compile(r"\s*(\d+)\s+([\d.]+)([KM]?)\s*$")


def _cells(name: str, titles: list[str]) -> dict[tuple[int, int, int], tuple[float, float, str]]:
    """(table, row, column) -> the two figures and the unit."""
    found: dict[tuple[int, int, int], tuple[float, float, str]] = {}
    table, row = -1, 0
    for line in text(name).split("\n"):
        if line.strip() in titles:
            table, row = table + 1, 0
        elif re.match(r"\s*\d+[BKM]?\s*\|", line):
            for column, cell in enumerate(line.split("|")[1:]):
                if match := _CELL.match(cell):
                    found[table, row, column] = (float(match[1]), float(match[2]), match[3])
            row += 1
    return found


@pytest.mark.parametrize(("name", "gaps"), [("lvm-4-ssds", 0), ("raid0-12-ssds", 0), ("raid5-gaps", 4)])
def test_every_cell_of_bm_flash(name: str, gaps: int) -> None:
    found = parsed(f"bm-flash/{name}.txt")
    cells = _cells(f"bm-flash/{name}.txt", ["Read Tests:", "Write Tests:"])
    assert len(cells) == len(found) == 2 * 14 * 3 - gaps
    for (table, row, column), (iops, bandwidth, unit) in cells.items():
        direction, pattern = ((Direction.READ, "randread"), (Direction.WRITE, "randwrite"))[table]
        one = only(found, direction, block_size=_SIZES[row], numjobs=(1, 10, 40)[column])
        assert one.factors["pattern"] == pattern
        assert one.iops == iops
        assert one.bytes_per_s == bandwidth * {"K": 1024, "M": MIB}[unit]


def test_known_cells_of_bm_flash() -> None:
    found = parsed("bm-flash/raid5-gaps.txt")
    assert only(found, Direction.READ, block_size=512, numjobs=1).bytes_per_s == pytest.approx(12.2 * 1024)
    assert only(found, Direction.WRITE, block_size=4 * MIB, numjobs=40).iops == 57
    missing = [(512 * 1024, 10), (512 * 1024, 40), (256 * 1024, 40), (MIB, 40)]
    for block, threads in missing:
        wanted = {"pattern": "randwrite", "block_size": block, "numjobs": threads}
        assert not [m for m in found if wanted.items() <= m.factors.items()]


def test_an_incomplete_cell_of_bm_flash_is_refused() -> None:
    with pytest.raises(ImportRefused, match="not a pair"):
        bm_flash.parse(text("bm-flash/lvm-4-ssds.txt").replace("8695    4.2M", "8695    4.2"))


_TITLES = [
    "Random READ tests:",
    "Sequential READ tests:",
    "Random WRITE tests:",
    "Sequential WRITE tests:",
    "Random READ/WRITE [90/10] tests:",
    "Sequential READ/WRITE [90/10] tests:",
]
_XDD = [
    (Direction.READ, "randread"),
    (Direction.READ, "read"),
    (Direction.WRITE, "randwrite"),
    (Direction.WRITE, "write"),
    (None, "randrw"),
    (None, "readwrite"),
]


def test_every_cell_of_xdd() -> None:
    found = parsed("xdd/tables.txt")
    cells = _cells("xdd/tables.txt", _TITLES)
    assert len(cells) == len(found) == 6 * 7 * 3
    for (table, row, column), (iops, bandwidth, _) in cells.items():
        direction, pattern = _XDD[table]
        wanted = {"pattern": pattern, "block_size": _SIZES[row], "numjobs": (1, 10, 40)[column]}
        one = only(found, direction, **wanted)
        assert one.iops == iops
        assert one.bytes_per_s == bandwidth * 1_000_000
        assert one.factors.get("read_percent") == (90 if direction is None else None)


def test_known_cells_of_xdd() -> None:
    found = parsed("xdd/tables.txt")
    assert only(found, Direction.READ, pattern="randread", block_size=512, numjobs=40).iops == 186044
    assert only(found, None, pattern="readwrite", block_size=32768, numjobs=40).bytes_per_s == 679e6


def test_output_of_xdd_7() -> None:
    write, read = parsed("xdd/7.0.txt")
    assert write.tool_version == "Linux.7.0.0.rc6.122109.Build.1315"
    assert write.direction is Direction.WRITE
    assert write.factors == {"block_size": 131072, "numjobs": 4, "pattern": "randwrite", "direct": True}
    assert (write.bytes, write.ios, write.runtime_ms) == (2684354560, 20480, 346413)
    assert (write.iops, write.bytes_per_s) == (59.12, 7.749e6)
    assert write.bytes_per_s == pytest.approx(2684354560 / 346.413, rel=1e-4)  # so MB is 10^6
    assert read.direction is Direction.READ
    assert read.factors == {"block_size": 16 * MIB, "numjobs": 4, "direct": False}
    assert read.other == {"seek pattern": "queued_interleaved"}


def test_output_of_xdd_6() -> None:
    (measured,) = parsed("xdd/6.5.txt")
    assert measured.direction is None
    assert measured.factors == {
        "block_size": 131072,
        "numjobs": 1,
        "pattern": "readwrite",
        "read_percent": 90,
        "direct": True,
    }
    assert (measured.iops, measured.bytes_per_s, measured.ios) == (2048, 268.435e6, 8192)


def test_a_truncated_line_of_xdd_is_refused() -> None:
    lines = text("xdd/6.5.txt").rstrip().rsplit(" ", 20)[0]
    with pytest.raises(ImportRefused, match="truncated"):
        xdd.parse(lines)
