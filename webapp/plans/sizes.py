"""Divides the sizes and amounts of a plan, so that it fits small targets. Pure."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import lcm

import msgspec

from webapp.core.formatting import bytes_binary
from webapp.plans import levels
from webapp.plans.document import Part, PlanDocument
from webapp.plans.engines import engine_of
from webapp.plans.factors import FACTORS
from webapp.plans.fitness import TargetFacts, Workloads, room_of
from webapp.plans.grids import PartGrid, grids_of
from webapp.plans.points import Point, layout_of, workloads_of
from worker.contract.base import MIB
from worker.contract.workload import AnyWorkload, TargetKind

# Sizes relative to the target's capacity or the host's memory, resolved when a run starts. Pure.
#
# A point with `size_percent` or `size_memory` also gets `size` in bytes, for each target. The size is rounded down to
# whole blocks of all jobs. All points of a part use the same step, so that jobs and block sizes do not change the
# size and the points share their files.

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


SIZES = ("size", "amount", "skip")
SMALLEST = {"scale": 1, "max_wal_size": 32 * 2**20}  # further factors of space, with their smallest level

Texts = Mapping[str, str]


def with_smaller_sizes(document: PlanDocument, most_bytes: int) -> PlanDocument:
    """The plan with all sizes and amounts divided by the smallest power of two with which each point fits into
    `most_bytes`; its note says so.

    The sizes keep their ratios. They are rounded down to whole blocks of all jobs, but not below one block of each job.
    """
    works = [list(_workloads(grid)) for grid in grids_of(document)]
    every = [work for some in works for work in some]
    divisor = _divisor(every, most_bytes)
    if divisor == 1:
        return document
    parts = tuple(_part(part, divisor, some) for part, some in zip(document.parts, works, strict=True))
    said = f"**Sizes and amounts are divided by {divisor:,}**, to fit targets of {bytes_binary(most_bytes)}."
    note = f"{document.note.rstrip()}\n\n{said}\n".lstrip()
    return msgspec.structs.replace(document, note=note, common=_divided(document.common, divisor, every), parts=parts)


def _part(part: Part, divisor: int, works: Sequence[Workloads]) -> Part:
    streams = tuple(
        msgspec.structs.replace(stream, factors=_divided(stream.factors, divisor, works)) for stream in part.streams
    )
    return msgspec.structs.replace(part, factors=_divided(part.factors, divisor, works), streams=streams)


def fitting_bytes(grids: Iterable[PartGrid], targets: Iterable[TargetFacts]) -> int:
    """The largest size that fits all targets, if a size of the plan does not; else 0.

    Of directories and pools, half: file systems need space too, and pools may mirror the smallest drive.
    """
    rooms = [room for target in targets if (room := _room(target))]
    works = (work for grid in grids for work in _workloads(grid))
    return min(rooms) if rooms and _divisor(works, min(rooms)) > 1 else 0


def _room(target: TargetFacts) -> int:
    if target.kind is TargetKind.POOL:
        return min((drive.size_bytes for drive in target.drives), default=0) // 2
    return target.size_bytes // (2 if target.kind is TargetKind.DIRECTORY else 1)


def _divisor(works: Iterable[Workloads], most_bytes: int) -> int:
    """Streams share a directory, so their files must fit together."""
    needed = max(
        (max(sum(w.space_bytes for w in each), *(w.end_bytes or 0 for w in each)) for each in works), default=0
    )
    return 1 << (-(-needed // most_bytes) - 1).bit_length() if needed > most_bytes else 1


def _workloads(grid: PartGrid) -> Iterator[Workloads]:
    """Of each point; none if the plan has more points than a run may have."""
    for point in grid.points:
        try:
            yield workloads_of(point, seed=1)
        except msgspec.ValidationError:  # such points are left out
            continue


def _divided(factors: Texts, divisor: int, points: Sequence[Workloads]) -> dict[str, str]:
    works = [work for each in points for work in each]
    return {
        name: _text(name, text, divisor, works) if name in (*SIZES, *SMALLEST) else text
        for name, text in factors.items()
    }


def _text(name: str, text: str, divisor: int, works: Sequence[AnyWorkload]) -> str:
    factor = FACTORS[name]
    steps = (work.largest_io_bytes if name == "skip" or work.random else work.size_step_bytes for work in works)
    step = SMALLEST.get(name) or lcm(*steps)
    smaller = [_smaller(value, divisor, step) for value in levels.parse(factor, text)]
    return ", ".join(dict.fromkeys(factor.values.write(value) for value in smaller))


def _smaller(value: object, divisor: int, step: int) -> int | None:
    if not isinstance(value, int):
        return None  # the whole device
    return max(step, value // divisor // step * step) if value else 0
