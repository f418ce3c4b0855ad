"""Replay searches on complete grids that were measured, and compare the answers with the grids.

    python -m dev.truth.measured_grids [--seeds N]
    python -m dev.truth.measured_grids --grid FILE --goal "highest iops where latency_p99 <= 1ms"

Without `--grid`, the grids are those of `dev/truth/grids`, recorded by `dev.truth.grid_recording`. FILE is what
`sweetspot results --json run=17` prints of a run that measured each combination of one target at least twice. Each
trial of a replayed search gets the values of one repeat of its combination, drawn at random. The truth of a combination
is the median over its repeats, because a single disturbed repeat moves their mean. Status 1 if a rate misses its limit
by more than chance explains. With noise above 5 %, only the bound has a limit.
"""

import argparse
import json
import math
import os
import sys
from collections import defaultdict
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import cached_property, partial
from multiprocessing import get_context
from pathlib import Path
from statistics import fmean, median
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
from scipy.special import bdtr

from dev.console import ToolError, run_command, say
from dev.truth.search import BOUND_TRUE, NEAR_BEST, OVER_LIMIT
from webapp.plans.goal import SHARE, USUAL_BUDGET, Goal, GoalRefused, read_goal
from webapp.plans.search_space import SearchSpace
from webapp.results.metrics import METRICS
from webapp.tuning.search import Measurement, Search, conclude, next_batch
from webapp.tuning.surface import Factor, Numbers

FOLDER = Path(__file__).parent / "grids"
QUIET = 0.05  # noise up to which all limits hold
GOALS = (
    ("throttled", "highest bytes_per_s where latency_mean <= 5ms"),
    ("throttled", "highest iops where latency_mean <= 2ms"),
    ("patterns", "highest bytes_per_s where latency_mean <= 5ms"),
    ("patterns", "lowest latency_mean where bytes_per_s >= 70MB/s"),
    ("options", "highest iops where latency_p99 <= 1ms"),
    ("disk", "highest bytes_per_s where latency_mean <= 2ms"),
)


@dataclass(frozen=True)
class Grid:
    """`values` and `limited`: ln of each repeat, by combination; `limited` is empty without a limit."""

    name: str
    goal: Goal
    space: SearchSpace
    values: dict[int, Numbers]
    limited: dict[int, Numbers]

    @cached_property
    def factors(self) -> tuple[Factor, ...]:
        return tuple(
            Factor(name, len(levels), self.space.places_of(name)) for name, levels in self.space.levels.items()
        )

    @property
    def budget(self) -> int:
        return max(math.ceil(SHARE * len(self.values)), USUAL_BUDGET)

    @property
    def limit(self) -> float | None:
        """Of `limited`, which is at most this."""
        if not self.goal.limited:
            return None
        return self.goal.limit if self.goal.at_most else 1 / self.goal.limit

    @property
    def noise(self) -> float:
        """Relative standard deviation of one trial, pooled over the combinations."""
        return math.sqrt(fmean(float(values.var(ddof=1)) for values in self.values.values()))


def read_grid(path: Path, goal: Goal) -> Grid:
    """Raises ToolError."""
    rows = json.loads(path.read_text())
    value, limited = (METRICS[name].column if name else "" for name in (goal.metric, goal.limited))
    trials: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for row in rows:
        trials[json.dumps(row["point"], sort_keys=True)].append(row)
    points = [each[0]["point"] for each in trials.values()]
    space = SearchSpace(cast(Any, tuple(SimpleNamespace(point=point) for point in points)))  # it reads only the points
    complete = {
        space.number_of(each[0]["point"]): each
        for each in trials.values()
        if all(row[column] for row in each for column in filter(None, (value, limited)))
    }
    if any(len({row["repeat"] for row in each}) != len(each) or len(each) < 2 for each in complete.values()):
        raise ToolError(f"{path}: each combination needs two repeats or more, with one result each.")
    sign = 1 if goal.at_most else -1
    return Grid(
        path.stem,
        goal,
        space,
        {number: _logs(each, value) for number, each in complete.items()},
        {number: sign * _logs(each, limited) for number, each in complete.items()} if limited else {},
    )


def _logs(rows: Sequence[dict[str, Any]], column: str) -> Numbers:
    logs: Numbers = np.log([float(row[column]) for row in rows])
    return logs


