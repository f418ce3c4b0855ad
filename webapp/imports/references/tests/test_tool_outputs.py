"""References that are output of a tool: every cell of bm-flash, xdd and iozone, read without parsers; their units."""

import re

import pytest

from webapp.imports.references.reading import DATA
from webapp.imports.references.tests.library import GIB, KIB, LIBRARY, MIB, entries_of, entry_of, rate
from worker.contract.items import Direction

BM_FLASH = ["x25-m-lvm-stripe", "mtron-raid0-12", "mtron-raid5-4"]


def _cells(slug: str, file: str, titles: list[str]) -> dict[tuple[int, int, int], tuple[float, float, str]]:
    """(table, block size, threads) -> the two figures and the unit."""
    found = {}
    table, threads = -1, []
    for line in (DATA / slug / file).read_text().split("\n"):
        if line.strip() in titles:
            table += 1
        elif "hread" in line:
            threads = [int(count) for count in re.findall(r"(\d+) +[tT]hreads?", line)]
        elif row := re.match(r" *(\d+)([BKM]?) *\|(.*)", line):
            size = int(row[1]) * {"B": 1, "": 1, "K": KIB, "M": MIB}[row[2]]
            for count, cell in zip(threads, row[3].split("|"), strict=False):
                if match := re.match(r" *(\d+) +([\d.]+)([KM]?) *$", cell):
                    found[table, size, count] = float(match[1]), float(match[2]), match[3]
    return found


@pytest.mark.parametrize("slug", BM_FLASH)
def test_every_cell_of_bm_flash(slug: str) -> None:
    cells = _cells(slug, "bm-flash.txt", ["Read Tests:", "Write Tests:"])
    entries = [one for one in LIBRARY[slug].entries if one.measurement.tool == "bm-flash"]
    assert len(cells) == len(entries)
    for (table, size, threads), (iops, bandwidth, unit) in cells.items():
        direction = (Direction.READ, Direction.WRITE)[table]
        entry = entry_of(entries, direction, block_size=size, numjobs=threads)
        assert entry.measurement.factors["pattern"] == ("randread", "randwrite")[table]
        assert entry.measurement.iops == iops
        assert rate(entry) == bandwidth * {"K": KIB, "M": MIB}[unit]


SPOTS = [  # slug, pattern, block size, threads, IOPS, MiB/s
    ("x25-m-lvm-stripe", "randread", 512, 1, 8695, 4.2),
    ("x25-m-lvm-stripe", "randread", 4096, 40, 103674, 404.9),
    ("x25-m-lvm-stripe", "randwrite", 8192, 10, 24629, 192.4),
    ("x25-m-lvm-stripe", "randwrite", 4 * MIB, 40, 107, 428.3),
    ("mtron-raid0-12", "randread", 512, 1, 11307, 5.5),
    ("mtron-raid0-12", "randread", 4 * MIB, 40, 437, 1748.3),
    ("mtron-raid0-12", "randwrite", 64 * KIB, 10, 6894, 430.9),
    ("mtron-raid5-4", "randread", 512, 1, 24, 12.2 / 1024),
    ("mtron-raid5-4", "randread", 32 * KIB, 40, 50947, 1592.1),
    ("mtron-raid5-4", "randwrite", 64 * KIB, 40, 126, 7.9),
    ("mtron-raid5-4", "randwrite", 256 * KIB, 10, 13, 3.2),
    ("mtron-raid5-4", "randwrite", 512 * KIB, 1, 6, 3.4),
    ("mtron-raid5-4", "randwrite", MIB, 10, 10, 10.5),
]


@pytest.mark.parametrize(("slug", "pattern", "size", "threads", "iops", "mib_per_s"), SPOTS)
def test_known_cells_of_bm_flash(
    slug: str, pattern: str, size: int, threads: int, iops: float, mib_per_s: float
) -> None:
    entries = [one for one in LIBRARY[slug].entries if one.measurement.tool == "bm-flash"]
    direction = Direction.READ if pattern == "randread" else Direction.WRITE
    entry = entry_of(entries, direction, pattern=pattern, block_size=size, numjobs=threads)
    assert entry.measurement.iops == iops
    assert rate(entry) == pytest.approx(mib_per_s * MIB, rel=1e-12)


def test_gaps_of_bm_flash_are_noentries_of() -> None:
    tests = {
        (one.measurement.factors["block_size"], one.measurement.factors["numjobs"])
        for one in LIBRARY["mtron-raid5-4"].entries
        if one.measurement.direction is Direction.WRITE
    }
    gaps = {(512 * KIB, 10), (256 * KIB, 40), (512 * KIB, 40), (MIB, 40)}
    assert tests == {(512 * 2**n, threads) for n in range(14) for threads in (1, 10, 40)} - gaps


XDD = {
    "Random READ tests:": (Direction.READ, "randread"),
    "Sequential READ tests:": (Direction.READ, "read"),
    "Random WRITE tests:": (Direction.WRITE, "randwrite"),
    "Sequential WRITE tests:": (Direction.WRITE, "write"),
    "Random READ/WRITE [90/10] tests:": (None, "randrw"),
    "Sequential READ/WRITE [90/10] tests:": (None, "readwrite"),
}


