"""Points and configuration facts by their digests, kept in this process.

A digest names its content (`plans.points.point_key`, `models.Configuration`), so a value that was read once stays
valid. The database is asked only for digests that are new to this process.
"""

import re
from collections.abc import Callable, Collection, Mapping
from sys import intern
from typing import Generic, TypeVar

from webapp.plans.values import Value
from webapp.results.models import Configuration, Result

# Facts of a configuration without the names of its devices. The worker names the facts (`inventory.facts`).

Facts = Mapping[str, str]
CONTROLLER_FACT = "device.controller.model"  # without the device's name, as worker.inventory calls it

_BELOW = re.compile(r"device\.[^.]+\.(below)\..+")
_OF_A_DEVICE = re.compile(r"device\.[^.]+\.(.+)")
_OF_A_STREAM = re.compile(r"stream\.([0-9]+)\.(.+)")
_DEVICE_AND_BELOW = re.compile(r"device\.([^.]+)\.below\.([^.]+)")


def without_device_names(facts: Facts) -> Facts:
    """Facts without device names and stream numbers, so that facts of different devices can be compared.

    `device.nvme0n1.scheduler` becomes `device.scheduler`. If all devices or streams have the same value, it is listed
    once, otherwise all values are listed.
    """
    values: dict[str, list[str]] = {}
    for name, text in sorted(facts.items()):
        values.setdefault(_plain_name(name), []).append(text)
    return {name: texts[0] if len({*texts}) == 1 else ", ".join(texts) for name, texts in values.items()}


def _plain_name(name: str) -> str:
    if device := _BELOW.fullmatch(name) or _OF_A_DEVICE.fullmatch(name):
        return f"device.{device[1]}"
    stream = _OF_A_STREAM.fullmatch(name)
    return stream[2] if stream else name


def facts_of_stream(facts: Facts, number: int) -> Facts:
    """Without the facts of other streams, and without those of devices that only other streams use."""
    streams = {name: int(match[1]) for name in facts if (match := _OF_A_STREAM.fullmatch(name))}
    used: dict[int, set[str]] = {of: {*facts.get(f"stream.{of}.device", "").split(", ")} for of in streams.values()}
    for over, below in (match.groups() for name in facts if (match := _DEVICE_AND_BELOW.fullmatch(name))):
        for devices in used.values():
            if over in devices:
                devices.add(below)
    others = set[str]().union(*used.values()) - used.get(number, set())
    return {
        name: text
        for name, text in facts.items()
        if streams.get(name, number) == number and not (name.startswith("device.") and name.split(".")[1] in others)
    }


Point = Mapping[str, Value]
MAX_POINTS = 10_000  # of about 2 kB
MAX_FACTS = 1_000  # of about 10 kB

Key = TypeVar("Key")
Content = TypeVar("Content")


class DigestCache(Generic[Key, Content]):
    """`read` takes keys by which the database finds the content quickly, and returns it by digest."""

    def __init__(self, max_kept: int, read: Callable[[Collection[Key]], Mapping[str, Content]]) -> None:
        self._max_kept, self._read = max_kept, read
        self._kept: dict[str, Content] = {}

    def get(self, wanted: Mapping[str, Key]) -> dict[str, Content]:
        """Content by digest, not to be changed; `wanted` is digest -> key. One query if a digest is new, else none."""
        contents = {digest: known for digest in wanted if (known := self._kept.get(digest)) is not None}
        if len(contents) < len(wanted):
            new = self._read([key for digest, key in wanted.items() if digest not in contents])
            if len(self._kept) + len(new) > self._max_kept:
                self._kept.clear()
            self._kept.update(new)
            contents.update(new)
        return contents

    def clear(self) -> None:
        self._kept.clear()


def _read_points(result_ids: Collection[int]) -> dict[str, Point]:
    points = Result.objects.filter(id__in=result_ids).order_by().values_list("point_key", "point")
    return {key: _interned(point) for key, point in points}


def _interned(point: Point) -> Point:
    """Share the strings of factor names and levels between points."""
    return {intern(name): intern(value) if isinstance(value, str) else value for name, value in point.items()}


def _read_facts(keys: Collection[str]) -> dict[str, Facts]:
    streams_by_digest: dict[str, list[str]] = {}
    for key in keys:
        digest, _, stream = key.partition(" ")
        streams_by_digest.setdefault(digest, []).append(stream)
    configurations = Configuration.objects.filter(digest__in=streams_by_digest).values_list("digest", "facts")
    return {
        facts_key(digest, stream): without_device_names(facts_of_stream(facts, int(stream)) if stream else facts)
        for digest, facts in configurations
        for stream in streams_by_digest[digest]
    }


def facts_key(digest: str, stream: int | str = "") -> str:
    """Of all facts of a configuration, or of those of the stream with this number."""
    return f"{digest} {stream}" if stream != "" else digest


POINTS: DigestCache[int, Point] = DigestCache(MAX_POINTS, _read_points)  # key: id of any result at the point
FACTS: DigestCache[str, Facts] = DigestCache(MAX_FACTS, _read_facts)  # key: that of `facts_key`


def clear() -> None:
    POINTS.clear()
    FACTS.clear()
