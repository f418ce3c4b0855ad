"""What a headline may claim."""

import pytest

from webapp.analysis.claims import Claim, modes_chance


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
