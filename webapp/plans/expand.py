"""Expands a plan's document and its targets into trials, in the order in which they will run. Pure.

A **block** is one repeat: all points of all parts on all targets, once. Blocks run one after another, so that a drift
of the host affects all points equally.

Randomised order within a block:

    part            in the order of the plan
      target        shuffled; a group of targets that are used at once counts as one target
        costly factors (layout, settings, then size of files), slowest first: the levels of each are shuffled,
                    and trials with the same level stay together, so a scheduler is set once per block and level
          points    shuffled

Every block is shuffled anew, from one recorded seed, so that no level coincides with a drift or with a disturbance that
comes back (`plans.trial_order`).

Listed order within a block: parts and targets as given, then the factors of the plan's `sequence`, then the others by
cost, the slowest outermost, each with its levels in the given order. Every block has the same order, so drift cannot
be told from an effect.

If a part has `at_once`, its targets on each host are divided into groups of that size, by kind, in the chosen order.
Each group is a trial with one stream per target. Targets that do not fill a group are left out at that level. With
`hosts_at_once`, a group has one target of each of several hosts (plans.places).

Shares of the load run after all trials at the maximum, from which their rates follow, likewise in blocks
(`plans.load`).

If any part has steps that are done `once`, each part runs with all its repeats before the next one, so that it measures
what these steps have prepared.

Random offsets are seeded with the number of the repeat: different points of one repeat use the same offsets,
different repeats use different ones, and so do the hosts of one trial. The job text does not depend on the seed of the
order.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations, permutations
from typing import NamedTuple

import msgspec

from webapp.plans.document import Order, Part, PlanDocument
from webapp.plans.factors import AT_ONCE, FACTORS, HOSTS_AT_ONCE, LAYOUT, by_cost
from webapp.plans.fitness import (
    Fitness,
    OnTarget,
    SharedSpace,
    TargetFacts,
    Use,
    Workloads,
    array_problems,
    shared_spaces,
    verification_problems,
)
from webapp.plans.goal import LEAST_BUDGET, budget_of
from webapp.plans.grids import MAX_TRIALS, PartGrid, grids_of, too_many_trials
from webapp.plans.layouts import made_kind
from webapp.plans.load import is_share
from webapp.plans.part_levels import PLAN_PROBLEM, TOO_LARGE
from webapp.plans.points import (
    Point,
    layouts_of,
    number_of,
    on_stream,
    point_key,
    settings_of,
    steps_of,
    target_count,
    workloads_of,
)
from webapp.plans.sizes import SizeUnknown, is_relative, sized
from webapp.plans.steps import NO_PREPARATION, Preparation, StepsBefore
from webapp.plans.streams import names_of
from webapp.plans.trial_order import Cell, shuffled_blocks
from worker.contract.layouts import Layout
from worker.contract.workload import AnyWorkload, TargetKind

# Assigns a part of a plan to targets: each chosen target, or groups of targets at once. Pure.
#
# A group has several targets of one host (`at_once`), or one target of each of several hosts (`hosts_at_once`): the
# first targets of the hosts together, then the second ones, and so on. If streams have layouts of their
# own, a group has a target for each stream of the part, which that stream also uses alone.

_KIND_WORDS = {
    TargetKind.BLOCK: ("block devices", "a block device"),
    TargetKind.DIRECTORY: ("directories", "a directory"),
    TargetKind.FILE: ("files", "a file"),
    TargetKind.POOL: ("pools of drives", "a pool of drives"),
    TargetKind.SLOT: ("slots of controllers", "a slot of a controller, which only a pool can use"),
}

Group = tuple[TargetFacts, ...]  # targets used at once, in the order in which they were chosen


@dataclass(frozen=True)
class Places:
    """The groups of one part. A group has targets of one kind, so the workload is the same in each of its streams."""

    grid: PartGrid
    targets: Sequence[TargetFacts]

    @cached_property
    def groups(self) -> tuple[Group, ...]:
        """Groups for every level of `at_once` or `hosts_at_once`, single targets first."""
        return tuple(group for size in self._sizes for group in self._groups(size))

    @cached_property
    def streams(self) -> tuple[str, ...]:
        """The names of streams with layouts of their own, each on its own place in the groups, also alone; else ()."""
        streams = self.grid.part.streams
        of_stream = any(f"{each.name}.{LAYOUT}" in self.grid.levels for each in streams)
        return tuple(each.name for each in streams) if of_stream else ()

    def used(self, group: Group, point: Point) -> Group:
        """The targets of the group that a trial at this point uses; () if such trials use other groups."""
        if not self.streams:
            return group if target_count(point) == len(group) else ()
        names = names_of(point)
        return tuple(target for name, target in zip(self.streams, group, strict=True) if name in names)

    @property
    def cells(self) -> int:
        """The number of points on all groups."""
        if self.streams:
            return self.grid.count * len(self.groups)
        groups = Counter(map(len, self.groups))
        return sum(count * groups[at_once.all_targets] for at_once, count in self.grid.by_targets.items())

    @property
    def left_out(self) -> list[str]:
        """Targets that the part does not run on, as sentences."""
        unfit = [self._unfit(target) for target in self.targets if not self._runs(target)]
        return unfit + [text for size in self._sizes for text in self._over(size)]

    @property
    def problems(self) -> list[str]:
        """Levels above the number of targets or hosts, and groups that cannot be opened together."""
        return [*self._too_many, *dict.fromkeys(text for group in self.groups for text in self._clashes(group))]

    @property
    def _too_many(self) -> list[str]:
        if self.streams:
            return self._too_few_for_streams
        return [
            f"Part {self.grid.part.name}: {size} {self._each} at once are more than {self._chosen(targets)}. "
            f"Choose more {self._each}, or remove the level."
            for size in self._sizes
            for targets in self._first_candidates
            if len(targets) < size
        ]

    @property
    def _too_few_for_streams(self) -> list[str]:
        count = len(self.streams)
        return [
            f"Part {self.grid.part.name}: {count} targets are needed, because each of the {count} streams with "
            f"layouts of their own uses a target of its own, also alone. Only {len(targets)} "
            f"{'is' if len(targets) == 1 else 'are'} chosen on {_host(targets)}. Choose more targets."
            for targets in self._first_candidates
            if len(targets) < count
        ]

    @cached_property
    def _sizes(self) -> list[int]:
        if self.streams:
            return [len(self.streams)]
        if self.grid.part.streams:
            return sorted({at_once.targets for at_once in self.grid.by_targets}) or [1]
        levels = self.grid.levels.get(HOSTS_AT_ONCE if self._over_hosts else AT_ONCE, (1,))
        return sorted(level for level in levels if isinstance(level, int)) or [1]

    @property
    def _over_hosts(self) -> bool:
        return HOSTS_AT_ONCE in self.grid.levels

    @property
    def _each(self) -> str:
        return "hosts" if self._over_hosts else "targets"

    @cached_property
    def _of_hosts(self) -> list[list[TargetFacts]]:
        """Targets of one host and kind, in the chosen order."""
        targets_by_place: dict[tuple[str, TargetKind], list[TargetFacts]] = {}
        for target in filter(self._runs, self.targets):
            targets_by_place.setdefault((target.host_id, target.kind), []).append(target)
        return list(targets_by_place.values())

    @cached_property
    def _candidates(self) -> list[list[TargetFacts]]:
        """Targets that groups are made of, in the chosen order: those of one host and kind, or of several hosts, the
        first of each host, the second of each host, and so on."""
        if not self._over_hosts:
            return self._of_hosts
        targets_by_place: dict[tuple[TargetKind, int], list[TargetFacts]] = {}
        for of_host in self._of_hosts:
            for place, target in enumerate(of_host):
                targets_by_place.setdefault((target.kind, place), []).append(target)
        return list(targets_by_place.values())

    @property
    def _first_candidates(self) -> list[list[TargetFacts]]:
        """Those with the most hosts of each kind: further targets of a host need not have one on every other host."""
        if not self._over_hosts:
            return self._candidates
        return list({targets[0].kind: targets for targets in reversed(self._candidates)}.values())[::-1]

    def _chosen(self, targets: Sequence[TargetFacts]) -> str:
        count, is_one = len(targets), len(targets) == 1
        if self._over_hosts:
            return f"the {count} {'host' if is_one else 'hosts'} of which {_named(targets)} are chosen"
        return f"the {count} {_named(targets)} that {'is' if is_one else 'are'} chosen on {_host(targets)}"

    def _runs(self, target: TargetFacts) -> bool:
        return target.kind in self.grid.kinds

    def _groups(self, size: int) -> Iterator[Group]:
        if size == 1:
            yield from ((target,) for target in self.targets if self._runs(target))
        else:
            for targets in self._candidates:
                whole = len(targets) - len(targets) % size
                yield from (tuple(targets[start : start + size]) for start in range(0, whole, size))

    def _clashes(self, group: Group) -> Iterator[str]:
        """Pools with a common drive, or a disk and its partition: while one is open, the other cannot be opened
        exclusively."""
        for pool, other in combinations(group, 2):
            paths = {drive.path for drive in other.drives}  # a policy may give one drive two names
            if shared := [drive.name for drive in pool.drives if drive.path in paths]:
                yield (
                    f"Part {self.grid.part.name}: {pool.shown} and {other.shown} both contain {', '.join(shared)}, so "
                    "the two cannot be used at once. Remove one, or choose them in an order that puts them into "
                    "different groups."
                )
        for disk, other in permutations(group, 2):
            between = "p" if disk.opens[-1:].isdigit() else ""
            if disk.opens and re.fullmatch(rf"{re.escape(disk.opens)}{between}\d+", other.opens):
                yield (
                    f"Part {self.grid.part.name}: {other.shown} is a partition of {disk.shown}, so the two cannot be "
                    "used at once. Remove one, or choose them in an order that puts them into different groups."
                )

    def _over(self, size: int) -> Iterator[str]:
        for targets in self._candidates:
            over = len(targets) % size
            if over and (len(targets) > size or self._over_hosts):
                names = ", ".join(target.shown for target in targets[-over:])
                of = "several hosts" if self._over_hosts else _host(targets)
                are = "is" if len(targets) == 1 else "are"
                yield (
                    f"Part {self.grid.part.name} with {size} {self._each} at once does not use {names}: {len(targets)} "
                    f"{_named(targets)} of {of} {are} chosen, and {len(targets)} is not a multiple of {size}."
                )

    def _unfit(self, target: TargetFacts) -> str:
        grid = self.grid
        names = [words[0] for kind, words in _KIND_WORDS.items() if kind in grid.kinds]
        only = " and ".join(names) or "nothing"
        hint = (
            ""
            if TargetKind.POOL in grid.kinds or target.kind is not TargetKind.POOL
            else "; a part with a `layout` does"
        )
        return f"Part {grid.part.name} runs on {only} only; {target.shown} is {_KIND_WORDS[target.kind][1]}{hint}."


def _named(targets: Sequence[TargetFacts]) -> str:
    many, single = _KIND_WORDS[targets[0].kind]
    return many if len(targets) > 1 else single.removeprefix("a ")


def _host(targets: Sequence[TargetFacts]) -> str:
    return targets[0].shown.partition("/")[0]


__all__ = ["Expansion", "PlannedTrial", "TargetFacts", "expand"]

_COSTLY = tuple(name for name in by_cost(FACTORS) if FACTORS[name].cost > 0)
MAX_SETTINGS = 200  # settings in one order, over all its streams
MAX_PROBLEMS = 200  # of a part; the others are not looked for


class PlannedStream(msgspec.Struct, frozen=True):
    """One workload on one target; `name` is "" unless the workloads of the trial differ."""

    name: str
    target_id: str
    workload: AnyWorkload
    layout: Layout | None = None


class PlannedTrial(msgspec.Struct, frozen=True, dict=True):  # `dict` is for cached properties
    index: int  # place in the order, from 0; shown is `number`
    block: int  # from 1
    repeat: int  # from 1; the same as `block`
    part: str
    target_id: str  # the first one
    point: Point
    point_key: str
    workloads: Workloads  # of each named stream, or one that all streams have
    settings: dict[str, str]
    drop_caches: bool
    kind: TargetKind  # kind that the workload uses: a layout turns a pool's drives into a device or a directory
    layouts: tuple[Layout | None, ...] = (None,)  # as `workloads`
    before: Preparation = NO_PREPARATION  # of this trial, if all trials before it were done
    further_ids: tuple[str, ...] = ()  # of targets of the same kind that are used at the same time

    @property
    def number(self) -> int:
        return number_of(self.index)

    @property
    def target_ids(self) -> tuple[str, ...]:
        """The ids of its targets, in the order of its streams, each once."""
        return (self.target_id, *self.further_ids)

    @property
    def workload(self) -> AnyWorkload:
        """The workload of its first stream, which is that of all streams unless they have names."""
        return self.workloads[0]

    @cached_property
    def streams(self) -> tuple[PlannedStream, ...]:
        """Its streams. Named streams share the only target, or have one target each."""
        ids, names = self.target_ids, names_of(self.point)
        if names:
            targets = ids if len(ids) > 1 else ids * len(names)
            return tuple(map(PlannedStream, names, targets, self.workloads, self.layouts))
        works = [on_stream(self.workload, self.point, number) for number in range(len(ids))]
        return tuple([PlannedStream("", *each, self.layouts[0]) for each in zip(ids, works, strict=True)])


@dataclass(frozen=True)
class Expansion:
    """A plan with `problems` must not be started. `skipped` names the parts and points that are left out, and where."""

    trials: tuple[PlannedTrial, ...]
    skipped: tuple[str, ...]
    problems: tuple[str, ...]
    targets: tuple[TargetFacts, ...] = ()
    stop_after: int = 0  # of the plan
    retries: int = 0  # of the plan
    shared_spaces: tuple[SharedSpace, ...] = ()
    budget: int | None = None  # trials on each target, of a plan with a goal: it runs a part of `trials`
    budget_s: int = 0  # of a plan with a goal: seconds for all of its trials; 0: no limit
    too_large: bool = False  # over a limit of levels, combinations, points or trials

    @property
    def problem_code(self) -> str:
        """The code of its problems, "" if it has none."""
        return (TOO_LARGE if self.too_large else PLAN_PROBLEM) if self.problems else ""

    @cached_property
    def distinct(self) -> tuple[tuple[PlannedTrial, int], ...]:
        """One trial of each point on its targets with the same steps before it, and the number of such trials."""
        keys = [(trial.point_key, trial.target_ids, trial.before) for trial in self.trials]
        counts = Counter(keys)
        trial_by_key = dict(zip(keys, self.trials, strict=True))
        return tuple((trial, counts[key]) for key, trial in trial_by_key.items())


class _RunnablePoint(NamedTuple):
    """A point with derived values that are the same for all targets and repeats."""

    point: Point
    key: str
    workloads: Workloads  # with the seeds of the first repeat
    settings: dict[str, str]
    layouts: tuple[Layout | None, ...]  # as `workloads`
    steps: StepsBefore


class _Cell(NamedTuple):
    """One point on one target, or on several at once. It is one trial in every block."""

    part_number: int
    part: Part
    targets: Group
    target_ids: tuple[str, ...]
    runnable: _RunnablePoint


def expand(
    document: PlanDocument, targets: Sequence[TargetFacts], *, seed: int, grids: Sequence[PartGrid] | None = None
) -> Expansion:
    """All trials of a plan on `targets`. Errors in the plan do not raise; they are in `problems`."""
    grids = grids_of(document) if grids is None else grids
    places = [Places(grid, targets) for grid in grids]
    skipped = tuple(text for place in places for text in place.left_out)
    problems = [problem for grid in grids for problem in grid.problems] + _unfit_names(document, targets)
    problems += [problem for place in places for problem in place.problems]
    total = document.repeats * sum(place.cells for place in places)
    over = next((grid.over for grid in grids if grid.over), too_many_trials(total) if total > MAX_TRIALS else "")
    if problems or over:
        too_large = bool(over) or any(problem.code == TOO_LARGE for grid in grids for problem in grid.found)
        problems = [*dict.fromkeys(problems[:MAX_PROBLEMS]), *([over] if over else [])]
        return Expansion((), skipped, tuple(problems), tuple(targets), too_large=too_large)
    cells, left_out, unfit = _cells(grids, places)
    skipped += tuple(left_out)
    spaces = tuple(shared_spaces(Use(each.part_number, _on_each(each.targets, each.runnable)) for each in cells))
    unfit += [space.words for space in spaces if space.always]
    if document.goal and cells and min(Counter(cell.target_ids for cell in cells).values()) < 2:
        unfit.append("A search needs at least two combinations that can run on each target.")
    if not cells and not unfit:
        unfit = ["No part of this plan runs on the chosen targets. Choose other targets."]
    budget = _budget(document, cells)
    if budget is not None and budget < LEAST_BUDGET:
        unfit.append(f"The time of the budget is too short: a search needs {LEAST_BUDGET} trials on each target.")
    trials = _numbered(document, cells, seed)
    return Expansion(
        trials, skipped, tuple(dict.fromkeys(unfit)), tuple(targets), document.stop_after, document.retries,
        shared_spaces=spaces, budget=budget, budget_s=document.budget_s,
    )  # fmt: skip


def _budget(document: PlanDocument, cells: Sequence[_Cell]) -> int | None:
    """The same on all targets, from the one with the most combinations."""
    if not document.goal or not cells:
        return None
    trial_s = min(workload.least_time_s for cell in cells for workload in cell.runnable.workloads)
    sharing = Counter(host for _, host in {(target.id, target.host_id) for cell in cells for target in cell.targets})
    combinations = max(Counter(cell.target_ids for cell in cells).values())
    return budget_of(document, combinations, trial_s, max(sharing.values()))


def _unfit_names(document: PlanDocument, targets: Sequence[TargetFacts]) -> list[str]:
    parts = Counter(part.name for part in document.parts)
    chosen = Counter(target.id for target in targets)
    problems = [f"Two parts are called {name}. Rename one of them." for name, n in parts.items() if n > 1]
    if not targets:
        problems.append("No target is chosen.")
    if any(n > 1 for n in chosen.values()):
        problems.append("A target is chosen twice.")
    return problems


def _cells(grids: Sequence[PartGrid], places: Sequence[Places]) -> tuple[list[_Cell], list[str], list[str]]:
    """All points that can run, sentences about those that are left out, and the problems.

    Invalid combinations of levels are left out, unless they are all points of a part.
    """
    cells: list[_Cell] = []
    left_out: list[str] = []
    problems: list[str] = []
    for number, (grid, place) in enumerate(zip(grids, places, strict=True)):
        part = _PartCells(number, grid.part)
        part.fill(grid, place)
        cells += part.cells
        problems += [f"Part {grid.part.name}: {text}" for text in part.problems]
        if part.cells or part.problems:
            left_out += [_left_out(grid.part, text, count) for text, count in part.invalid.items()]
        else:
            problems += [f"Part {grid.part.name}: {text}" for text in part.invalid]
    if len(left_out) > MAX_PROBLEMS:
        left_out = [*left_out[:MAX_PROBLEMS], f"{len(left_out) - MAX_PROBLEMS:,} more such reasons are not listed."]
    return cells, left_out, problems


def _left_out(part: Part, text: str, count: int) -> str:
    return f"Part {part.name}, {count} {'point' if count == 1 else 'points'}: {text}"


@dataclass
class _PartCells:
    """The cells of a part, while they are found."""

    number: int
    part: Part
    cells: list[_Cell] = field(default_factory=list)
    invalid: Counter[str] = field(default_factory=Counter)  # reason -> points that are left out
    problems: dict[str, None] = field(default_factory=dict)  # in their order, each once
    _fitness: Fitness = field(default_factory=Fitness)
    _settings: dict[tuple[tuple[str, str], ...], dict[str, str]] = field(default_factory=dict)

    def fill(self, grid: PartGrid, place: Places) -> None:
        points = grid.points if place.groups else []
        relative = is_relative(points)
        runnable = [] if relative else list(self._runnable(points))
        for group in place.groups:
            for candidate in self._sized(points, group, place.streams) if relative else runnable:
                used = place.used(group, candidate.point)
                if used and self._fits(used, candidate):
                    target_ids = tuple(target.id for target in used)
                    self.cells.append(_Cell(self.number, self.part, used, target_ids, candidate))
                if len(self.problems) >= MAX_PROBLEMS:
                    return

    def _sized(self, points: Sequence[Point], group: Group, streams: Sequence[str]) -> list[_RunnablePoint]:
        try:
            return list(self._runnable(sized(points, group, streams)))
        except SizeUnknown as unknown:
            self.problems[str(unknown)] = None
            return []

    def _runnable(self, points: Sequence[Point]) -> Iterator[_RunnablePoint]:
        """The points that the contract allows."""
        for point in points:
            try:
                workloads = workloads_of(point, seed=1)
            except msgspec.ValidationError as error:
                self.invalid[f"{error}."] += 1
                continue
            settings = settings_of(point)
            shared = self._settings.setdefault(tuple(settings.items()), settings)
            yield _RunnablePoint(point, point_key(point), workloads, shared, layouts_of(point), steps_of(point))

    def _fits(self, group: Group, candidate: _RunnablePoint) -> bool:
        """Whether the point can run on the targets. If not, add the reasons to `invalid` or `problems`."""
        on_each = _on_each(group, candidate)
        if reasons := self._invalid(candidate, on_each[0][1], group[0].kind):
            self.invalid.update(reasons)
            return False
        unfit = [
            text
            for target, works, layout in on_each
            for text in self._fitness.problems(works, candidate.settings, target, layout, candidate.steps.first)
        ]
        if len(candidate.settings) * len(group) > MAX_SETTINGS:
            unfit.append(f"{len(candidate.settings)} settings of {len(group)} targets at once are too many.")
        self.problems |= dict.fromkeys(unfit)
        return not unfit

    def _invalid(self, candidate: _RunnablePoint, on_first: Workloads, kind: TargetKind) -> list[str]:
        """Reasons why this combination of levels cannot run on any target of the kind."""
        layout, *others = candidate.layouts
        made = made_kind(kind, layout)
        if any(made_kind(kind, other) is not made for other in others):
            return ["One stream has a layout with a file system, and another one has a layout without."]
        of_workloads = [text for work in candidate.workloads for text in self._fitness.combination_problems(work, made)]
        return of_workloads + verification_problems(on_first, made) + array_problems(candidate.workloads, layout)


def _on_each(group: Group, candidate: _RunnablePoint) -> list[OnTarget]:
    """What each target has: one of the streams, all streams, or the one workload of all targets."""
    works, layouts = candidate.workloads, candidate.layouts
    if len(works) == len(group):
        return [(target, (work,), layout) for target, work, layout in zip(group, works, layouts, strict=True)]
    return [(target, works, layouts[0]) for target in group]


def _numbered(document: PlanDocument, cells: Sequence[_Cell], seed: int) -> tuple[PlannedTrial, ...]:
    orders: Sequence[Sequence[int]] = [range(len(cells))] * document.repeats
    if document.order is Order.RANDOMISED:
        placed = [Cell(cell.part_number, cell.target_ids, cell.runnable.point, cell.runnable.key) for cell in cells]
        orders = shuffled_blocks(placed, document.repeats, seed, _COSTLY)
    blocks = [(block, cells[index]) for block, order in enumerate(orders, start=1) for index in order]
    blocks.sort(key=lambda planned: is_share(planned[1].runnable.point))
    if any(cell.runnable.steps.once for cell in cells):
        blocks.sort(key=lambda planned: planned[1].part_number)
    return tuple(in_order(_trial(cell, block, index) for index, (block, cell) in enumerate(blocks)))


def in_order(trials: Iterable[PlannedTrial]) -> Iterator[PlannedTrial]:
    """The trials with their index and steps, if they run in this order."""
    prepared = set()  # parts and targets
    for index, trial in enumerate(trials):
        steps, where = steps_of(trial.point), (trial.part, trial.target_ids)
        before = steps.each if where in prepared else steps.first
        same = trial.index == index and trial.before == before
        yield trial if same else msgspec.structs.replace(trial, index=index, before=before)
        prepared.add(where)


def _trial(cell: _Cell, block: int, index: int) -> PlannedTrial:
    """Its steps depend on the order: see `in_order`."""
    runnable = cell.runnable
    workloads = runnable.workloads if block == 1 else tuple(_seeded(each, block) for each in runnable.workloads)
    return PlannedTrial(
        index=index,
        block=block,
        repeat=block,
        part=cell.part.name,
        target_id=cell.target_ids[0],
        further_ids=cell.target_ids[1:],
        point=runnable.point,
        point_key=runnable.key,
        workloads=workloads,
        settings=runnable.settings,
        drop_caches=bool(runnable.point.get("drop_caches")),
        kind=made_kind(cell.targets[0].kind, runnable.layouts[0]),
        layouts=runnable.layouts,
    )


def repeated(trial: PlannedTrial, *, index: int, repeat: int) -> PlannedTrial:
    """A trial of the first block as a later one, with the offsets of that repeat."""
    workloads = tuple(_seeded(each, repeat) for each in trial.workloads)
    return msgspec.structs.replace(trial, index=index, block=repeat, repeat=repeat, workloads=workloads)


def _seeded(workload: AnyWorkload, block: int) -> AnyWorkload:
    """Offsets of another repeat."""
    return msgspec.structs.replace(workload, seed=workload.seed + block - 1)
