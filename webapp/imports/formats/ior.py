"""IOR 2.x to 4.x: the rows of its table of results.

Units: MiB/s is 2^20, block and transfer are KiB, times are s. The bandwidth is that of the time from the first open to
the last close (total), so IOPS are computed from it and the transfer size. IOR's own columns IOPS and Latency (from 3.3
on) are those of the transfers alone, without open and close; they are kept as metrics of the tool.
"""

import re
from collections.abc import Iterator, Mapping

from webapp.imports.measurement import Measurement, with_repeats
from webapp.imports.values import KIB, MIB, ImportRefused, lines, number, sorted_factors, whole
from webapp.plans.values import Value
from worker.contract.items import Direction

TOOL = "IOR"
_VERSION = re.compile(r"IOR-(\d[\w.+-]{0,30}): MPI Coordinated Test")
_HEAD = re.compile(r"access +bw\(MiB/s\) ")
_OPTION = re.compile(r"([a-z][a-zA-Z ]{2,30}?) *[:=] +(\S.{0,300})")
_COMMAND = "command line"
_DIRECT = re.compile(r" -B\b|useO_DIRECT=1|--posix\.odirect")
_KEPT = {
    "api": "API", "access": "access", "type": "type", "segments": "segments", "nodes": "nodes",
    "clients per node": "clients per node", "aggregate filesize": "aggregate file size", "blocksize": "IOR block size",
}  # fmt: skip
_METRICS = {"iops": "transfer_iops", "latency(s)": "transfer_latency_s"}
_NEEDED = frozenset(("access", "bw(mib/s)", "xfer(kib)"))
_NOTE = "The bandwidth includes opening and closing the files."


def sniff(head: str) -> bool:
    return bool(_HEAD.search(head))


def parse(text: str) -> list[Measurement]:
    """Raises ImportRefused."""
    results = list(_results(lines(text)))
    if not results:
        raise ImportRefused("The table of IOR has no row of a write or a read: it is cut off.")
    return with_repeats(results)


def _results(text_lines: list[str]) -> Iterator[Measurement]:
    version = ""
    columns: list[str] = []
    options: dict[str, str] = {}
    for line in (each.strip(" \t>#|") for each in text_lines):
        cells = line.split()
        if title := _VERSION.match(line):
            version, columns, options = title[1], [], {}
        elif _HEAD.match(line):
            columns = [cell.lower() for cell in cells]
            if missing := _NEEDED.difference(columns):
                raise ImportRefused(
                    f"The table of IOR has no column {', '.join(sorted(missing))}: the text is damaged."
                )
        elif columns and cells[:1] in (["write"], ["read"]):
            if len(cells) < len(columns):
                raise ImportRefused(
                    f"A row of IOR has {len(cells)} figures, and its head {len(columns)}: the text is cut off."
                )
            yield _measured(version, options, dict(zip(columns, cells, strict=False)))
        elif columns and line.startswith("Summary of all tests"):
            columns = []  # its rows begin with write and read too
        elif not columns and line.lower().startswith(_COMMAND):
            options[_COMMAND] = line
        elif not columns and (option := _OPTION.fullmatch(line)):
            options[option[1].strip()] = option[2].strip()


def _measured(version: str, options: Mapping[str, str], row: Mapping[str, str]) -> Measurement:
    direction = Direction(row["access"])
    seconds = number(row["total(s)"], "time") if "total(s)" in row else None
    stated: dict[str, Value] = {"block_size": round(number(row["xfer(kib)"], "transfer size") * KIB)}
    order = options.get("ordering in a file", "").split(" ")[0]
    if order in ("sequential", "random"):
        stated["pattern"] = f"{'rand' if order == 'random' else ''}{direction}"
    tasks = (options.get("tasks") or options.get("clients", "")).split(" ")[0]
    if tasks:
        stated["numjobs"] = whole(tasks, "number of tasks")
    if _DIRECT.search(options.get(_COMMAND, "")):
        stated["direct"] = True
    factors, other = sorted_factors(stated)
    return Measurement(
        tool=TOOL,
        tool_version=version,
        name=str(direction),
        direction=direction,
        factors=factors,
        other=other | {label: options[name] for name, label in _KEPT.items() if name in options},
        bytes_per_s=number(row["bw(mib/s)"], "bandwidth") * MIB,
        runtime_ms=round(seconds * 1000) or None if seconds is not None else None,
        metrics={
            metric: number(row[column], column) for column, metric in _METRICS.items() if row.get(column, "-") != "-"
        },
        notes=(_NOTE,),
    )
