"""Points: one combination of levels, as a flat JSON object from factor name to stored value.

A point contains every factor that applies, including defaults, so that results of differently written plans can be
found and compared. The layout, settings, factors of the engine's processes, stop rules and the number of targets at
once are included only if the plan sets them. Left out: factors without effect, such as `read_percent` of patterns that
do not mix, and of two alternatives the one that is not given, such as `runtime` if `amount` is.
"""

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import TypeVar

import msgspec

from webapp.plans import streams
from webapp.plans.engines import ENGINE, ENGINES, engine_of, name_of
from webapp.plans.factors import (
    ALTERNATIVES,
    AT_ONCE,
    BEFORE,
    BESIDE,
    FACTORS,
    HOSTS_AT_ONCE,
    LAYOUT,
    STREAM,
    STREAMS,
    STREAMS_ON,
    FactorKind,
    by_cost,
    name_layout,
    of_other_engines,
    stream_and_factor,
)
from webapp.plans.setting_rows import scheduler_needed
from webapp.plans.steps import NONE, StepsBefore, steps_before
from webapp.plans.streams import names_of, own_point
from webapp.plans.values import LayoutLine, Value
from worker.contract.layouts import Layout, Maker
from worker.contract.workload import AnyWorkload, IoEngine, TargetKind

# Finds the factors that vary among points; tables, grids, filters and comparisons use this rule.
#
# A factor varies if it has more than one level. A missing factor counts as a level if its absence has a meaning: a
# setting that keeps the host's value, no layout, one target alone, an option that keeps fio's default, or the other
# of two alternatives (a block size or a split, a time or an amount), if the point has it. It does not count if the
# factor does not apply (`fixedbufs` of psync, the block size of a reflink), because then the factor that causes it
# varies already. What replaces a depth is stated by all points, and counts only where it has an effect.

T = TypeVar("T")
_SPEAKING = (
    FactorKind.SETTING,
    FactorKind.LAYOUT,
    FactorKind.TARGETS,
    FactorKind.STREAMS,
    FactorKind.OPTION,
    FactorKind.CHANGE,
)
DERIVED_FROM: Mapping[str, frozenset[str]] = {  # resolved per target
    "size": frozenset({"size_percent", "size_memory"}),
    "amount": frozenset({"passes"}),
    "offset": frozenset({"offset_percent"}),
    "offset_increment": frozenset({"offset_increment_percent"}),
}
_SYNC_DEPTH, _WITH_QUEUE = "sync_depth", frozenset(engine for engine in IoEngine if engine.asynchronous)
_ABSENT = object()  # differs from every level
_ALTERNATIVES_OF = {
    name: frozenset(other for pair in ALTERNATIVES if name in pair for other in pair)
    for name in {*chain.from_iterable(ALTERNATIVES)}
}
_PLACES = {name: index for index, name in enumerate(FACTORS)}


def varying(points: Iterable[Mapping[str, object]]) -> tuple[str, ...]:
    """Names of the varying factors, in the order of the table of factors; unknown ones last, in alphabetical order."""
    known = list(points)
    certain = _shared(known) - DERIVED_FROM.keys() - {_SYNC_DEPTH}  # every point has these, so only their levels count
    names = (name for name in differing(known) if name in certain or len(_levels(name, known)) > 1)
    return tuple(in_order(names))


def in_order(names: Iterable[str]) -> list[str]:
    """Names in the order of the table of factors, unknown ones last, alphabetically; jsonb does not keep the order."""
    return sorted(names, key=lambda name: (_PLACES.get(name, len(_PLACES)), name))


def differing(points: Sequence[Mapping[str, object]]) -> set[str]:
    """Names that only some points have, or that have more than one level: all candidates."""
    levels = set[tuple[str, object]]().union(*(point.items() for point in points))
    counts = Counter(name for name, _ in levels)
    return {name for name, count in counts.items() if count > 1} | (counts.keys() - _shared(points))


def _shared(points: Sequence[Mapping[str, object]]) -> set[str]:
    """Names that all points have."""
    names = {tuple(point) for point in points}  # few: most points have the same names
    return set.intersection(*map(set, names)) if names else set()


def follow_from(cause: str, points: Sequence[Mapping[str, object]]) -> set[str]:
    """Names of differing factors that have a single level at each level of `cause`."""
    by_cause: dict[str, list[Mapping[str, object]]] = {}
    for point in points:
        by_cause.setdefault(repr(point.get(cause, _ABSENT)), []).append(point)
    return differing(points) - {cause}.union(*map(differing, by_cause.values()))


