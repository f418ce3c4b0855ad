"""The oracle, and the bars that the rules reach."""

from dev.truth.stop_rules import RULES, measured, oracle_s, sets


def test_the_oracle_stops_when_the_mean_stays_near_that_of_the_whole_series() -> None:
    assert oracle_s([1000.0] * 60) == 5
    assert oracle_s([2000.0] * 10 + [1000.0] * 90) == 82  # 1000 + 10000 / t is at most 1122


def test_confidence_is_nearly_as_fast_as_the_oracle_on_a_real_drive() -> None:
    row = measured(RULES["confidence 2%"], sets()["recorded, 60 s"])
    assert (row.reached, row.off) == (8, 0)
    assert row.of_oracle <= 1.3


def test_settled_accepts_no_window_that_is_too_short() -> None:
    row = measured(RULES["settled 10s"], sets()["recorded, 60 s"])
    assert (row.reached, row.too_short) == (8, 0)
