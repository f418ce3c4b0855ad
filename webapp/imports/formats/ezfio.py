"""ezFIO's table of tests (ezfio_tests_*.csv).

Units: `MB/s` is MiB/s and latencies are µs (ezfio.py, RunTest: IOPS x block size / 1024^2; lat_ns / 1000). IOPS are the
sum of reads and writes, so a mixed test is one measurement without a direction. A test with 0 IOPS was skipped.
"""

from webapp.imports.measurement import Latency, Measurement, with_repeats
from webapp.imports.values import (
    MIB,
    US,
    ImportRefused,
    Row,
    fields,
    lines,
    number,
    optional,
    rows,
    sorted_factors,
    whole,
)
from webapp.plans.values import Value
from worker.contract.items import Direction

TOOL = "ezFIO"
_HEAD = "Type,Write %,Block Size,Threads,Queue Depth/Thread,IOPS,"
_PATTERNS = {"Rand": ("randread", "randrw", "randwrite"), "Seq": ("read", "readwrite", "write")}
_FACTS = ("drive", "model", "serial", "fio version", "cpu")


def sniff(head: str) -> bool:
    return _HEAD in head


def parse(text: str) -> list[Measurement]:
    """Lines before the head are facts, lines after it with one field are titles of the tests below. May refuse."""
    measurements: list[Measurement] = []
    names: list[str] = []
    facts: dict[str, str] = {}
    title = ""
    for line in map(str.strip, lines(text)):
        cells = fields(line)
        if line.startswith(_HEAD):
            names = cells
        elif not names and len(cells) >= 2 and cells[0].rstrip(":").lower() in _FACTS:
            facts[cells[0].rstrip(":").lower()] = cells[1][:200]
        elif names and line == "ERROR":
            raise ImportRefused("A test of ezFIO failed: the file has a line ERROR.")
        elif names and len(cells) == 1 and line:
            title = line[:200]
        elif names and line:
            measurements += _measured(next(rows(names, [line])), title, facts)
    if not measurements:
        raise ImportRefused("This table of ezFIO has no test with I/O.")
    return with_repeats(measurements)


def _measured(row: Row, title: str, facts: dict[str, str]) -> list[Measurement]:
    iops, writes = number(row["IOPS"], "IOPS"), whole(row["Write %"], "Write %")
    if row["Type"] not in _PATTERNS or writes > 100:
        raise ImportRefused(f"The test `{row['Type'][:40]}` with {writes} % writes is not one of ezFIO.")
    if not iops:
        return []
    place = 0 if writes == 0 else 2 if writes == 100 else 1
    stated: dict[str, Value] = {
        "pattern": _PATTERNS[row["Type"]][place],
        "block_size": whole(row["Block Size"], "block size"),
        "numjobs": whole(row["Threads"], "threads"),
        "iodepth": whole(row["Queue Depth/Thread"], "queue depth"),
    }
    factors, other = sorted_factors(stated | ({"read_percent": 100 - writes} if place == 1 else {}))
    bandwidth = optional(row, "Bandwidth (MB/s)")
    return [
        Measurement(
            tool=TOOL,
            name=title,
            direction=(Direction.READ, None, Direction.WRITE)[place],
            factors=factors,
            other=other | facts,
            iops=iops,
            bytes_per_s=None if bandwidth is None else bandwidth * MIB,
            latency=_latency(row, place),
            metrics=_latencies(row) if place == 1 else {},
        )
    ]


def _latency(row: Row, place: int) -> Latency:
    name = ("Read Latency (us)", "", "Write Latency (us)")[place]
    mean = optional(row, name)
    return Latency(kind="lat", mean_ns=mean * US) if mean else Latency()


def _latencies(row: Row) -> dict[str, float]:
    columns = {"read_latency_mean_ns": "Read Latency (us)", "write_latency_mean_ns": "Write Latency (us)"}
    return {name: value * US for name, column in columns.items() if (value := optional(row, column))}
