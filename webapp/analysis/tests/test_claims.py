"""What sentences and points may claim."""

from collections import Counter
from random import Random

import pytest

from webapp.analysis.answer import Conclusion
from webapp.analysis.claims import (
    NOTHING,
    OF_POINTS,
    Claim,
    Contrast,
    ContrastTest,
    claims,
    may_be_modes,
    modes_chance,
)


@pytest.mark.parametrize(
    ("applications", "compared", "chance"),
    [(3, 1, 1 / 32), (4, 1, 1 / 128), (3, 3, 0.0825), (4, 3, 0.0220), (5, 3, 0.0057)],
)
def test_two_modes_look_like_a_difference_with_a_known_chance(applications: int, compared: int, chance: float) -> None:
    assert modes_chance(applications, compared) == pytest.approx(chance, abs=1e-4)


def test_a_certain_difference_needs_more_applications_for_more_levels_unless_it_is_large() -> None:
    assert may_be_modes(3, 1, 0.8)
    assert not may_be_modes(4, 1, 0.8)
    assert may_be_modes(4, 3, 0.8)
    assert not may_be_modes(5, 3, 0.8)
    assert not may_be_modes(3, 3, 0.4)


def test_drift_and_modes_are_named_only_for_a_difference() -> None:
    claim = Claim(different=True, equal=False, p=0.001)
    assert claim.conclusion("", modes=False) is Conclusion.DIFFERENT
    assert claim.conclusion("", modes=True) is Conclusion.MAY_BE_MODES
    assert claim.conclusion("after", modes=True) is Conclusion.MAY_BE_DRIFT
    assert NOTHING.conclusion("after", modes=True) is Conclusion.NONE


def test_the_questions_of_a_run_share_the_chance_of_a_false_claim() -> None:
    one = Contrast(0.03, 1e-4, 6.0, 7, 0.0)
    alone, shared = (claims([ContrastTest(one, one)], 0.05, questions=questions)[0] for questions in (1, 4))
    assert (alone.different, shared.different) == (True, False)
    assert shared.p == pytest.approx(4 * alone.p)


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
            assert claim.different is (claim.p <= OF_POINTS)
            assert not (claim.different and low <= 1 <= high)
            seen[claim.different, low <= 1 <= high] += 1
    assert set(seen) == {(True, False), (False, True), (False, False)}
