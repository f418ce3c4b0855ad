"""The smallest difference that a plan can find."""

from random import Random

import pytest

from webapp.analysis.detectable import ASSUMED, noise_of, smallest
from webapp.tests.factories.hosts import a_target
from webapp.tests.factories.results import Lab


@pytest.mark.parametrize(
    ("repeats", "comparisons", "percent"),
    [(3, 4, 12.4), (4, 8, 7.7), (6, 28, 5.7), (10, 4, 4.0)],  # each found on 75 to 96 % of simulated pages
)
def test_more_repeats_find_smaller_differences(repeats: int, comparisons: int, percent: float) -> None:
    assert 100 * smallest(repeats, comparisons, 0.02) == pytest.approx(percent, rel=0.06)


def test_it_is_proportional_to_the_noise() -> None:
    assert smallest(5, 4, 0.04) == pytest.approx(2 * smallest(5, 4, 0.02))


@pytest.mark.django_db
class TestTheNoiseOfATarget:
    def test_it_is_that_between_repeats_of_one_point_in_one_run(self) -> None:
        target, random = a_target(), Random(1)
        for number in (1, 2):  # the second run is twice as fast, which is no noise
            lab = Lab(target, number=number)
            for depth in (1, 2, 4, 8):
                lab.measure(*(1000 * number * depth * (1 + random.gauss(0, 0.03)) for _ in range(6)), iodepth=depth)
        noise = noise_of([target])
        assert noise.sigma == pytest.approx(0.03, rel=0.25)
        assert (noise.results, noise.target) == (48, str(target))

    def test_invalid_results_and_single_values_say_nothing(self) -> None:
        target = a_target()
        lab = Lab(target)
        lab.measure(1000, 2000, 4000, 9000, 50, 6, 70, 800, invalid=True)
        lab.measure(1000, iodepth=4)
        assert (noise_of([target]).sigma, noise_of([target]).results) == (ASSUMED, 0)

    def test_of_several_targets_it_is_the_largest(self) -> None:
        quiet, loud = a_target(), a_target()
        Lab(quiet, number=1).measure(*(1000 + n % 2 for n in range(8)))
        Lab(loud, number=2).measure(*(1000 + 100 * (n % 2) for n in range(8)))
        assert noise_of([quiet, loud]).target == str(loud)
