"""Divides the sizes and amounts of a plan, so that it fits small targets. Pure."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import lcm

import msgspec

from webapp.core.formatting import bytes_binary
from webapp.plans import levels
from webapp.plans.document import Part, PlanDocument
from webapp.plans.engines import engine_of
from webapp.plans.factors import FACTORS, stream_and_factor
from webapp.plans.fitness import TargetFacts, Workloads, room_of
from webapp.plans.grids import PartGrid, grids_of
from webapp.plans.points import Point, layouts_of, workloads_of
from webapp.plans.streams import names_of, own_point
from worker.contract.base import MIB
from worker.contract.workload import AnyWorkload, TargetKind

# Sizes relative to the target's capacity or the host's memory, resolved when a run starts. Pure.
#
# A point with `size_percent` or `size_memory` also gets `size` in bytes, for each target; one with `offset_percent`
# gets `offset`, and one with `passes` gets `amount`. The size is rounded down to whole blocks of all jobs. All points
# of a part use the same step, so that jobs and block sizes do not change the size and the points share their files.
# Streams have these factors under their names: `reader.size_percent`.

PERCENT, MEMORY, PASSES = "size_percent", "size_memory", "passes"
OFFSETS = {"offset_percent": "offset", "offset_increment_percent": "offset_increment"}
RELATIVE = frozenset({PERCENT, MEMORY, PASSES, *OFFSETS})
LARGEST_STEP_SHARE = 0.02  # of the size: above it, each point is rounded on its own


class SizeUnknown(ValueError):
    """The capacity or the memory is unknown; the message says where."""


def sized(points: Sequence[Point], group: Sequence[TargetFacts], streams: Sequence[str] = ()) -> list[Point]:
    """The points with their sizes in bytes on the smallest target of the group, or each stream on its own one, in the
    order of `streams`. Raises SizeUnknown."""
    stream_points = (own_point(point, name) for point in points for name in names_of(point) or ("",))
    step = lcm(MIB, *(_step(point) for point in stream_points if _is_relative(point)))
    own = {name: (target,) for name, target in zip(streams, group, strict=False)}
    return [_with_sizes(point, group, own, step) if is_relative([point]) else point for point in points]


def is_relative(points: Iterable[Point]) -> bool:
    return any(stream_and_factor(name)[1] in RELATIVE for point in points for name in point)


def _is_relative(point: Point) -> bool:
    return not RELATIVE.isdisjoint(point)


def _with_sizes(
    point: Point, group: Sequence[TargetFacts], own: Mapping[str, Sequence[TargetFacts]], step: int
) -> Point:
    """The point with the sizes of each of its streams."""
    names = names_of(point)
    if not names:
        return point | _sizes(point, group, step)
    points = {name: own_point(point, name) for name in names}
    relative = {name: {factor: points[name][factor] for factor in RELATIVE & points[name].keys()} for name in names}
    return point | {
        f"{name}.{factor}": value
        for name in names
        for factor, value in (relative[name] | _sizes(points[name], own.get(name, group), step)).items()
    }


def _sizes(point: Point, group: Sequence[TargetFacts], step: int) -> Point:
    """The factors in bytes that follow from the relative ones of a workload's own point."""
    sizes: Point = {}
    if PERCENT in point or MEMORY in point:
        wanted = min(_wanted(point, target) for target in group) // int(point.get("files") or 1)
        used_step = step if step <= wanted * LARGEST_STEP_SHARE else lcm(MIB, _step(point))
        sizes["size"] = wanted // used_step * used_step or wanted // 512 * 512
    for name in OFFSETS.keys() & point.keys():
        share, unit = int(point[name] or 0), lcm(512, _block(point))
        sizes[OFFSETS[name]] = min(_room(target, point, name) for target in group) * share // 100 // unit * unit
    if PASSES in point:
        used = point | sizes
        size = used.get("size") or min(_room(target, point, PASSES) for target in group)
        work = engine_of(used).workload(used, seed=1)
        sizes["amount"] = int(size or 0) * work.files * work.visits_per_pass * int(point[PASSES] or 0)
    return sizes


def _wanted(point: Point, target: TargetFacts) -> int:
    if PERCENT in point:
        return _room(target, point, PERCENT) * int(point[PERCENT] or 0) // 100
    if not target.memory_bytes:
        raise SizeUnknown(
            f"The memory of the host of {target.shown} is unknown. Give `size` instead of `{MEMORY}`, or wait for the "
            "host's inventory."
        )
    return target.memory_bytes * int(point[MEMORY] or 0) // 100


def _room(target: TargetFacts, point: Point, name: str) -> int:
    room = room_of(target, layouts_of(point)[0])
    if not room:
        instead = {PERCENT: "size", PASSES: "amount"} | OFFSETS
        raise SizeUnknown(f"The capacity of {target.shown} is unknown. Give `{instead[name]}` instead of `{name}`.")
    return room


def _block(point: Point) -> int:
    try:
        return engine_of(point).workload(point, seed=1).largest_io_bytes
    except msgspec.ValidationError:
        return 1


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
    sentence = f"**Sizes and amounts are divided by {divisor:,}**, to fit targets of {bytes_binary(most_bytes)}."
    note = f"{document.note.rstrip()}\n\n{sentence}\n".lstrip()
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
    rooms = [room for target in targets if (room := _target_room(target))]
    works = (work for grid in grids for work in _workloads(grid))
    return min(rooms) if rooms and _divisor(works, min(rooms)) > 1 else 0


def _target_room(target: TargetFacts) -> int:
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
