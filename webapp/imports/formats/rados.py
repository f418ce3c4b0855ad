"""rados bench: the figures at its end.

Units: MB/sec is MiB/s (obj_bencher.cc divides by 1024 * 1024), times are s. The printed IOPS are a whole number that is
cut off, so IOPS and bandwidth are computed from the exact number of operations, their size and the time. A write has
many objects in flight (`-t`), which the text of a read does not state. `rand` and `seq` are known from the command.
"""

import re
from collections.abc import Iterator

from webapp.imports.measurement import Latency, Measurement, with_repeats
from webapp.imports.values import SECOND, ImportRefused, Printed, lines, number, sorted_factors, whole
from webapp.plans.values import Value
from worker.contract.items import Direction

TOOL = "rados bench"
_COMMAND = re.compile(r"rados\b.{0,300}? bench\b.{0,200}? (write|seq|rand)\b(.{0,300})")
_IN_FLIGHT = re.compile(r"Maintaining (\d{1,9}) concurrent ")
_THREADS = re.compile(r"(?:-t|--concurrent-ios)[ =]?(\d{1,9})\b")
_FIGURE = re.compile(
    r"(Total time run|Total (?:writes|reads) made|(?:Write|Read|Object) size|"
    r"(?:Average|Stddev|Max|Min) latency(?:\(s\))?)"
    r": +([\d.]{1,20})",
    re.IGNORECASE,
)
_START = "total time run"
_DEPTH = 16  # of rados bench, without -t
_MIN_TIME_DIGITS = 4


def sniff(head: str) -> bool:
    return "Total time run:" in head and bool(re.search(r"Total (?:writes|reads) made: ", head))


def parse(text: str) -> list[Measurement]:
    """Raises ImportRefused."""
    results = [_measured(mode, depth, figures) for mode, depth, figures in _runs(lines(text))]
    if not results:
        raise ImportRefused("There is no result of rados bench in this text.")
    return with_repeats(results)


def _runs(text_lines: list[str]) -> Iterator[tuple[str, int | None, dict[str, str]]]:
    """Mode from the command or "", objects in flight if stated, and the figures by their names in lower case."""
    mode, depth = "", None
    figures: dict[str, str] = {}
    for line in text_lines:
        command, in_flight = _COMMAND.search(line), _IN_FLIGHT.search(line)
        figure = _FIGURE.match(line.strip(" \t>#|*-"))
        name = figure[1].lower().removesuffix("(s)") if figure else ""
        if figures and (command or in_flight or name == _START):
            yield mode, depth, figures
            mode, depth, figures = "", None, {}
        if command:
            threads = _THREADS.search(command[0])
            mode, depth = command[1], int(threads[1]) if threads else _DEPTH
        elif in_flight:
            depth = int(in_flight[1])
        elif figure:
            figures[name] = figure[2]
    if figures:
        yield mode, depth, figures


def _measured(mode: str, depth: int | None, figures: dict[str, str]) -> Measurement:
    if not {"total writes made", "total reads made"} & figures.keys():
        raise ImportRefused("A result of rados bench has no line `Total writes made` or `Total reads made`.")
    direction = Direction.WRITE if "total writes made" in figures else Direction.READ
    try:
        operations = whole(figures[f"total {direction}s made"], "number of operations")
        block, seconds = whole(figures[f"{direction} size"], f"{direction} size"), number(figures[_START], "time")
    except KeyError as missing:
        raise ImportRefused(f"A result of rados bench has no line `{str(missing.args[0]).capitalize()}`.") from None
    if not seconds or len(figures[_START].replace(".", "").lstrip("0")) < _MIN_TIME_DIGITS:
        raise ImportRefused(f"The time of rados bench, {figures[_START]} s, is too short to compute a rate.")
    stated: dict[str, Value] = {"block_size": block, "iodepth": depth} if depth else {"block_size": block}
    if direction is Direction.WRITE or mode in ("seq", "rand"):
        stated["pattern"] = "randread" if mode == "rand" and direction is Direction.READ else str(direction)
    factors, other = sorted_factors(stated)
    if (objects := figures.get("object size", "")) not in ("", figures[f"{direction} size"]):
        other["object size"] = f"{objects} bytes"
    return Measurement(
        tool=TOOL,
        name=mode or str(direction),
        direction=direction,
        factors=factors,
        other=other,
        iops=operations / seconds,
        bytes_per_s=operations * block / seconds,
        ios=operations,
        bytes=operations * block,
        runtime_ms=round(seconds * 1000),
        latency=_latency(figures),
        notes=("The rates are computed from the number of operations, their size and the time.",),
    )


def _latency(figures: dict[str, str]) -> Latency:
    values: dict[str, Printed] = {
        name: number(figures[f"{name} latency"], "latency") * SECOND
        for name in ("min", "average", "max", "stddev")
        if f"{name} latency" in figures
    }
    mean = values.get("average")
    return Latency(
        min_ns=values.get("min"),
        mean_ns=mean,
        max_ns=values.get("max"),
        stddev_ns=values.get("stddev"),
        step_ns=mean.step if mean is not None else 0,
    )
