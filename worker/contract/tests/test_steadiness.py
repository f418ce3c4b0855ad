"""Verdicts on series of known shape."""

import random

import numpy
import pytest

from worker.contract.steadiness import MAX_SECONDS, Timed, Verdict, per_second, steadiness, worst


def samples(rates: list[float], *, noise: float = 0.0, seed: int = 1) -> list[Timed]:
    chance = random.Random(seed)
    return [(1000 * (n + 1), 1000, rate * (1 + chance.gauss(0, noise))) for n, rate in enumerate(rates)]


def verdicts(rates: list[float], noise: float) -> list[Verdict]:
    return [steadiness(samples(rates, noise=noise, seed=seed)).verdict for seed in range(200)]


@pytest.mark.parametrize("seconds", [10, 30, 60, 600])
@pytest.mark.parametrize("noise", [0.0, 0.02, 0.1])
def test_noise_is_steady(seconds: int, noise: float) -> None:
    found = verdicts([1000.0] * seconds, noise)
    assert found.count(Verdict.STEADY) >= 0.98 * len(found)


def test_slow_waves_are_not_called_a_drift() -> None:
    """Neighbouring seconds alike (AR(1), 0.8), 2 % in all: no more than one in 20 is called anything but steady."""
    wrong = 0
    for seed in range(200):
        chance, wave, rates = random.Random(seed), 0.0, []
        for _ in range(60):
            wave = 0.8 * wave + 0.6 * chance.gauss(0, 0.02)
            rates.append(1000 * (1 + wave))
        wrong += steadiness(samples(rates)).verdict is not Verdict.STEADY
    assert wrong <= 10


@pytest.mark.parametrize("change", [-0.3, -0.15, 0.15, 0.3])
def test_a_drift_is_found_with_its_size(change: float) -> None:
    rates = [1000 * (1 + change * (n / 59 - 0.5)) for n in range(60)]
    found = [steadiness(samples(rates, noise=0.02, seed=seed)) for seed in range(100)]
    assert {each.verdict for each in found} == {Verdict.DRIFTING}
    assert all(each.drift == pytest.approx(change / (1 - change / 2), abs=0.05) for each in found)


def test_a_step_is_found_with_its_place_and_size() -> None:
    found = [steadiness(samples([1000.0] * 40 + [600.0] * 20, noise=0.05, seed=seed)) for seed in range(100)]
    assert {each.verdict for each in found} == {Verdict.STEPPED}
    assert {each.step_at_s for each in found} <= {39, 40, 41}
    assert all(each.step == pytest.approx(-0.4, abs=0.03) for each in found)


def test_a_freeze_is_a_stall_even_as_one_long_sample() -> None:
    frozen = steadiness(samples([1000.0] * 20 + [0.0] * 12 + [1000.0] * 20, noise=0.02))
    assert (frozen.verdict, frozen.stall_s, frozen.stalled_s) == (Verdict.STALLED, 12, 12)
    long_one = [*samples([1000.0] * 20), (32_000, 12_000, 8.0), (33_000, 1000, 1000.0)]
    assert steadiness(long_one).verdict is Verdict.STALLED


@pytest.mark.parametrize("at_ms", [10_100, 10_500, 10_900])
def test_a_freeze_of_three_seconds_is_a_stall_at_any_start(at_ms: int) -> None:
    """It may lie so that only one whole second is empty."""
    before = [*samples([1000.0] * 10), (at_ms, at_ms - 10_000, float(at_ms - 10_000))]
    frozen = [(at_ms + 1000 * n, 1000, 0.0) for n in (1, 2)] + [(at_ms + 2900, 900, 0.0)]
    after = [(at_ms + 2900 + 1000 * n, 1000, 1000.0) for n in range(1, 11)]
    found = steadiness([*before, *frozen, *after])
    assert (found.verdict, found.stall_s, found.stalled_s) == (Verdict.STALLED, 3, 3)