def _levels(name: str, points: Sequence[Mapping[str, object]]) -> set[object]:
    """The factor's levels that no other factor determines, and its absence if that has a meaning."""
    causes = DERIVED_FROM.get(name, frozenset())
    levels = {point[name] for point in map(effective, points) if name in point and causes.isdisjoint(point)}
    others = _ALTERNATIVES_OF.get(name, frozenset())
    factor = FACTORS.get(name)
    speaks = factor is not None and factor.kind in _SPEAKING
    without = (point for point in points if name not in point)
    absent = any((speaks and applies(name, point)) or not others.isdisjoint(point) for point in without)
    return levels | {_ABSENT} if absent else levels


def effective(point: Mapping[str, T]) -> Mapping[str, T]:
    """The point without what replaces a depth, if it replaces none: the I/O engine has a queue, or the depth is 1."""
    if _SYNC_DEPTH not in point or not (point.get("iodepth") == 1 or point.get("ioengine") in _WITH_QUEUE):
        return point
    return {name: level for name, level in point.items() if name != _SYNC_DEPTH}


def applies(name: str, point: Mapping[str, object]) -> bool:
    """Whether the factor can have an effect at the point: its engine has it, and no other level rules it out."""
    if name == STREAMS_ON:
        return BESIDE in str(point.get(STREAMS, ""))
    stream, plain = stream_and_factor(name)
    if stream:
        return stream in names_of(point) and applies(plain, own_point(point, stream))
    return name not in of_other_engines(name_of(point)) and name not in engine_of(point).silent(point)


def acts(name: str, point: Mapping[str, object]) -> bool:
    """Whether the level that a point states, or its absence, can have an effect."""
    return name in effective(point) if name in point else applies(name, point)


# Trial numbers start at 1 on pages and in the API. The database stores an index from 0.

_FIRST = 1


def number_of(index: int) -> int:
    return index + _FIRST


def index_of(number: int) -> int:
    return number - _FIRST


Point = dict[str, Value]
Grid = Mapping[str, tuple[Value, ...]]

_SETTINGS = frozenset(name for name, factor in FACTORS.items() if factor.kind is FactorKind.SETTING)
DIRECTORIES_ONLY = frozenset(name for name, factor in FACTORS.items() if factor.directories_only)
_HOST_SEEDS = 10**6  # distance of the seeds of two hosts, above the seeds of repeats and of steps
_OF_A_SCHEDULER = {name: needed for name in FACTORS if (needed := scheduler_needed(name))}


def with_defaults(grid: Grid, *, drop_caches: bool, sequence: Sequence[str] = ()) -> dict[str, tuple[Value, ...]]:
    """The grid, completed with the defaults of missing factors.

    Slowest first: the factors of `sequence` in their order, then the others by the cost of changing them.
    """
    replaced = {default for default, instead in ALTERNATIVES if instead in grid}
    optional = {instead for _, instead in ALTERNATIVES}
    named = {name: levels[0] for name, levels in grid.items() if name == ENGINE}
    engine = engine_of(named)
    defaults: dict[str, tuple[Value, ...]] = {
        factor.name: (drop_caches if factor.name == "drop_caches" else factor.default,)
        for factor in engine.FACTORS
        if factor.kind is FactorKind.WORKLOAD and factor.name not in {*replaced, *optional, engine.REQUIRED}
    }
    return slowest_first({ENGINE: (name_of(named),)} | defaults | dict(grid), sequence)


def slowest_first(grid: Grid, sequence: Sequence[str] = ()) -> dict[str, tuple[Value, ...]]:
    """The factors of `sequence` in their order, then the others by the cost of changing them."""
    listed = [name for name in sequence if name in grid]
    return {name: grid[name] for name in dict.fromkeys([*listed, *by_cost(grid)])}


def applicable(point: Point) -> Point:
    """The point without factors that have no effect."""
    silent = without_effect(point)
    return {name: value for name, value in point.items() if name not in silent}


def without_effect(point: Point) -> frozenset[str]:
    """Unused factors of its engine, tunables of other schedulers, and factors of streams that do not run.

    They depend on the levels of `decides_effect`.
    """
    scheduler = point.get("scheduler")
    others = {name for name, needed in _OF_A_SCHEDULER.items() if scheduler and scheduler != needed}
    if streams.names_of(point):
        return frozenset(others).union(point.keys() - streams.applicable(point).keys())
    return frozenset(others).union(engine_of(point).silent(point))


