"""kbench: the summary of its four fio jobs, of one volume or of two.

Units: bandwidth is KiB/s and latency ns, as means that fio measured (`iops_mean`, `bw_mean`, the mean total latency);
decimals are cut off. The summary does not state the block sizes. Those of kbench's job files are taken as assumed:
4 KiB, and 128 KiB for bandwidth. Depths differ between its versions, so none is taken.
"""

import re
from collections.abc import Iterator

import msgspec

from webapp.imports.measurement import Latency, Measurement, with_repeats
from webapp.imports.values import KIB, ImportRefused, lines, number, size, sorted_factors
from webapp.plans.values import Value
from worker.contract.items import Direction

TOOL = "kbench"
_TITLE = re.compile(r"=?\s?FIO Benchmark (?:Summary|Compar[is]{2,3}on Summary)")
_VOLUMES = re.compile(r"For: (.{1,200})")
_SIZE = re.compile(r"size: (\d{1,9} ?[kmgt]i?)b?", re.IGNORECASE)
_GROUP = re.compile(r"(IOPS|Bandwidth in KiB/sec|Latency in ns) \(Read/Write\)")
_ROW = re.compile(r"(Random|Sequential): +([\d,]{1,20}) / ([\d,]{1,20})(?: +vs +([\d,]{1,20}) / ([\d,]{1,20}) )?")
_IDLE = re.compile(r"CPU Idleness: +(\d{1,3})%(?: +vs +(\d{1,3})%)?")
_BLOCKS = {"IOPS": 4 * KIB, "Bandwidth in KiB/sec": 128 * KIB, "Latency in ns": 4 * KIB}
_JOBS = {"IOPS": "iops", "Bandwidth in KiB/sec": "bw", "Latency in ns": "lat"}
_NOTE = "The block size is that of kbench's job files, not stated in the summary."


class _Cell(msgspec.Struct, frozen=True):
    group: str
    pattern: str  # Random, Sequential
    direction: Direction
    volume: str
    value: float
    size: int | None


def sniff(head: str) -> bool:
    return bool(_TITLE.search(head)) and bool(_GROUP.search(head))


def parse(text: str) -> list[Measurement]:
    """Raises ImportRefused."""
    results = [_measured(cell, idle) for cell, idle in _cells(lines(text))]
    if not results:
        raise ImportRefused("The summary of kbench has no row `Random` or `Sequential`: it is cut off.")
    return with_repeats(results)


def _cells(text_lines: list[str]) -> Iterator[tuple[_Cell, float | None]]:
    """Each value with the idle share of the CPUs in its group, in percent, which stands below the group's rows."""
    volumes, file_size, group = [""], None, ""
    waiting: list[_Cell] = []
    for line in (each.strip(" \t#>|") for each in text_lines):
        if _TITLE.match(line):
            yield from ((cell, None) for cell in waiting)
            volumes, file_size, group, waiting = [""], None, "", []
        elif names := _VOLUMES.match(line):
            volumes = [name.strip() for name in names[1].split(" vs ")]
        elif stated := _SIZE.fullmatch(line):
            file_size = size(stated[1])
        elif title := _GROUP.search(line):
            yield from ((cell, None) for cell in waiting)
            group, waiting = title[1], []
        elif group and (row := _ROW.match(line)):
            values = [row[2], row[3], row[4], row[5]]
            for place, value in enumerate(values):
                if value and place // 2 < len(volumes):
                    direction = (Direction.READ, Direction.WRITE)[place % 2]
                    waiting.append(_Cell(group, row[1], direction, volumes[place // 2], _whole(value), file_size))
        elif idle := _IDLE.match(line):
            shares = dict(zip(volumes, (each for each in idle.groups() if each), strict=False))
            for cell in waiting:
                share = shares.get(cell.volume)
                yield cell, float(share) if share else None
            waiting = []
    yield from ((cell, None) for cell in waiting)


def _whole(text: str) -> float:
    return number(text.replace(",", ""), "figure")


def _measured(cell: _Cell, idle: float | None) -> Measurement:
    pattern = f"{'rand' if cell.pattern == 'Random' else ''}{cell.direction}"
    stated: dict[str, Value] = {"pattern": pattern, "block_size": _BLOCKS[cell.group]}
    if cell.size is not None:
        stated["size"] = cell.size
    factors, other = sorted_factors(stated)
    rate = cell.value if cell.group != "Latency in ns" else None
    return Measurement(
        tool=TOOL,
        name=f"{'rand' if cell.pattern == 'Random' else 'seq'}-{cell.direction}-{_JOBS[cell.group]}",
        direction=cell.direction,
        factors=factors,
        assumed=frozenset({"block_size"}),
        other=other | ({"volume": cell.volume} if cell.volume else {}),
        iops=rate if cell.group == "IOPS" else None,
        bytes_per_s=rate * KIB if rate is not None and cell.group != "IOPS" else None,
        latency=Latency(kind="lat", mean_ns=cell.value, step_ns=1) if rate is None else Latency(),
        metrics={"cpu_idle_percent": idle} if idle is not None else {},
        notes=(_NOTE,),
    )
