"""Processor lists in the kernel's format, and values that differ between processors."""

import re
from collections.abc import Mapping
from pathlib import Path

from worker.inventory.sysfs import SYS, text

_LIST = re.compile(r"^[0-9]+(-[0-9]+)?(,[0-9]+(-[0-9]+)?)*\Z")


def parse_list(words: str) -> tuple[int, ...]:
    """Parse `0-3,8`; () for an empty or malformed list."""
    if not _LIST.match(words):
        return ()
    ranges = (part.split("-") for part in words.split(","))
    return tuple(sorted({n for pair in ranges for n in range(int(pair[0]), int(pair[-1]) + 1)}))


def write_list(numbers: tuple[int, ...]) -> str:
    """Format numbers as `0-3,8`."""
    found: list[list[int]] = []
    for number in sorted(set(numbers)):
        if found and found[-1][1] == number - 1:
            found[-1][1] = number
        else:
            found.append([number, number])
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in found)


def online(sys: Path = SYS) -> tuple[int, ...]:
    return parse_list(text(sys / "devices/system/cpu/online"))


def of_node(node: str, sys: Path = SYS) -> tuple[int, ...]:
    """The online processors of a NUMA node."""
    return parse_list(text(sys / f"devices/system/node/node{node}/cpulist"))


def join(values: Mapping[int, str]) -> str:
    """One value if it is the same on all processors, else `powersave@0-3;performance@4-7`."""
    groups: dict[str, list[int]] = {}
    for cpu, value in values.items():
        groups.setdefault(value, []).append(cpu)
    if len(groups) <= 1:
        return next(iter(groups), "")
    return ";".join(f"{value}@{write_list(tuple(cpus))}" for value, cpus in groups.items())


def split(joined: str, cpus: tuple[int, ...]) -> dict[int, str]:
    """The inverse of `join`; a single value applies to all of `cpus`."""
    if "@" not in joined:
        return dict.fromkeys(cpus, joined)
    pairs = (part.rpartition("@") for part in joined.split(";"))
    return {cpu: value for value, _, listed in pairs for cpu in parse_list(listed)}