def decides_effect(point: Point) -> tuple[str, ...]:
    """The factors whose levels decide which other factors of the point have no effect."""
    if STREAMS in point:
        deciding = {"scheduler", *(engine.SILENT_BY for engine in ENGINES.values())}
        return STREAMS, *(name for name in point if stream_and_factor(name)[1] in deciding)
    return engine_of(point).SILENT_BY, "scheduler"


def on_kind(point: Mapping[str, Value], kind: TargetKind) -> Point:
    """The point as pages show it for a kind of target: factors that affect only directories are left out for others.

    Stored points keep them, so that results of one point on several kinds of target stay comparable.
    """
    if kind is TargetKind.DIRECTORY:
        return dict(point)
    return {name: value for name, value in point.items() if name not in DIRECTORIES_ONLY}


def steps_of(point: Mapping[str, Value]) -> StepsBefore:
    """The purge and the steps before trials at this point."""
    steps = steps_before(str(point.get(BEFORE) or NONE))
    wanted = str(point.get("purge") or NONE)
    return steps if wanted == NONE else replace(steps, each=msgspec.structs.replace(steps.each, purge=wanted))


def targets_at_once(point: Mapping[str, object]) -> int:
    """The number of targets of each host that a trial at this point uses at once. A result of one stream has one
    target."""
    if STREAM in point:
        return 1
    if names := streams.names_of(point):
        return len(names) if point.get(STREAMS_ON) == streams.EACH else 1
    wanted = point.get(AT_ONCE, 1)
    return wanted if isinstance(wanted, int) else 1


def hosts_at_once(point: Mapping[str, object]) -> int:
    """The number of hosts that a trial at this point uses at once."""
    wanted = point.get(HOSTS_AT_ONCE, 1)
    return wanted if isinstance(wanted, int) else 1


def target_count(point: Mapping[str, object]) -> int:
    """The number of targets of a trial at this point, over all its hosts."""
    return targets_at_once(point) * hosts_at_once(point)


def stream_count(point: Mapping[str, object]) -> int:
    """The number of streams of a trial at this point, over all its hosts."""
    return len(streams.names_of(point)) or target_count(point)


def point_key(point: Mapping[str, Value]) -> str:
    """SHA-256 of the point's canonical JSON (keys sorted, no blanks), in hex."""
    return hashlib.sha256(msgspec.json.encode(dict(point), order="sorted")).hexdigest()


def workloads_of(point: Point, *, seed: int) -> tuple[AnyWorkload, ...]:
    """The contract's workload of each named stream of a point, or the one workload of all its streams.

    Raises msgspec.ValidationError if the contract does not allow it. `seed` is the seed of random offsets and data.
    """
    return streams.workloads_of(point, seed=seed) or (engine_of(point).workload(point, seed=seed),)


def on_stream(workload: AnyWorkload, point: Mapping[str, object], number: int) -> AnyWorkload:
    """The workload of one of several streams that have the same. Each host has its own random offsets and data: hosts
    that read the same blocks of shared storage would measure its cache. The first one has those of the host alone."""
    if not number or hosts_at_once(point) == 1:
        return workload
    return msgspec.structs.replace(workload, seed=workload.seed + number * _HOST_SEEDS)


def layouts_of(point: Mapping[str, Value]) -> tuple[Layout | None, ...]:
    """The layout under each named stream of a point, or the one of all its streams, as `workloads_of`."""
    own = [point.get(f"{name}.{LAYOUT}", point.get(LAYOUT)) for name in names_of(point)]
    return tuple(LayoutLine().layout(line) for line in own or [point.get(LAYOUT)])


def on_virtual_drives(points: Iterable[Mapping[str, Value]]) -> bool:
    """Whether a RAID controller's tool builds any of their layouts. No such tool has been tested on real hardware."""
    lines = {level for point in points for name, level in point.items() if name_layout([name])}
    layouts = (LayoutLine().layout(line) for line in lines)
    return any(layout is not None and layout.maker is Maker.CONTROLLER for layout in layouts)


def settings_of(point: Point) -> dict[str, str]:
    """Kernel name -> wanted text, for the settings in a point."""
    return {name: str(value) for name, value in point.items() if name in _SETTINGS}