@dataclass(frozen=True)
class Outcome:
    """Of one replayed search. `share`: value of its answer, divided by the best one's within the limit. `bound`: as
    the page of a run states it. `excess`: of the limited metric above its limit, as a fraction. `is_sure`: whether the
    answer surely keeps the limit."""

    share: float
    bound: float
    excess: float
    is_sure: bool

    @property
    def bound_error(self) -> float:
        """By how much the best one beats the answer beyond the bound; 0 if the bound is true."""
        return max(0.0, 1 / self.share - 1 - self.bound)


def replayed(grid: Grid, seed: int) -> Outcome:
    chance = np.random.default_rng((seed, len(grid.values)))
    search = Search(grid.factors, grid.budget, grid.goal.highest, grid.limit, tuple(sorted(grid.values)), seed)
    measurements: list[Measurement] = []
    while (batch := next_batch(search, measurements)).points:
        number = 1 + max((each.batch for each in measurements), default=-1)
        for point in batch.points:
            repeat = chance.integers(len(grid.values[point]))
            limited = math.exp(grid.limited[point][repeat]) if grid.limited else None
            value = math.exp(grid.values[point][repeat])
            measurements.append(Measurement(point, number, value, limited, batch.is_final))
    conclusion = conclude(search, measurements)
    sign = 1 if grid.goal.highest else -1
    truth = {point: sign * float(np.median(values)) for point, values in grid.values.items()}
    excess = {point: float(np.median(values)) - math.log(grid.limit or 1) for point, values in grid.limited.items()}
    best = max(value for point, value in truth.items() if excess.get(point, 0.0) <= 0)
    behind = best - truth[conclusion.point]
    return Outcome(
        share=math.exp(-behind),
        bound=math.ceil(1000 * conclusion.bound) / 1000,
        excess=math.expm1(excess.get(conclusion.point, 0.0)),
        is_sure=conclusion.within >= 0.95,
    )


HEADS = (
    "grid", "goal", "combinations", "trials", "noise", "within 5 % of the best", "bound true",
    "largest error of the bound", "median bound", "limit exceeded by > 5 %", "",
)  # fmt: skip


def report(grid: Grid, goal: str, outcomes: Sequence[Outcome]) -> tuple[str, bool]:
    """A row of the table, and whether the rates keep their limits."""
    near = fmean(each.share >= 0.95 for each in outcomes)
    true = fmean(each.bound_error == 0 for each in outcomes)
    over = fmean(each.excess > 0.05 and each.is_sure for each in outcomes)
    checked = [(true, BOUND_TRUE)]
    if grid.noise <= QUIET:
        checked += [(near, NEAR_BEST), (1 - over, 1 - OVER_LIMIT)]
    seeds = len(outcomes)
    is_ok = all(bdtr(round(rate * seeds), seeds, wanted) > 0.025 for rate, wanted in checked)
    cells = [
        grid.name, f"`{goal}`", str(len(grid.values)), str(grid.budget), f"{grid.noise:.1%}", f"{near:.1%}",
        f"{true:.1%}", f"{max(each.bound_error for each in outcomes):.1%}",
        f"{median(each.bound for each in outcomes):.1%}", f"{over:.1%}", "" if is_ok else "MISSED",
    ]  # fmt: skip
    return f"| {' | '.join(cells)} |", is_ok


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m dev.truth.measured_grids", description="Search on measured grids.")
    parser.add_argument("--seeds", type=int, default=100, help="searches on each grid")
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--grid", type=Path, help="results of a run, as JSON")
    parser.add_argument("--goal", help="as in a plan")
    parser.add_argument("--processes", type=int, default=os.cpu_count())
    options = parser.parse_args(arguments)
    if bool(options.grid) != bool(options.goal):
        parser.error("--grid and --goal need each other")
    chosen = (
        [(options.grid, options.goal)] if options.grid else [(FOLDER / f"{name}.json", goal) for name, goal in GOALS]
    )
    say(f"| {' | '.join(HEADS)} |\n|{' --- |' * len(HEADS)}")
    seeds, is_ok = range(options.first_seed, options.first_seed + options.seeds), True
    with ProcessPoolExecutor(options.processes, mp_context=get_context("spawn")) as pool:
        for path, goal in chosen:
            try:
                grid = read_grid(path, read_goal(goal))
            except GoalRefused as refused:
                raise ToolError(str(refused)) from refused
            row, keeps = report(grid, goal, list(pool.map(partial(replayed, grid), seeds)))
            say(row)
            is_ok = is_ok and keeps
    return 0 if is_ok else 1


if __name__ == "__main__":
    sys.exit(run_command(main))
