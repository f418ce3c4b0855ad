"""Measured figures: each has a wanted limit, and all are printed as one table."""

import json
import os
import statistics
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from dev.console import say


@dataclass(frozen=True)
class Figure:
    name: str
    unit: str
    median: float
    lowest: float
    highest: float
    count: int
    wanted: str
    met: bool


def figure(name: str, unit: str, values: Sequence[float], wanted: str, *, met: bool) -> Figure:
    return Figure(name, unit, statistics.median(values), min(values), max(values), len(values), wanted, met)


def cpu_s(pid: int) -> float:
    """User and system time of one process (proc(5), stat fields 14 and 15)."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def show(figures: Sequence[Figure], *, as_json: bool) -> int:
    """Print the table; the exit status: 1 if a figure misses its limit."""
    say(f"{'figure':<66} {'median':>9} {'lowest':>9} {'highest':>9}      n  {'wanted':<8} unit")
    for each in figures:
        numbers = f"{each.median:>9.4g} {each.lowest:>9.4g} {each.highest:>9.4g} {each.count:>6}"
        say(f"{each.name:<66} {numbers}  {each.wanted:<8} {each.unit}{'' if each.met else '   MISSED'}")
    if as_json:
        say(json.dumps([asdict(each) for each in figures], indent=2))
    return 0 if all(each.met for each in figures) else 1
