"""What a headline may claim."""

from collections import Counter
from random import Random

import pytest

from webapp.analysis.claims import EACH, Claim, Contrast, ContrastTest, claims, modes_chance


@pytest.mark.parametrize(
    ("applications", "compared", "chance"),
    [(3, 1, 1 / 32), (4, 1, 1 / 128), (3, 3, 0.0825), (4, 3, 0.0220), (5, 3, 0.0057)],
)
def test_two_modes_look_like_a_difference_with_a_known_chance(applications: int, compared: int, chance: float) -> None:
    assert modes_chance(applications, compared) == pytest.approx(chance, abs=1e-4)


def test_a_headline_needs_more_applications_for_more_levels_unless_the_difference_is_large() -> None:
    claim = Claim(different=True, equal=False, p=0.001)
    assert not claim.fits_headline(3, 1, 0.8)
    assert claim.fits_headline(4, 1, 0.8)
    assert not claim.fits_headline(4, 3, 0.8)
    assert claim.fits_headline(5, 3, 0.8)
    assert claim.fits_headline(3, 3, 0.4)
    assert not Claim(different=True, equal=False, p=0.02).fits_headline(9, 1, 0.4)


def test_a_corrected_p_never_contradicts_the_interval_beside_it() -> None:
    """Different if, and only if, p is at most 2.5 %; then the interval excludes 1."""
    chance, seen = Random(1), Counter[tuple[bool, bool]]()
    for _ in range(200):
        shown = [
            Contrast(chance.gauss(0, 0.03), chance.uniform(1e-5, 4e-4), chance.choice((2.0, 4.0, 8.0)), 3, 0.001)
            for _ in range(4)
        ]
        pooled = [one.at_least(2e-4, 20.0) for one in shown]
        tests = [ContrastTest(one, tested) for one, tested in zip(shown, pooled, strict=True)]
        for one, claim in zip(shown, claims(tests, 0.05), strict=True):
            low, high = one.ratio.low, one.ratio.high
            assert low is not None
            assert high is not None
            assert claim.different is (claim.p <= EACH)
            assert not (claim.different and low <= 1 <= high)
            seen[claim.different, low <= 1 <= high] += 1
    assert set(seen) == {(True, False), (False, True), (False, False)}