def test_every_cell_of_xdd() -> None:
    cells = _cells("x25-m-lvm-stripe", "xdd.txt", list(XDD))
    entries = entries_of("x25-m-lvm-stripe", "xdd")
    assert len(cells) == len(entries) == 126
    for (table, size, threads), (iops, bandwidth, _) in cells.items():
        direction, pattern = list(XDD.values())[table]
        entry = entry_of(entries, direction, pattern=pattern, block_size=size, numjobs=threads)
        assert entry.measurement.iops == iops
        assert rate(entry) == bandwidth * 1e6
        assert entry.measurement.factors.get("read_percent") == (90 if direction is None else None)


def test_known_cells_of_xdd() -> None:
    entries = entries_of("x25-m-lvm-stripe", "xdd")
    known = [
        (Direction.READ, "randread", 512, 40, 186044, 95),
        (Direction.READ, "read", 32768, 1, 4460, 146),
        (Direction.WRITE, "randwrite", 4096, 10, 24817, 101),
        (Direction.WRITE, "write", 8192, 40, 38880, 318),
        (None, "randrw", 2048, 1, 9762, 19),
        (None, "readwrite", 32768, 40, 20735, 679),
    ]
    for direction, pattern, size, threads, iops, mb_per_s in known:
        entry = entry_of(entries, direction, pattern=pattern, block_size=size, numjobs=threads)
        assert (entry.measurement.iops, rate(entry)) == (iops, mb_per_s * 1e6)


def test_known_rows_of_iozone() -> None:
    known = [
        ("supermicro-arc1260", "Reference hardware", "Re-read", 10, 260864.43),
        ("dell-pe2970-perc5i", "Default settings", "Initial write", 1, 339329.00),
        ("dell-pe2970-perc5i", "Default settings", "Read", 2, 193787.55),
        ("dell-pe2970-perc5i", "Tuned block device layer", "Read", 2, 503044.62),
        ("dell-pe2970-perc5i", "Tuned block device layer", "Rewrite", 10, 279933.16),
    ]
    for slug, path, name, threads, printed in known:
        named = [one for one in entries_of(slug, path) if one.measurement.name == name]
        direction = Direction.READ if "ead" in name else Direction.WRITE
        assert rate(entry_of(named, direction, numjobs=threads)) == printed * 1024


@pytest.mark.parametrize(
    ("slug", "file", "path"),
    [
        ("supermicro-arc1260", "iozone.txt", "Reference hardware"),
        ("dell-pe2970-perc5i", "iozone-default.txt", "Default settings"),
        ("dell-pe2970-perc5i", "iozone-read-ahead.txt", "Tuned block device layer"),
    ],
)
def test_every_row_of_iozone(slug: str, file: str, path: str) -> None:
    entries = entries_of(slug, path)
    rows = 0
    threads, size = 0, 0
    for line in (DATA / slug / file).read_text().split("\n"):
        if command := re.match(r"iozone -s (\d+)g -r 1m -i 0 -i 1 -t (\d+) ", line):
            size, threads = int(command[1]) * GIB, int(command[2])
        elif row := re.match(r"(\S.*\S) +([\d.]+) kB/s", line):
            rows += 1
            named = [one for one in entries if one.measurement.name == row[1]]
            direction = Direction.READ if "ead" in row[1] else Direction.WRITE
            entry = entry_of(named, direction, numjobs=threads, size=size, block_size=MIB)
            assert rate(entry) == float(row[2]) * 1024
    assert rows == len(entries)


@pytest.mark.parametrize("slug", BM_FLASH)
def test_bandwidth_of_bm_flash_is_binary(slug: str) -> None:
    """IOPS are cut to whole numbers, bandwidth to a tenth."""
    for entry in LIBRARY[slug].entries:
        measured = entry.measurement
        if measured.tool == "bm-flash" and measured.iops and measured.iops > 100:
            by_iops = measured.iops * int(measured.factors["block_size"] or 0)
            assert rate(entry) == pytest.approx(by_iops, rel=0.012, abs=0.1 * MIB)


def test_bandwidth_of_xdd_is_decimal() -> None:
    for entry in entries_of("x25-m-lvm-stripe", "xdd"):
        measured = entry.measurement
        by_iops = (measured.iops or 0) * int(measured.factors["block_size"] or 0)
        assert abs(rate(entry) - by_iops) <= 1.1e6


def test_dd_is_bytes_and_seconds_not_the_printedrate() -> None:
    write = entry_of(entries_of("x25-m-lvm-stripe", "sequential: dd"), Direction.WRITE)
    read = entry_of(entries_of("x25-m-lvm-stripe", "sequential: dd"), Direction.READ)
    assert rate(write) == 17179869184 / 34.8562
    assert rate(read) == 17179869184 / 27.2719
    assert round(rate(write) / 1e6) == 493
    assert round(rate(read) / 1e6) == 630
    assert write.measurement.factors["block_size"] == 8192
