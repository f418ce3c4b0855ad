"""Steps are found where they are; chance makes a step in at most 1 % of series."""

from io import StringIO

import numpy as np
import pytest
from django.core.management import call_command

from webapp.trends.management.commands.simulate_trends import CASES, DEPENDENT, SERIES, STEPS, false_steps
from webapp.trends.steps import FALSE_ALARMS, FALSE_ALARMS_DEPENDENT, MIN_RUNS, steps

NOISE = 0.01


def a_series(*levels: tuple[float, int], seed: int = 1) -> list[float]:
    """(level, number of values), with noise of 1 %."""
    random = np.random.default_rng(seed)
    return [level + float(random.normal(0, NOISE)) for level, count in levels for _ in range(count)]


def test_a_step_begins_with_the_first_run_of_the_new_level() -> None:
    assert steps(a_series((0, 12), (-0.1, 8))) == [12]


def test_several_steps_are_found_in_their_order() -> None:
    assert steps(a_series((0, 15), (-0.1, 10), (0.1, 12))) == [15, 25]


def test_a_dip_that_ended_is_found_with_both_ends() -> None:
    assert steps(a_series((0, 20), (-0.1, 4), (0, 20))) == [20, 24]


def test_a_new_level_is_found_from_its_third_run_on() -> None:
    assert steps(a_series((0, 30), (-0.1, 2))) == []
    assert steps(a_series((0, 30), (-0.1, 3))) == [30]


def test_one_run_apart_is_no_level() -> None:
    assert steps(a_series((0, 20), (-0.5, 1), (0, 20))) == []


def test_too_few_runs_have_no_step_however_large() -> None:
    assert steps(a_series((0, 6), (-1, 6))) == []
    assert steps(a_series((0, 7), (-1, MIN_RUNS - 7))) == [7]


def test_equal_values_and_no_values_have_no_step() -> None:
    assert steps([1.0] * 40) == []
    assert steps([]) == []


def test_the_same_series_has_the_same_steps_each_time() -> None:
    series = a_series((0, 20), (-0.02, 20), seed=3)
    assert steps(series) == steps(series)


@pytest.mark.parametrize("kind", list(SERIES))
def test_chance_makes_a_step_at_the_stated_rate(kind: str) -> None:
    """300 series: with a rate of 1 %, more than 9 of them have a step with a probability below 0.1 %."""
    assert false_steps(kind, runs=20, series=300) <= 9 / 300
    assert FALSE_ALARMS == 0.01


@pytest.mark.parametrize("kind", list(DEPENDENT)[:2])
def test_values_that_depend_on_the_ones_before_seldom_make_a_step(kind: str) -> None:
    """100 series; random orders alone would allow steps in 15 and 44 of them."""
    assert false_steps(kind, runs=50, series=100) <= FALSE_ALARMS_DEPENDENT


def test_a_step_is_found_although_the_values_depend_on_each_other() -> None:
    noise = DEPENDENT["each depends on the one before, r = 0.5"](np.random.default_rng(2), 40)
    noise[20:] += 0.15
    assert steps(list(noise)) == [20]


def test_the_command_prints_the_rates_of_every_case() -> None:
    output = StringIO()
    call_command("simulate_trends", series=2, stdout=output)
    rows = [line for line in output.getvalue().splitlines() if line.startswith("|") and "---" not in line]
    heads = 4
    assert len(rows) == heads + 2 * len({**SERIES, **DEPENDENT}) + len(STEPS) + len(CASES)
