"""What the facts of a configuration mean to a comparison. Their names are the worker's (its `inventory.facts`)."""

import re
from collections.abc import Iterable, Mapping

from webapp.compare.dimensions import DIMENSIONS, label_of
from webapp.plans.factors import AT_ONCE
from webapp.plans.setting_rows import SETTING_ROWS, scheduler_needed

_BELOW = re.compile(r"device\.[^.]+\.(below)\..+")
_OF_A_DEVICE = re.compile(r"device\.[^.]+\.(.+)")
_OF_A_STREAM = re.compile(r"stream\.[0-9]+\.(.+)")

# Which target or device it is, rather than how it is set up: not worth saying where targets or hosts are compared.
IDENTITY = frozenset(
    f"device.{name}"
    for name in (
        "stable_id", "kind", "model", "serial", "firmware", "transport", "size_bytes", "below", "rotational",
        "max_hw_sectors_kb", "logical_block_size", "physical_block_size", "minimum_io_size", "optimal_io_size",
        "zoned", "fua", "io_poll",
    )
) | {"target", "target.kind", "device", "file_system.size_bytes", "file_system.mount"}  # fmt: skip

# How much room a file system has changes all the time and says nothing by itself.
VOLATILE = frozenset({"file_system.size_bytes"})

# Settings that the kernel changes along with another: a consequence of that one, not a second cause.
EFFECTS: Mapping[str, frozenset[str]] = {
    "scheduler": frozenset(
        {"nr_requests", "wbt_lat_usec", *(row.name for row in SETTING_ROWS if scheduler_needed(row.name))}
    ),
    "vm.dirty_ratio": frozenset({"vm.dirty_bytes"}),
    "vm.dirty_bytes": frozenset({"vm.dirty_ratio"}),
    "vm.dirty_background_ratio": frozenset({"vm.dirty_background_bytes"}),
    "vm.dirty_background_bytes": frozenset({"vm.dirty_background_ratio"}),
    "read_ahead_sectors": frozenset({"read_ahead_kb"}),
} | {
    name: frozenset({"read_ahead_kb"})  # newer kernels reckon it anew
    for name in ("max_sectors_kb", "rotational", "add_random", "iostats", "write_cache", "io_poll")
}


def normalised(facts: Mapping[str, str]) -> dict[str, str]:
    """Without the names of devices and numbers of streams, so that facts of different devices can be held together.

    `device.nvme0n1.scheduler` is `device.scheduler`; what several devices or streams have alike is said once, else all.
    """
    made: dict[str, list[str]] = {}
    for name, text in sorted(facts.items()):
        made.setdefault(_plain_name(name), []).append(text)
    return {name: texts[0] if len({*texts}) == 1 else ", ".join(texts) for name, texts in made.items()}


def _plain_name(name: str) -> str:
    if device := _BELOW.fullmatch(name) or _OF_A_DEVICE.fullmatch(name):
        return f"device.{device[1]}"
    stream = _OF_A_STREAM.fullmatch(name)
    return stream[1] if stream else name


def setting_of(fact: str) -> str:
    """The factor that a fact shows as observed: `scheduler` of `device.scheduler`; "" where it is none."""
    place, _, name = fact.partition(".")
    return name if place in ("device", "host") and name in DIMENSIONS else ""


def causes(fact: str, dimensions: Iterable[str]) -> list[str]:
    """Labels of the compared settings of which the kernel makes this fact follow."""
    name = setting_of(fact)
    return [label_of(cause) for cause in dimensions if name in EFFECTS.get(cause, ()) or _made_by(cause, fact)]


def _made_by(cause: str, fact: str) -> bool:
    """Another layout is another device or file system, of other drives: everything that is told of them follows.
    More targets at once are more drives, each with a name of its own.
    """
    if cause == AT_ONCE:
        return fact in IDENTITY
    return cause == "layout" and fact.startswith(("device", "file_system"))
