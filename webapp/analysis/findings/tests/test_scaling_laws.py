"""Which law of scaling is stated, with which parameters, and where none is."""

from collections.abc import Callable, Sequence

import pytest

from webapp.analysis.answer import Finding, FindingKind
from webapp.analysis.findings.tests.made import found, made

K = FindingKind
COUNTS = tuple(range(1, 13))
Law = Callable[[int], float]


def repeated(law: Law, noise: Sequence[float] = (0.99, 1.0, 1.01)) -> list[list[float]]:
    """1000 of one, with three repeats at each of `COUNTS`."""
    return [[1000 * law(count) * each for each in noise] for count in COUNTS]


def amdahl(count: int) -> float:
    return count / (1 + 0.08 * (count - 1))


def universal(count: int) -> float:
    return count / (1 + 0.05 * (count - 1) + 0.012 * count * (count - 1))


def of(law: Law, *, x: str = "at_once") -> list[Finding]:
    return [one for one in found(made(COUNTS, {"": {"A": repeated(law)}}, x=x)) if one.kind is K.SCALING]


def test_amdahls_law_has_the_share_that_does_not_scale_with_its_interval() -> None:
    (one,) = of(amdahl)
    assert one.value == pytest.approx(0.08, rel=0.05)
    assert "Amdahl" in one.sentence
    assert "×6.38" in one.sentence
    assert not one.single


def test_the_universal_law_has_its_peak_inside_the_measured_levels() -> None:
    (one,) = of(universal)
    assert one.value == pytest.approx(0.05, abs=0.01)
    assert "near 9 " in one.sentence


@pytest.mark.parametrize(
    "law",
    [
        lambda count: count,
        lambda count: min(count, 4.0),
        lambda count: count**0.4,
        lambda count: count**1.2,
        lambda count: 1.0,
        lambda count: 0.97 * count if count > 1 else 1.0,
    ],
    ids=["linear", "capped", "power", "faster than linear", "flat", "almost linear"],
)
def test_no_law_is_stated_where_a_simpler_one_fits_or_none_does(law: Law) -> None:
    assert not of(law)


def test_depth_is_no_count_and_single_values_state_no_law() -> None:
    assert not of(amdahl, x="iodepth")
    said = found(made(COUNTS, {"": {"A": [1000 * amdahl(count) for count in COUNTS]}}, x="at_once"))
    assert K.SCALING not in [one.kind for one in said]


def test_what_the_largest_number_reaches_is_stated_as_measured() -> None:
    values = (11970, 37681, 51819, 69872)
    (one,) = found(made((1, 2, 4, 8), {"": {"A": values}}, x="numjobs"))
    assert (one.kind, one.single) == (K.GROWTH, True)
    assert "×5.84 of those at 1 job (73 % of linear scaling)" in one.sentence


def test_a_highest_value_inside_is_stated_and_depth_has_no_share_of_linear_scaling() -> None:
    (one,) = found(made((8, 64, 192, 256), {"": {"A": (52646, 190841, 292558, 280887)}}))
    assert one.kind is K.GROWTH
    assert "293k at queue depth 192" in one.sentence
    assert "linear" not in one.sentence


def test_growth_is_not_stated_beside_a_limit() -> None:
    values = (458, 919, 1820, 2000, 2000, 2000)
    assert [one.kind for one in found(made((1, 2, 4, 8, 16, 32), {"": {"A": values}}))] == [K.SATURATION]
