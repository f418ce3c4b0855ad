"""Points: one combination of levels, as a flat JSON object from factor name to stored value.

A point carries every factor that applies, those left at their default too, so that results of plans that
were written differently can be found and compared. A layout, settings, what is of fio's processes
and how many targets are used at once are in it only where the plan sets them.
Left out are: `read_percent` of patterns that do not mix, `block_size` where `block_split` is given,
`runtime` where `amount` is given.
"""

import hashlib
import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec

from webapp.plans.engines import DEFAULT_ENGINE, ENGINE, ENGINES, engine_of
from webapp.plans.factors import ALTERNATIVES, AT_ONCE, FACTORS, FactorKind, by_cost
from webapp.plans.setting_rows import scheduler_needed
from webapp.plans.values import LayoutLine, Value
from worker.contract.layouts import Layout, Maker
from worker.contract.workload import AnyWorkload

Point = dict[str, Value]
Grid = Mapping[str, tuple[Value, ...]]

_SETTINGS = frozenset(name for name, factor in FACTORS.items() if factor.kind is FactorKind.SETTING)
_OF_A_SCHEDULER = {name: needed for name in FACTORS if (needed := scheduler_needed(name))}


def with_defaults(grid: Grid, *, drop_caches: bool, sequence: Sequence[str] = ()) -> dict[str, tuple[Value, ...]]:
    """The grid with every factor that a part leaves out, at its default.

    Slowest first: those of `sequence` in their order, then the others by what changing them costs.
    """
    replaced = {default for default, instead in ALTERNATIVES if instead in grid}
    optional = {instead for _, instead in ALTERNATIVES}
    name_of_engine = grid.get(ENGINE, (DEFAULT_ENGINE,))[0]
    engine = ENGINES[str(name_of_engine)]
    defaults: dict[str, tuple[Value, ...]] = {
        factor.name: (drop_caches if factor.name == "drop_caches" else factor.default,)
        for factor in engine.FACTORS
        if factor.kind is FactorKind.WORKLOAD and factor.name not in {*replaced, *optional, engine.REQUIRED[0]}
    }
    full = {ENGINE: (name_of_engine,)} | defaults | dict(grid)
    listed = [name for name in sequence if name in full]
    return {name: full[name] for name in dict.fromkeys([*listed, *by_cost(full)])}


def combinations(grid: Grid) -> Iterator[Point]:
    """All points of a full factorial grid, each once; the first factor changes slowest."""
    seen = set()
    for levels in itertools.product(*grid.values()):
        point = applicable(dict(zip(grid, levels, strict=True)))
        if (key := point_key(point)) not in seen:
            seen.add(key)
            yield point


def applicable(point: Point) -> Point:
    """The point without what says nothing there.

    That is what its engine says nothing of there, and tunables of schedulers other than the point's.
    """
    scheduler = point.get("scheduler")
    silent = {name for name, needed in _OF_A_SCHEDULER.items() if scheduler and scheduler != needed}
    silent |= {*engine_of(point).silent(point)}
    return {name: value for name, value in point.items() if name not in silent}


def purge_of(point: Mapping[str, Value]) -> str:
    """The method by which the drive is purged before the trial, "" for none."""
    wanted = str(point.get("purge") or "none")
    return "" if wanted == "none" else wanted


def at_once(point: Mapping[str, object]) -> int:
    """How many targets a trial at this point uses at the same time."""
    wanted = point.get(AT_ONCE, 1)
    return wanted if isinstance(wanted, int) else 1


def point_key(point: Mapping[str, Value]) -> str:
    """SHA-256 of the point's canonical JSON (keys sorted, no blanks), in hex."""
    return hashlib.sha256(msgspec.json.encode(dict(point), order="sorted")).hexdigest()


def workload_of(point: Point, *, seed: int) -> AnyWorkload:
    """The contract's workload for a point; raises msgspec.ValidationError where the contract cannot say it.

    `seed` is of random offsets and data.
    """
    return engine_of(point).workload(point, seed=seed)


def layout_of(point: Mapping[str, Value]) -> Layout | None:
    """How the drives of a pool are put together for it; None where it names no layout."""
    return LayoutLine().layout(point.get("layout"))


def on_virtual_drives(points: Iterable[Mapping[str, Value]]) -> bool:
    """Whether the layout of any of them is made by a RAID controller's tool, none of which was tried for real."""
    lines = {point.get("layout") for point in points}
    layouts = (LayoutLine().layout(line) for line in lines)
    return any(layout is not None and layout.maker is Maker.CONTROLLER for layout in layouts)


def settings_of(point: Point) -> dict[str, str]:
    """Kernel name -> wanted text, of the settings in a point."""
    return {name: str(value) for name, value in point.items() if name in _SETTINGS}
