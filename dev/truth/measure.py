"""Rates over many simulated pages: false claims, coverage of the intervals, power."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from math import sqrt

import numpy as np

from dev.truth.claims import claims_of, has_claim
from dev.truth.noise import MODELS
from dev.truth.pages import GRIDS, Scenario, bench_of, page
from dev.truth.sequential import until_decided
from webapp.analysis.answer import DIFFERENCES, Comparison
from webapp.plans.document import Order

MAX_FALSE_PAGES, MAX_FALSE_HEADLINES = 0.05, 0.02
COVERAGE = (0.93, 0.97)
MIN_POWER, MIN_EQUIVALENCE = 0.85, 0.80
KNOWN_INTERVALS = ("white", "shared")
NOISES = [name for name in MODELS if name != "quiet"]
ERRORS = 3  # standard errors of the simulation by which a single scenario may exceed a limit


@dataclass(frozen=True)
class FalseClaims:
    """Pages of one scenario in which nothing differs. `headlines` are those of the page, and with the factor on x."""

    scenario: Scenario
    pages: int
    false_pages: int
    false_headlines: int
    unwarned: int  # listed order without a warning of drift

    @property
    def page_rate(self) -> float:
        return self.false_pages / self.pages

    @property
    def headline_rate(self) -> float:
        return self.false_headlines / self.pages

    @property
    def ok(self) -> bool:
        """Within the limits, give or take the error of the simulation."""
        return (
            self.page_rate <= _allowed(MAX_FALSE_PAGES, self.pages)
            and self.headline_rate <= _allowed(MAX_FALSE_HEADLINES, self.pages)
            and not self.unwarned
        )


def _allowed(limit: float, pages: int) -> float:
    return limit + ERRORS * sqrt(limit * (1 - limit) / pages)


def scenarios() -> list[Scenario]:
    """Every noise, two and three levels, two to five repeats, 1, 4 and 14 points; a costly and a cheap factor in
    randomised order, and the costly one as listed."""
    orders = (("scheduler", Order.RANDOMISED), ("ioengine", Order.RANDOMISED), ("scheduler", Order.LISTED))
    return [
        Scenario(noise, repeats, points, levels, factor, order)
        for noise, (factor, order), levels, repeats, points in product(NOISES, orders, (2, 3), (2, 3, 4, 5), GRIDS)
    ]


def false_claims(scenario: Scenario, pages: int, seed: int) -> FalseClaims:
    """A/A: nothing differs. With one point, half of the pages have the compared factor on x."""
    chance = np.random.default_rng([seed, *repr(scenario).encode()])
    found = [
        claims_of(page(scenario, chance, series=scenario.points > 1 or bool(number % 2))) for number in range(pages)
    ]
    listed = scenario.order is Order.LISTED
    return FalseClaims(
        scenario,
        pages,
        sum(one.page for one in found),
        sum(one.headline for one in found),
        sum(listed and not one.warned for one in found),
    )


@dataclass(frozen=True)
class Figure:
    """A rate with its limits."""

    name: str
    rate: float
    low: float
    high: float
    tries: int

    @property
    def ok(self) -> bool:
        error = ERRORS * sqrt(self.rate * (1 - self.rate) / self.tries)
        return self.low - error <= self.rate <= self.high + error


def figures(pages: int, seed: int) -> Iterator[Figure]:
    for noise in KNOWN_INTERVALS:
        for repeats in (3, 5):
            yield from _coverage(Scenario(noise, repeats), pages, seed)
    yield _power("power: +5 % found, 2 % noise, n = 5, 4 points", Scenario("white", 5, effect=0.05), pages, seed)
    yield _power("power: +10 % found, 2 % noise, n = 3, 4 points", Scenario("white", 3, effect=0.1), pages, seed, 0.0)
    for points in (1, 4):
        name = f"equivalence found, margin 5 %, 1 % noise, n = 5, {points} points"
        yield Figure(name, _equal(Scenario("quiet", 5, points), pages, seed), MIN_EQUIVALENCE, 1.0, pages)
    name = "equivalence claimed although the difference is the margin, 1 % noise, n = 5"
    yield Figure(name, _equal(Scenario("quiet", 5, effect=0.05), pages, seed), 0.0, MAX_FALSE_PAGES, pages)


def until_decided_figures(noise: str, pages: int, seed: int) -> list[Figure]:
    """Of runs of at most 12 repeats in which nothing differs, at their end. Each has eight comparisons."""
    chance = np.random.default_rng([seed, *noise.encode()])
    ended = [until_decided(Scenario(noise, 12, 4, 3, "ioengine"), chance) for _ in range(pages)]
    claims = [claims_of(each.page) for each in ended]
    intervals = [interval for each in ended for interval in _point_intervals(each.page)]
    name = f"until decided, {noise} noise, mean of {sum(each.repeats for each in ended) / pages:.1f} repeats"
    covered = sum(low <= 1 <= high for low, high in intervals) / len(intervals)
    found = [
        Figure(f"{name}, false pages", sum(one.page for one in claims) / pages, 0.0, MAX_FALSE_PAGES, pages),
        Figure(f"{name}, coverage of points", covered, COVERAGE[0], 1.0, pages),
    ]
    return found[: 2 if noise in KNOWN_INTERVALS else 1]


def bench_figures(noise: str, pages: int, seed: int) -> list[Figure]:
    """Pages of Bench on which nothing differs, with rates and p99 latencies of three products and three to five
    repeats."""
    chance = np.random.default_rng([seed, *noise.encode()])
    return [
        Figure(
            f"Bench, {noise} noise, n = {repeats}, {points} points, false pages",
            sum(has_claim(bench_of(Scenario(noise, repeats, points, 3), chance)) for _ in range(pages)) / pages,
            0.0,
            MAX_FALSE_PAGES,
            pages,
        )
        for repeats, points in product((3, 4, 5), GRIDS)
    ]


def _coverage(scenario: Scenario, pages: int, seed: int) -> list[Figure]:
    """Of the intervals of series and of points; each page counts once, as the share of its intervals that cover 1."""
    chance = np.random.default_rng([seed, *repr(scenario).encode()])
    made = [page(scenario, chance) for _ in range(pages)]
    name = f"coverage, {scenario.noise} noise, n = {scenario.repeats}"
    found = (("series", [_series_intervals(one) for one in made]), ("points", [_point_intervals(one) for one in made]))
    return [
        Figure(f"{name}, intervals of {what}", sum(low <= 1 <= high for one in each for low, high in one)
               / sum(map(len, each)), *COVERAGE, pages)
        for what, each in found
    ]  # fmt: skip


def _series_intervals(made: Comparison) -> Sequence[tuple[float, float]]:
    ratios = [one.against_baseline.ratio for panel in made.panels for one in panel.series if one.against_baseline]
    return [(ratio.low, ratio.high) for ratio in ratios if ratio.low is not None and ratio.high is not None]


def _point_intervals(made: Comparison) -> Sequence[tuple[float, float]]:
    cells = [cell for panel in made.panels for one in panel.series for cell in one.cells]
    ratios = [cell.against_baseline.ratio for cell in cells if cell.against_baseline]
    return [(ratio.low, ratio.high) for ratio in ratios if ratio.low is not None and ratio.high is not None]


def _power(name: str, scenario: Scenario, pages: int, seed: int, least: float = MIN_POWER) -> Figure:
    chance = np.random.default_rng([seed, *repr(scenario).encode()])
    found = sum(_found(page(scenario, chance)) for _ in range(pages))
    return Figure(name, found / pages, least, 1.0, pages)


def _found(made: Comparison) -> bool:
    """The sentence claims the difference, perhaps with a caution, in the right direction."""
    against = [one.against_baseline for panel in made.panels for one in panel.series if one.against_baseline]
    return all(one.conclusion in DIFFERENCES and one.ratio.value > 1 for one in against)


def _equal(scenario: Scenario, pages: int, seed: int) -> float:
    chance = np.random.default_rng([seed, *repr(scenario).encode()])
    return sum(claims_of(page(scenario, chance)).equal for _ in range(pages)) / pages
