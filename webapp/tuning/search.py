"""A search for the best combination of levels: which to measure next, and what the measurements show at the end.

    start ──► exploration, batch after batch ──► final rounds ──► `conclude`
    balanced  where a drawn surface has          the finalists,
              its best combination               several times

Everything is a function of the search and its measurements, so a server that was killed orders the same again. A
combination is its flat number in the grid, in C order of the factors' levels.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from webapp.tuning.surface import Factor, Numbers, Surface, Whole

FINALISTS, ROUNDS = 5, 4
FINAL_SHARE = 4  # at most a fourth of the budget is for the final rounds
MIN_BUDGET = 2 * ROUNDS * FINAL_SHARE  # trials of a new search: two finalists
START, BATCHES, COSTLY_CHANGES = 0.4, 8, 4  # share of the budget; batches of exploration; changes in a batch
TOLERANCE = 0.05  # by which the best combination may exceed the limit, with a probability of less than 1 - CONFIDENCE
DRAWS = 1000
CONFIDENCE = 0.95


@dataclass(frozen=True)
class Search:
    """`budget`: number of trials; the caller may lower it between two batches, also below MIN_BUDGET. `limit`: of the
    limited metric at the best combination; None: no limit. `allowed`: the combinations that may be measured; None: all.
    Raises ValueError for fewer than two combinations."""

    factors: tuple[Factor, ...]
    budget: int
    highest: bool = True
    limit: float | None = None
    allowed: tuple[int, ...] | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        if len(self.candidates) < 2:
            raise ValueError("A search needs two combinations.")

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(factor.levels for factor in self.factors)

    @cached_property
    def candidates(self) -> Whole:
        return np.arange(math.prod(self.shape)) if self.allowed is None else np.array(self.allowed)

    @property
    def finalists(self) -> int:
        return min(finalists_within(self.budget), len(self.candidates))

    @property
    def exploring(self) -> int:
        """Trials before the final rounds."""
        return self.budget - ROUNDS * self.finalists


def finalists_within(budget: int) -> int:
    """Of a search with enough combinations."""
    return max(2, min(FINALISTS, budget // (ROUNDS * FINAL_SHARE)))


@dataclass(frozen=True)
class Batch:
    """Combinations to measure, in order. `is_final`: in the final rounds."""

    points: tuple[int, ...] = ()
    is_final: bool = False


@dataclass(frozen=True)
class Measurement:
    """A trial that ended. `value` and `limited` are positive; `value` is None if the trial failed, `limited` if there
    is no limit. `is_final`: of the final rounds."""

    point: int
    batch: int
    value: float | None
    limited: float | None = None
    is_final: bool = False


@dataclass(frozen=True)
class RunnerUp:
    """`ratio`: its value in the final rounds, divided by the best one's, with its interval; the intervals of all
    runners-up hold together with 95 % probability. `within`: as in Conclusion."""

    point: int
    ratio: float
    low: float
    high: float
    within: float


@dataclass(frozen=True)
class Effect:
    """What changes if one factor leaves the level of the best combination: expected value divided by the best one's,
    with its 95 % interval."""

    factor: str
    level: int
    ratio: float
    low: float
    high: float


@dataclass(frozen=True)
class Conclusion:
    """`value`: mean of the final rounds. `bound`: no combination within the limit has a value better by more than this
    fraction, with 95 % probability. `within`: probability that the best one exceeds the limit by at most TOLERANCE.
    `effects`: without combinations that are not allowed. `noise`: relative standard deviation of one trial."""

    point: int
    value: float
    bound: float
    within: float
    runners_up: tuple[RunnerUp, ...]
    effects: tuple[Effect, ...]
    noise: float


class NothingMeasured(Exception):
    """Too few trials succeeded for an answer."""


def next_batch(search: Search, measurements: Sequence[Measurement]) -> Batch:
    """What to measure next; nothing at the end of the search. All trials of earlier batches have ended. A combination
    that failed is not measured again."""
    batch = 1 + max((each.batch for each in measurements), default=-1)
    chance = np.random.default_rng((search.seed, batch))
    failed = [each.point for each in measurements if each.value is None]
    candidates = search.candidates[~np.isin(search.candidates, failed)]
    left = search.exploring - len(measurements)
    if any(each.is_final for each in measurements) or len(candidates) < search.finalists:
        return Batch()
    if len(measurements) - len(failed) < 2:
        return Batch(_start(search, candidates, chance)[: max(left, 0)])
    surfaces = _Surfaces(search, measurements)
    if left <= 0:
        return Batch(_final(search, surfaces, candidates, chance), is_final=True)
    count = min(left, math.ceil(search.exploring * (1 - START) / BATCHES), len(candidates))
    return Batch(_exploration(search, surfaces.scores(count, chance)[candidates], candidates, chance))


def _start(search: Search, candidates: Whole, chance: np.random.Generator) -> tuple[int, ...]:
    """Each level of a factor about equally often; a tenth of the combinations twice, which shows the noise."""
    count = int(START * search.budget)
    columns = [chance.permutation(np.arange(count) * levels // count) for levels in search.shape]
    points = np.ravel_multi_index(columns, search.shape)
    forbidden = ~np.isin(points, candidates)
    points[forbidden] = chance.choice(candidates, forbidden.sum())
    repeats = max(2, count // 10)
    points[-repeats:] = points[:repeats]
    return _grouped(search, points, chance)


def _exploration(search: Search, scores: Numbers, candidates: Whole, chance: np.random.Generator) -> tuple[int, ...]:
    """Each combination is the best one of a surface drawn at random (Thompson sampling, D. Russo et al.: A tutorial on
    Thompson sampling, 2018). The first draws choose the levels of the costly factors for all. `scores`: candidates ×
    draws."""
    costly = _costly_levels(search, candidates)
    leaders = costly[scores[:, :COSTLY_CHANGES].argmax(0)]
    free = np.ones(len(candidates), bool)
    for number, of_draw in enumerate(scores.T):
        here = free & (costly == leaders[number % len(leaders)])
        free[np.where(here if here.any() else free, of_draw, -np.inf).argmax()] = False
    return _grouped(search, candidates[~free], chance)


def _final(search: Search, surfaces: "_Surfaces", candidates: Whole, chance: np.random.Generator) -> tuple[int, ...]:
    """Those that are most often the best one of a drawn surface, in rounds."""
    wins = np.bincount(surfaces.scores(DRAWS, chance)[candidates].argmax(0), minlength=len(candidates))
    finalists = candidates[np.argsort(-wins, kind="stable")[: search.finalists]]
    return tuple(point for _ in range(ROUNDS) for point in _grouped(search, finalists, chance))


def _costly_levels(search: Search, points: Whole) -> Whole:
    """A number for each combination of levels of the costly factors."""
    numbers = np.zeros(len(points), np.int64)
    for factor, levels in zip(search.factors, np.unravel_index(points, search.shape), strict=True):
        numbers = numbers * factor.levels + levels if factor.costly else numbers
    return numbers


def _grouped(search: Search, points: Whole, chance: np.random.Generator) -> tuple[int, ...]:
    """In groups of equal costly levels; the groups and the points of each are shuffled."""
    shuffled = chance.permutation(points)
    costly = _costly_levels(search, shuffled)
    groups = chance.permutation(np.unique(costly))
    return tuple(int(point) for group in groups for point in shuffled[costly == group])


class _Surfaces:
    """Of ln(value), or of -ln(value) if the lowest is wanted, and of ln(limited / limit)."""

    def __init__(self, search: Search, measurements: Sequence[Measurement]) -> None:
        done = [each for each in measurements if each.value is not None]
        points, batches = np.array([each.point for each in done]), np.array([each.batch for each in done])
        self.sign = 1 if search.highest else -1
        self.value = Surface(search.factors, points, batches, self.sign * _log([each.value for each in done]))
        self._limited = None
        if search.limit is not None:
            beyond = _log([each.limited for each in done]) - math.log(search.limit)
            self._limited = Surface(search.factors, points, batches, beyond)

    def draws(self, count: int, chance: np.random.Generator) -> tuple[Numbers, Numbers]:
        """Value and how far it is beyond the limit (-∞ without a limit): combinations × draws."""
        drawn = self.value.draws(count, chance)
        return drawn, np.full_like(drawn, -np.inf) if self._limited is None else self._limited.draws(count, chance)

    def scores(self, count: int, chance: np.random.Generator) -> Numbers:
        """Higher is better; a combination beyond the limit is worse than all others, by as much as it is beyond."""
        drawn, beyond = self.draws(count, chance)
        scores: Numbers = np.where(beyond > 0, drawn.min(0) - beyond, drawn)
        return scores


def _log(values: Sequence[float | None]) -> Numbers:
    logs: Numbers = np.log(np.array(values, float))
    return logs


def conclude(search: Search, measurements: Sequence[Measurement]) -> Conclusion:
    """The best one of the finalists that succeeded in all rounds: of those that are within the limit, the one with the
    best expected value; if none is, the one that is most probably within. Raises NothingMeasured."""
    rounds = _final_rounds(measurements)
    if not rounds:
        raise NothingMeasured
    surfaces = _Surfaces(search, measurements)
    drawn, beyond = surfaces.draws(DRAWS, np.random.default_rng((search.seed, search.budget)))
    expected = surfaces.value.mean()
    within = (beyond <= math.log1p(TOLERANCE)).mean(1)
    sure = (within >= CONFIDENCE) & ((beyond <= 0).mean(1) >= 0.5)
    points = sorted(rounds, key=lambda point: (not sure[point], 0 if sure[point] else -within[point], -expected[point]))
    best = points[0]
    highest = np.where(beyond > 0, -np.inf, drawn)[search.candidates].max(0)
    regret = np.maximum(highest - drawn[best], 0)
    return Conclusion(
        best,
        math.exp(rounds[best].mean()),
        math.expm1(np.quantile(regret, CONFIDENCE)),
        float(within[best]),
        _runners_up(points, rounds, within),
        tuple(_effects(search, best, surfaces.sign * (drawn - drawn[best]))),
        surfaces.value.noise,
    )


def _final_rounds(measurements: Sequence[Measurement]) -> dict[int, Numbers]:
    """ln(value) in the rounds, of each finalist that succeeded in all of them."""
    final = [each for each in measurements if each.is_final]
    values = {point: [each.value for each in final if each.point == point] for point in {each.point for each in final}}
    return {point: _log(of_point) for point, of_point in values.items()
            if len(of_point) == ROUNDS and None not in of_point}  # fmt: skip


def _runners_up(points: Sequence[int], rounds: dict[int, Numbers], within: Numbers) -> tuple[RunnerUp, ...]:
    """Intervals of all pairs after Tukey, with rounds as blocks. `points`: best first."""
    from scipy.stats import studentized_range

    table = np.array([rounds[point] for point in points])
    count = len(points)
    if count < 2:
        return ()
    means = table.mean(1)
    residuals = table - means[:, None] - table.mean(0) + table.mean()
    free = (count - 1) * (ROUNDS - 1)
    half = studentized_range.ppf(CONFIDENCE, count, free) * math.sqrt((residuals**2).sum() / free / ROUNDS)
    return tuple(
        RunnerUp(point, math.exp(ratio), math.exp(ratio - half), math.exp(ratio + half), float(within[point]))
        for point, ratio in zip(points[1:], means[1:] - means[0], strict=True)
    )


def _effects(search: Search, best: int, ratios: Numbers) -> Iterator[Effect]:
    """`ratios`: ln(value / value of the best one), combinations × draws."""
    levels = np.unravel_index(best, search.shape)
    allowed = set(search.candidates.tolist())
    for axis, factor in enumerate(search.factors):
        for level in range(factor.levels):
            point = int(np.ravel_multi_index([*levels[:axis], level, *levels[axis + 1 :]], search.shape))
            if point != best and point in allowed:
                low, middle, high = np.exp(np.quantile(ratios[point], (0.025, 0.5, 0.975))).tolist()
                yield Effect(factor.name, level, middle, low, high)
