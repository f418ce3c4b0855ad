"""Stop rules on series of real drives, of throttled loop devices, and of known shape."""

import random
from statistics import fmean

import pytest

from worker.contract.steadiness import over_rounds
from worker.contract.workload import Confidence, Settled, SteadyRounds, StopRule, least_s
from worker.stop_rules import find_window, first_window, looks, warm_up_s
from worker.stop_rules.tests.recorded import KINGSTON, LOOPS

RULES: tuple[StopRule, ...] = (Confidence(percent=2), SteadyRounds(round_s=2), Settled(hold_s=10))
STEADY = ("throttled-100-mb-write", "throttled-500-iops-randread", "throttled-3000-iops-randwrite")


def noise(seconds: int, deviation: float, *, correlated: float = 0.0, seed: int = 1) -> list[float]:
    chance, wave, rates = random.Random(seed), 0.0, []
    for _ in range(seconds):
        wave = correlated * wave + (1 - correlated**2) ** 0.5 * chance.gauss(0, deviation)
        rates.append(1000 * (1 + wave))
    return rates


def test_confidence_takes_a_quarter_of_the_time_of_a_real_drive() -> None:
    found = {name: first_window(Confidence(percent=2), rates) for name, rates in KINGSTON.items()}
    seconds = [window.to_s if window else len(KINGSTON[name]) for name, window in found.items()]
    assert sum(seconds) <= sum(map(len, KINGSTON.values())) / 4
    for name, window in found.items():
        assert window is not None
        mean = fmean(KINGSTON[name][window.from_s : window.to_s])
        assert mean == pytest.approx(fmean(KINGSTON[name]), rel=0.05), name


@pytest.mark.parametrize("rule", RULES, ids=str)
@pytest.mark.parametrize("name", STEADY)
def test_every_rule_ends_a_steady_drive_early_with_its_speed(rule: StopRule, name: str) -> None:
    window = first_window(rule, LOOPS[name])
    assert window is not None
    assert window.to_s <= 30
    assert fmean(LOOPS[name][window.from_s : window.to_s]) == pytest.approx(fmean(LOOPS[name]), rel=0.02)


def test_confidence_goes_on_while_the_drive_becomes_slower() -> None:
    rates = LOOPS["throttled-ramp-down-then-level"]
    window = first_window(Confidence(percent=2), rates)
    assert window is not None
    assert window.from_s >= 45  # the ramp takes about 60 s, most of it in the first 45 s
    assert fmean(rates[window.from_s : window.to_s]) == pytest.approx(fmean(rates[-60:]), rel=0.05)


def test_confidence_does_not_end_a_noisy_drive() -> None:
    assert first_window(Confidence(percent=2), LOOPS["unthrottled-randread-qd1"]) is None


def test_no_rule_sees_what_comes_after_it_and_a_minimum_time_helps() -> None:
    """A drive that becomes slower after a minute, such as an SSD whose cache is full."""
    rates = LOOPS["throttled-slower-after-60-s"]
    early = first_window(Confidence(percent=2), rates)
    late = first_window(Confidence(percent=2), rates, least_runtime_s=90)
    assert early is not None
    assert late is not None
    assert fmean(rates[early.from_s : early.to_s]) == pytest.approx(2000, rel=0.02)
    assert late.from_s >= 55
    assert fmean(rates[late.from_s : late.to_s]) == pytest.approx(800, rel=0.02)


@pytest.mark.parametrize("rule", RULES, ids=str)
def test_a_stalled_drive_is_not_steady(rule: StopRule) -> None:
    assert first_window(rule, [0.0] * 100) is None
    assert first_window(rule, [1000.0] * 4 + [0.0] * 100) is None


@pytest.mark.parametrize("rule", RULES, ids=str)
def test_a_freeze_is_in_no_window(rule: StopRule) -> None:
    rates = LOOPS["freeze-20-s"]
    window = first_window(rule, rates)
    assert window is None or window.from_s >= 23


def test_a_freeze_is_not_taken_for_a_warm_up() -> None:
    assert first_window(Confidence(percent=10), LOOPS["freeze-20-s"]) is None
    assert first_window(Confidence(percent=10), [0.0] * 5 + [1000.0] * 55) is None


