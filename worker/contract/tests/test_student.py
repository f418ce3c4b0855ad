import pytest
from scipy.special import stdtrit

from worker.contract.steadiness import student_t


@pytest.mark.parametrize("probability", [0.95, 0.975, 0.9985])
@pytest.mark.parametrize("freedom", [1, 2, 3, 3.5, 5, 8.2, 30, 1000])
def test_it_agrees_with_scipy(probability: float, freedom: float) -> None:
    assert student_t(probability, freedom) == pytest.approx(stdtrit(freedom, probability), rel=1e-3)


def test_it_is_close_between_one_and_two_degrees_of_freedom() -> None:
    assert student_t(0.975, 1.3) == pytest.approx(stdtrit(1.3, 0.975), rel=0.06)
