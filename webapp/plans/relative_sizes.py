"""Sizes relative to the target's capacity or the host's memory, resolved when a run starts. Pure.

A point with `size_percent` or `size_memory` also gets `size` in bytes, for each target. The size is rounded down to
whole blocks of all jobs. All points of a part use the same step, so that jobs and block sizes do not change the size
and the points share their files.
"""

from collections.abc import Iterable, Sequence
from math import lcm

import msgspec

from webapp.plans.engines import engine_of
from webapp.plans.fitness import TargetFacts, room_of
from webapp.plans.points import Point, layout_of
from worker.contract.engine import MIB

PERCENT, MEMORY = "size_percent", "size_memory"
LARGEST_STEP_SHARE = 0.02  # of the size: above it, each point is rounded on its own


class SizeUnknown(ValueError):
    """The capacity or the memory is unknown; the message says where."""


def sized(points: Sequence[Point], group: Sequence[TargetFacts]) -> list[Point]:
    """The points with their size in bytes on the smallest target of the group. Raises SizeUnknown."""
    step = lcm(MIB, *(_step(point) for point in points if _is_relative(point)))
    return [_with_size(point, group, step) if _is_relative(point) else point for point in points]


def is_relative(points: Iterable[Point]) -> bool:
    return any(map(_is_relative, points))


def _is_relative(point: Point) -> bool:
    return PERCENT in point or MEMORY in point


def _with_size(point: Point, group: Sequence[TargetFacts], step: int) -> Point:
    wanted = min(_wanted(point, target) for target in group) // int(point.get("files") or 1)
    own = step if step <= wanted * LARGEST_STEP_SHARE else lcm(MIB, _step(point))
    return point | {"size": wanted // own * own or wanted // 512 * 512}


def _wanted(point: Point, target: TargetFacts) -> int:
    if PERCENT in point:
        room = room_of(target, layout_of(point))
        if not room:
            raise SizeUnknown(f"The capacity of {target.shown} is unknown. Give `size` instead of `{PERCENT}`.")
        return room * int(point[PERCENT] or 0) // 100
    if not target.memory_bytes:
        raise SizeUnknown(
            f"The memory of the host of {target.shown} is unknown. Give `size` instead of `{MEMORY}`, or wait for the "
            "host's inventory."
        )
    return target.memory_bytes * int(point[MEMORY] or 0) // 100


def _step(point: Point) -> int:
    """Bytes that a whole number of blocks of all jobs fills."""
    try:
        return engine_of(point).workload(point, seed=1).size_step_bytes
    except msgspec.ValidationError:
        return 1