def test_a_fast_start_a_slow_middle_and_a_freeze_is_a_stall() -> None:
    found = steadiness(samples([1000.0] * 30 + [200.0] * 20 + [0.0] * 10))
    assert (found.verdict, found.stall_s, found.step_at_s) == (Verdict.STALLED, 10, 30)


def test_few_random_ios_a_second_are_no_bursts() -> None:
    """Counts of 25 I/Os a second vary by 20 % by chance alone."""
    chance = numpy.random.default_rng(1)
    found = [steadiness(samples(chance.poisson(25, 60).tolist())).verdict for _ in range(200)]
    assert found.count(Verdict.BURSTY) <= 4


def test_bursts_are_found() -> None:
    found = steadiness(samples([1500.0, 500.0] * 30))
    assert found.verdict is Verdict.BURSTY
    assert found.variation == pytest.approx(0.5, abs=0.02)
    assert found.autocorrelation < -0.9


def test_a_trial_that_is_too_short_or_too_slow_gets_no_verdict() -> None:
    assert steadiness(samples([1000.0] * 9)).verdict is Verdict.TOO_SHORT
    assert steadiness(samples([3.0] * 60)).verdict is Verdict.TOO_SHORT
    assert steadiness([]).verdict is Verdict.TOO_SHORT


def test_a_trial_that_froze_for_good_is_stalled() -> None:
    found = steadiness(samples([100_000.0] * 5 + [0.0] * 60))
    assert (found.verdict, found.stall_s) == (Verdict.STALLED, 60)


def test_changes_are_of_the_speed_before() -> None:
    assert steadiness(samples([2000.0] * 30 + [1000.0] * 30)).step == pytest.approx(-0.5)
    assert steadiness(samples([1000.0] * 30 + [2000.0] * 30)).step == pytest.approx(1.0)
    line = steadiness(samples([1000 - 10 * n for n in range(60)]))
    assert line.drift == pytest.approx(-0.6, abs=0.02)


def test_a_silence_of_the_engine_is_a_stall() -> None:
    """Without O_DIRECT a freeze is one long sample."""
    found = steadiness([*samples([1000.0] * 30), (41_000, 11_000, 1000.0), (42_000, 1000, 1000.0)])
    assert (found.verdict, found.stall_s) == (Verdict.STALLED, 10)


def test_a_late_report_of_a_drive_that_works_is_no_stall() -> None:
    """64 jobs share a slow drive, so fio's reports are late, but have all the I/Os of their time."""
    found = steadiness([(5000 * n, 5000, 5 * (95.0 + n % 3)) for n in range(1, 13)])
    assert (found.verdict, found.stall_s) == (Verdict.STEADY, 0)
    frozen = steadiness([*samples([100.0] * 30), (35_000, 5000, 100.0), (36_000, 1000, 100.0)])
    assert (frozen.verdict, frozen.stall_s) == (Verdict.STALLED, 4)


def test_a_trial_is_as_steady_as_its_least_steady_stream() -> None:
    steady, half = samples([100_000.0] * 60), samples([3000.0] * 30 + [0.0] * 30)
    assert worst([steady, half]).verdict is Verdict.STALLED
    assert worst([steady, samples([3000.0] * 20)]).verdict is Verdict.STEADY
    assert worst([]).verdict is Verdict.TOO_SHORT


def test_hostile_lengths_cost_nothing() -> None:
    assert steadiness([(2**31 - 1 - n, 2**31 - 1 - n, 1.0) for n in range(2000)]).seconds == MAX_SECONDS
    assert steadiness([(500, 100_000, 5.0), *samples([1000.0] * 20)]).verdict is not None


def test_samples_are_put_by_their_offset() -> None:
    """One sample of 1.5 s lies in two seconds; both directions of a sample add up; the last 200 ms are left out."""
    rates = per_second([(1500, 1500, 150), (2200, 700, 70), (1500, 1500, 15), (2200, 700, 7)])
    assert list(rates) == pytest.approx([110.0, 110.0])
