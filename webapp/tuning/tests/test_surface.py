"""The response surface on small grids whose truth is known."""

import numpy as np
import pytest
from scipy.optimize import approx_fprime

from webapp.tuning.surface import Factor, Likelihood, Numbers, Surface, Whole

FACTORS = (Factor("iodepth", 5, (0, 1, 2, 3, 4)), Factor("scheduler", 3), Factor("layout", 2, costly=True))
SHAPE = (5, 3, 2)
NOISE = 0.02


def truth() -> Numbers:
    """ln(value): two effects and an interaction."""
    depth, scheduler, layout = np.indices(SHAPE)
    effect = 0.3 * np.sqrt(depth) + np.array([0, 0.1, -0.2])[scheduler] + 0.15 * layout * (scheduler == 1)
    return np.asarray(10 + effect).ravel()


def measured(count: int) -> tuple[Whole, Whole, Numbers]:
    """Combinations, batches of ten, and noisy values."""
    chance = np.random.default_rng(1)
    points = chance.integers(0, len(truth()), count)
    return points, np.arange(count) // 10, truth()[points] + NOISE * chance.standard_normal(count)


@pytest.mark.parametrize("seed", range(3))
def test_the_gradient_is_that_of_the_loss(seed: int) -> None:
    points, batches, values = measured(20)
    likelihood = Likelihood(FACTORS, points, batches, values - values.mean())
    parameters = likelihood.priors[:, 0] + 0.5 * np.random.default_rng(seed).standard_normal(len(likelihood.priors))
    numeric = approx_fprime(parameters, lambda each: likelihood.loss(each)[0], 1e-6)
    assert likelihood.loss(parameters)[1] == pytest.approx(numeric, rel=1e-3, abs=1e-2)


def test_combinations_that_were_not_measured_are_predicted() -> None:
    points, batches, values = measured(24)
    missing = np.setdiff1d(np.arange(len(truth())), points)
    assert len(missing) >= 5
    errors = Surface(FACTORS, points, batches, values).mean()[missing] - truth()[missing]
    assert np.sqrt((errors**2).mean()) < 0.5 * truth().std()


def test_draws_agree_with_the_expected_surface_and_are_narrow_where_much_was_measured() -> None:
    points, batches, values = measured(60)
    surface = Surface(FACTORS, points, batches, values)
    draws = surface.draws(3000, np.random.default_rng(2))
    assert draws.mean(1) == pytest.approx(surface.mean(), abs=0.01)
    often, never = np.bincount(points).argmax(), np.setdiff1d(np.arange(len(truth())), points)
    assert draws[often].std() < draws[never].std(1).min()


def test_the_noise_of_a_trial_is_estimated() -> None:
    assert 0.7 * NOISE < Surface(FACTORS, *measured(90)).noise < 1.4 * NOISE


def test_equal_values_and_one_level_are_a_surface_too() -> None:
    factors = (Factor("iodepth", 3, (0, 1, 2)), Factor("scheduler", 1))
    surface = Surface(factors, np.array([0, 1, 2]), np.zeros(3, int), np.full(3, 7.0))
    assert surface.mean() == pytest.approx([7, 7, 7], abs=1e-3)
