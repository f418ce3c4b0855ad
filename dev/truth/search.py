"""`make truth-search`: how good the answers of the search are, on generated response surfaces.

ln(rate) is the sum of: saturation over depth × jobs (beyond it, contention), an optimum of each ordered factor, an
effect of each level of the other factors, interactions of half of the pairs of factors, and two cliffs, each of which
lowers the rate where two factors have certain levels. Latency follows from Little's law, times a tail of its own, which
rises at the cliffs. Needs no database. Status 1 if a rate misses its limit by more than chance explains.
"""

import argparse
import math
import os
import sys
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import combinations, product
from multiprocessing import get_context
from statistics import fmean, median

import numpy as np
from scipy.special import bdtr

from dev.console import run_command, say
from webapp.tuning.search import ROUNDS, Effect, Measurement, Search, conclude, next_batch
from webapp.tuning.surface import Factor, Numbers

NEAR_BEST, BOUND_TRUE, OVER_LIMIT = 0.9, 0.95, 0.03  # limits of the rates
LIMIT, SHARED = 0.4, 10  # share of combinations within the limit of latency; trials that share noise

DEPTH, JOBS = Factor("iodepth", 5, (0, 2, 4, 5, 6)), Factor("numjobs", 4, (0, 1, 2, 3))  # places: log2
READ_AHEAD, REQUESTS = Factor("read_ahead", 5, (0, 1, 2, 3, 4)), Factor("nr_requests", 4, (0, 1, 2, 3))
SCHEDULER, LAYOUT = Factor("scheduler", 4), Factor("layout", 3, costly=True)
STRIP = Factor("strip", 5, (0, 1, 2, 3, 4), costly=True)
GRIDS = {
    200: (DEPTH, JOBS, READ_AHEAD, Factor("polling", 2)),
    960: (DEPTH, JOBS, REQUESTS, SCHEDULER, LAYOUT),
    4800: (DEPTH, JOBS, REQUESTS, SCHEDULER, LAYOUT, STRIP),
}  # combinations -> factors


@dataclass(frozen=True)
class Truth:
    """ln of both, one of each for every combination, in C order."""

    rate: Numbers
    latency: Numbers