@pytest.mark.parametrize("rule", RULES, ids=str)
@pytest.mark.parametrize("least", [5, 30])
def test_no_rule_ends_before_its_minimum(rule: StopRule, least: int) -> None:
    window = first_window(rule, [1000.0] * 100, least_runtime_s=least)
    assert window is not None
    assert window.to_s >= least_s(rule, least)
    assert first_window(rule, [1000.0] * (least_s(rule, least) - 1), least_runtime_s=least) is None


@pytest.mark.parametrize("correlated", [0.0, 0.5, 0.8])
def test_the_interval_of_confidence_holds_with_autocorrelation(correlated: float) -> None:
    """Stopping at the first narrow interval favours narrow ones, so more than 5 % may be outside."""
    outside = stopped = 0
    for seed in range(100):
        rates = noise(300, 0.04, correlated=correlated, seed=seed)
        if window := first_window(Confidence(percent=3), rates, least_runtime_s=10):
            stopped += 1
            outside += abs(fmean(rates[window.from_s : window.to_s]) / 1000 - 1) > 0.03
    assert stopped >= 40
    assert outside <= 0.1 * stopped


@pytest.mark.parametrize("fall", [0.1, 0.3])
def test_confidence_never_ends_a_series_that_still_falls(fall: float) -> None:
    falling = [rate * (1 - fall * at / 60) for at, rate in enumerate(noise(60, 0.005))]
    window = first_window(Confidence(percent=1), falling, least_runtime_s=20)
    assert window is None


def test_confidence_sees_a_fall_that_goes_on_until_the_maximum_time() -> None:
    """By 30 % within four hours: after 720 s, the fall is 1.5 %, and the mean of all would be 13 % lower."""
    noisy = noise(14_400, 0.01, correlated=0.5, seed=2)
    falling = [rate * (1 - 0.3 * at / 14_400) for at, rate in enumerate(noisy)]
    rule = Confidence(percent=2)
    assert find_window(rule, falling[:720], 14_400) is None
    assert find_window(rule, noisy[:720], 14_400) is not None
    assert find_window(rule, falling[:720], 720) is not None  # 1.5 % is all there is


def test_settled_says_when() -> None:
    rates = [2000.0] * 40 + [800.0] * 60
    varied = [rate * each / 1000 for rate, each in zip(rates, noise(100, 0.02), strict=True)]
    window = first_window(Settled(hold_s=50), varied, least_runtime_s=60)
    assert window is not None
    assert window.from_s == pytest.approx(40, abs=1)
    assert window.to_s >= 90


def test_snia_takes_five_rounds() -> None:
    falling = [2000.0] * 60 + [1000.0] * 120 + [800.0] * 300
    assert first_window(SteadyRounds(round_s=60), falling) == (180, 480, None)
    assert first_window(SteadyRounds(round_s=60), falling[:-1]) is None


def test_snia_does_not_accept_a_stall_of_few_large_ios() -> None:
    """A series of fewer than 20 I/Os per second gets no verdict, but its stalls count."""
    slow = [10.0] * 300
    assert first_window(SteadyRounds(round_s=60), slow) == (0, 300, None)
    slow[130:135] = [0.0] * 5
    assert first_window(SteadyRounds(round_s=60), slow) is None


def test_steady_state_after_snia_has_two_limits() -> None:
    assert over_rounds([100, 100, 100, 100, 100]).steady
    assert over_rounds([90, 110, 100, 90, 110]).steady  # range 20 %, slope 8 %
    assert not over_rounds([89, 111, 100, 89, 111]).steady
    assert over_rounds([95, 97.5, 100, 102.5, 105]).steady  # slope 10 %
    assert not over_rounds([94, 97, 100, 103, 106]).steady
    assert not over_rounds([0, 0, 0, 0, 0]).steady


def test_a_warm_up_is_cut() -> None:
    cut = warm_up_s([500.0, 700.0, 900.0, *noise(27, 0.01)])
    assert cut is not None
    assert 3 <= cut <= 6
    assert warm_up_s([1000.0] * 20) == 0
    assert warm_up_s([500.0] * 10 + [1000.0] * 10) is None  # half of it is warm-up


def test_looks_become_rarer() -> None:
    rule = Confidence(percent=2)
    assert list(looks(rule, 5, 10)) == [5, 6, 7, 8, 9, 10]
    assert len(list(looks(rule, 10, 86_400))) < 200


def test_rounds_are_looked_at_when_they_end() -> None:
    assert list(looks(SteadyRounds(round_s=60), 10, 500)) == [300, 360, 420, 480]
    assert list(looks(SteadyRounds(round_s=60), 310, 500)) == [360, 420, 480]
