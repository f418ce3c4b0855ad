"""Counted and made points against plain products, for random grids and rules."""

import itertools
import random

import pytest

from webapp.plans.document import Part, PlanDocument
from webapp.plans.grids import part_grid
from webapp.plans.tests.helpers import document
from webapp.plans.values import Value

# Factors whose levels always have an effect, and levels in the notation of plans with their values.
LEVELS: dict[str, dict[str, Value]] = {
    "block_size": {"4k": 4096, "8k": 8192, "64k": 65_536, "1M": 2**20},
    "iodepth": {"1": 1, "4": 4, "32": 32},
    "numjobs": {"1": 1, "2": 2, "8": 8},
    "direct": {"on": True, "off": False},
    "pattern": {"randread": "randread", "read": "read"},
}
Conditions = dict[str, list[str]]


def conditions(chance: random.Random, grid: dict[str, list[str]]) -> Conditions:
    names = chance.sample(sorted(grid), chance.randint(1, min(3, len(grid))))
    return {name: chance.sample(grid[name], chance.randint(1, len(grid[name]))) for name in names}


def as_rule(start: str, wanted: Conditions) -> str:
    return f"{start} " + "; ".join(f"{name}={', '.join(levels)}" for name, levels in wanted.items())


def meets(point: dict[str, str], wanted: Conditions) -> bool:
    return all(point[name] in levels for name, levels in wanted.items())


@pytest.mark.parametrize("seed", range(60))
def test_a_selection_is_the_product_that_the_rules_leave(seed: int) -> None:
    chance = random.Random(seed)
    names = chance.sample(sorted(LEVELS), chance.randint(1, len(LEVELS)))
    grid = {name: chance.sample(list(LEVELS[name]), chance.randint(1, len(LEVELS[name]))) for name in names}
    grid.setdefault("pattern", ["randread"])
    excluded = [conditions(chance, grid) for _ in range(chance.randint(0, 2))]
    only = [conditions(chance, grid) for _ in range(chance.randint(0, 2))]
    rules = (*(as_rule("except", each) for each in excluded), *(as_rule("only when", each) for each in only))
    factors = {name: ", ".join(levels) for name, levels in grid.items()}
    made: PlanDocument = document(Part(name="main", factors=factors, rules=rules), repeats=1)
    found = part_grid(made, made.parts[0])
    products = (dict(zip(grid, levels, strict=True)) for levels in itertools.product(*grid.values()))
    expected = [
        point
        for point in products
        if not any(meets(point, each) for each in excluded) and (not only or any(meets(point, each) for each in only))
    ]
    wanted = {tuple(sorted((name, repr(LEVELS[name][level])) for name, level in point.items())) for point in expected}
    points = [tuple(sorted((name, repr(point[name])) for name in grid)) for point in found.points]
    assert len(points) == len(set(points)) == found.count == len(expected)
    assert set(points) == wanted