def generated(factors: tuple[Factor, ...], chance: np.random.Generator) -> Truth:
    shape = [factor.levels for factor in factors]
    levels = np.indices(shape)
    at_once = np.exp2(np.array(DEPTH.places)[levels[0]] + np.array(JOBS.places)[levels[1]])
    saturation = 2 ** chance.uniform(3, 7)
    rate = -np.log1p(saturation / at_once)
    rate -= chance.uniform(0, 0.1) * np.maximum(0, np.log2(at_once / saturation) - 1)
    tail = np.zeros(shape)
    for factor, level in zip(factors[2:], levels[2:], strict=True):
        rate += _main(factor, chance)[level]
        tail += chance.normal(0, 0.15, factor.levels)[level]
    pairs = list(combinations(range(len(factors)), 2))
    for first, second in chance.permutation(pairs)[: len(pairs) // 2]:
        table = chance.normal(0, chance.uniform(0.03, 0.12), (shape[first], shape[second]))
        rate += table[levels[first], levels[second]]
    for first, second in chance.permutation(pairs)[:2]:
        below = levels[first] >= chance.integers(1, shape[first])
        cliff = below & (levels[second] == chance.integers(shape[second]))
        rate += math.log(chance.uniform(0.4, 0.9)) * cliff
        tail += math.log(chance.uniform(1, 2.5)) * cliff
    return Truth(rate.ravel(), (np.log(at_once) - rate + tail).ravel())


def _main(factor: Factor, chance: np.random.Generator) -> Numbers:
    """ln of the effect of each level."""
    if not factor.places:
        return chance.normal(0, 0.15, factor.levels)
    places = np.array(factor.places) / factor.places[-1]
    curve: Numbers = -chance.uniform(0.1, 0.8) * (places - chance.uniform(0, 1)) ** 2
    return curve


@dataclass(frozen=True)
class Scenario:
    """`noise`: relative standard deviation of a trial's rate. Half as much is shared by ten consecutive trials, and
    latency has twice as much."""

    combinations: int
    noise: float
    limited: bool  # latency: at most its value at LIMIT of the combinations

    @property
    def budget(self) -> int:
        return max(80, math.ceil(0.15 * self.combinations))


SCENARIOS = [Scenario(*each) for each in product(GRIDS, (0.02, 0.05), (False, True))]


@dataclass(frozen=True)
class Outcome:
    """Of one simulated search. `share`: rate of its best combination, divided by the true best one's."""

    share: float
    bound: float
    is_bound_true: bool
    latency_ratio: float  # to the limit; 0 without one
    effects: int
    effects_covered: int
    are_runners_up_covered: bool
    random_share: float  # of a search that chooses at random


def simulated(scenario: Scenario, seed: int) -> Outcome:
    chance = np.random.default_rng((seed, scenario.combinations))
    factors = GRIDS[scenario.combinations]
    truth = generated(factors, chance)
    limit = float(np.quantile(truth.latency, LIMIT)) if scenario.limited else None
    search = Search(factors, scenario.budget, limit=None if limit is None else math.exp(limit), seed=seed)
    shared = scenario.noise / 2 * chance.standard_normal(scenario.budget // SHARED + 1)
    measurements: list[Measurement] = []
    while (batch := next_batch(search, measurements)).points:
        number = 1 + max((each.batch for each in measurements), default=-1)
        for point in batch.points:
            noise = scenario.noise * chance.standard_normal(2) + shared[len(measurements) // SHARED]
            rate, latency = np.exp([truth.rate[point] + noise[0], truth.latency[point] + 2 * noise[1]]).tolist()
            limited = latency if scenario.limited else None
            measurements.append(Measurement(point, number, rate, limited, batch.is_final))
    conclusion = conclude(search, measurements)
    reached = truth.rate[conclusion.point]
    best = truth.rate[truth.latency <= limit].max() if limit is not None else truth.rate.max()
    covered = [_is_covered(search, truth, conclusion.point, effect) for effect in conclusion.effects]
    return Outcome(
        share=math.exp(reached - best),
        bound=conclusion.bound,
        is_bound_true=bool(best - reached <= math.log1p(conclusion.bound)),
        latency_ratio=0.0 if limit is None else math.exp(truth.latency[conclusion.point] - limit),
        effects=len(covered),
        effects_covered=sum(covered),
        are_runners_up_covered=all(
            each.low <= math.exp(truth.rate[each.point] - reached) <= each.high for each in conclusion.runners_up
        ),
        random_share=math.exp(truth.rate[_random(search, truth, scenario.noise, chance)] - best),
    )


def _is_covered(search: Search, truth: Truth, best: int, effect: Effect) -> bool:
    changed = [factor.name == effect.factor for factor in search.factors]
    levels = np.where(changed, effect.level, np.unravel_index(best, search.shape))
    ratio = math.exp(truth.rate[np.ravel_multi_index(tuple(levels), search.shape)] - truth.rate[best])
    return effect.low <= ratio <= effect.high


def _random(search: Search, truth: Truth, noise: float, chance: np.random.Generator) -> int:
    """The best one of the finalists among combinations chosen at random, with the same number of trials. It knows no
    limit."""
    points = chance.choice(search.candidates, min(search.exploring, len(search.candidates)), replace=False)
    measured = truth.rate[points] + noise * chance.standard_normal(len(points))
    finalists = points[np.argsort(-measured)[: search.finalists]]
    rounds = truth.rate[finalists] + noise / math.sqrt(ROUNDS) * chance.standard_normal(len(finalists))
    return int(finalists[rounds.argmax()])


@dataclass(frozen=True)
class Rates:
    """Of a scenario, over its seeds. Limits: WANTED, with what chance explains (two-sided, 5 %)."""

    scenario: Scenario
    outcomes: Sequence[Outcome]

    @property
    def near_best(self) -> float:
        return fmean(each.share >= 0.95 for each in self.outcomes)

    @property
    def bound_true(self) -> float:
        return fmean(each.is_bound_true for each in self.outcomes)

    @property
    def over_limit(self) -> float:
        return fmean(each.latency_ratio > 1.05 for each in self.outcomes)

    @property
    def ok(self) -> bool:
        rates = (self.near_best, NEAR_BEST), (self.bound_true, BOUND_TRUE), (1 - self.over_limit, 1 - OVER_LIMIT)
        seeds = len(self.outcomes)
        return all(bdtr(round(rate * seeds), seeds, wanted) > 0.025 for rate, wanted in rates)

    @property
    def row(self) -> str:
        scenario, outcomes = self.scenario, self.outcomes
        cells = [
            f"{scenario.combinations:,}", str(scenario.budget), f"{scenario.noise:.0%}",
            "yes" if scenario.limited else "no", _percent(self.near_best),
            "" if scenario.limited else _percent(fmean(each.random_share >= 0.95 for each in outcomes)),
            _percent(self.bound_true), _percent(median(each.bound for each in outcomes)),
            _percent(self.over_limit) if scenario.limited else "",
            _percent(sum(each.effects_covered for each in outcomes) / sum(each.effects for each in outcomes)),
            _percent(fmean(each.are_runners_up_covered for each in outcomes)), "" if self.ok else "MISSED",
        ]  # fmt: skip
        return f"| {' | '.join(cells)} |"


HEADS = (
    "combinations", "trials", "noise", "limit", "within 5 % of the best", "random choice: within 5 %", "bound true",
    "median bound", "limit exceeded by > 5 %", "effects covered", "runners-up covered", "",
)  # fmt: skip


def _percent(rate: float) -> str:
    return f"{100 * rate:.1f} %"


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="make truth-search", description="Search on generated surfaces.")
    parser.add_argument("--seeds", type=int, default=40, help="surfaces for each scenario")
    parser.add_argument("--combinations", type=int, choices=list(GRIDS), nargs="+", default=list(GRIDS))
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--processes", type=int, default=os.cpu_count())
    options = parser.parse_args(arguments)
    seeds = range(options.first_seed, options.first_seed + options.seeds)
    say(f"| {' | '.join(HEADS)} |\n|{' --- |' * len(HEADS)}")
    is_ok = True
    with ProcessPoolExecutor(options.processes, mp_context=get_context("spawn")) as pool:
        for scenario in SCENARIOS:
            if scenario.combinations in options.combinations:
                rates = Rates(scenario, list(pool.map(partial(simulated, scenario), seeds)))
                say(rates.row)
                is_ok = is_ok and rates.ok
    return 0 if is_ok else 1


if __name__ == "__main__":
    sys.exit(run_command(main))
