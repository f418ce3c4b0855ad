"""Findings about seconds and counters fire on a recording that shows them, and stay silent on one that does not."""

from dataclasses import replace

import numpy as np
import pytest

from webapp.analysis.answer import Finding, FindingKind
from webapp.analysis.findings import recorded_findings
from webapp.analysis.findings.recorded import RecordedPoint, RecordedTrial, Seconds, TimedFinding
from worker.contract.items import SensorKind

K = FindingKind
S = SensorKind
LENGTH = 60


def constant(value: float) -> Seconds:
    return np.full(LENGTH, float(value))


def rates(*stretches: tuple[int, float], seed: int = 0) -> Seconds:
    """Seconds at rates, with 2 % noise."""
    values = np.concatenate([np.full(seconds, float(rate)) for seconds, rate in stretches])
    noisy: Seconds = values * np.random.default_rng(seed).normal(1, 0.02, len(values))
    return noisy


Sensors = dict[str, dict[str, float | Seconds]]


def a_trial(number: int = 1, iops: Seconds | None = None, sensors: Sensors | None = None) -> RecordedTrial:
    """By default a steady trial on a busy device. `sensors`: by kind, then by name."""
    given = {
        (kind, name): values if isinstance(values, np.ndarray) else constant(values)
        for kind, named in (sensors or {}).items()
        for name, values in named.items()
    }
    return RecordedTrial(
        number=number, iops=rates((LENGTH, 1000), seed=number) if iops is None else iops,
        utilisation=constant(99), queue_depth=constant(30), sensors=given,
    )  # fmt: skip


def of(*trials: RecordedTrial, **changes: object) -> tuple[TimedFinding, ...]:
    """The findings of one point."""
    return recorded_findings([replace(RecordedPoint(name="randwrite", trials=trials, depth=32), **changes)])  # type: ignore[arg-type]


def the_one(found: tuple[TimedFinding, ...], kind: FindingKind) -> Finding:
    assert [each.finding.kind for each in found] == [kind]
    return found[0].finding


def test_a_steady_trial_says_nothing() -> None:
    assert of(a_trial(1), a_trial(2), a_trial(3)) == ()
    assert recorded_findings([]) == ()


# ---- settling


def test_a_burst_that_falls_has_a_settled_level() -> None:
    trials = [a_trial(n, rates((12, 41_000), (48, 9_800), seed=n)) for n in (1, 2, 3)]
    found = of(*trials)
    finding = the_one(found, K.SETTLED)
    assert finding.value == pytest.approx(9_800, rel=0.01)
    assert finding.size == pytest.approx(np.log(41 / 9.8), rel=0.02)
    assert not finding.single
    assert [(each.trial, each.from_s, each.to_s) for each in found[0].seconds] == [(n, 12, 60) for n in (1, 2, 3)]
    assert finding.sentence.startswith("randwrite: the first 12 s ran at 41.")


def test_a_fall_in_several_steps_settles_at_the_last_one() -> None:
    finding = the_one(of(a_trial(1, rates((10, 40_000), (15, 20_000), (35, 8_000)))), K.SETTLED)
    assert finding.value == pytest.approx(8_000, rel=0.01)
    assert finding.single


def test_the_interval_covers_the_settled_level_and_the_sentence_is_short() -> None:
    finding = the_one(of(a_trial(1, rates((12, 41_000), (48, 9_800)))), K.SETTLED)
    assert len(finding.sentence.split()) <= 25


def test_a_fall_that_not_all_trials_show_is_not_stated() -> None:
    assert of(a_trial(1, rates((12, 41_000), (48, 9_800))), a_trial(2), a_trial(3)) == ()


def test_a_fall_within_the_noise_is_not_stated() -> None:
    noise = np.random.default_rng(3).normal(1, 0.3, LENGTH)
    assert of(a_trial(1, rates((30, 1200), (30, 1000)) * noise)) == ()


def test_a_trial_that_falls_to_its_end_has_not_settled() -> None:
    falling = [a_trial(n, np.linspace(2000, 500, LENGTH) * rates((LENGTH, 1), seed=n)) for n in (1, 2)]
    found = of(*falling)
    assert the_one(found, K.UNSETTLED).size > np.log(1.5)
    assert {each.trial for each in found[0].seconds} == {1, 2}


def test_a_second_without_a_sample_is_no_fall() -> None:
    missing = rates((12, 41_000), (48, 9_800))
    missing[30] = np.nan
    assert of(a_trial(1, missing)) == ()


# ---- stalls


def stalled(number: int, *lengths: int) -> RecordedTrial:
    iops = rates((LENGTH, 1000), seed=number)
    for place, length in enumerate(lengths):
        iops[10 + 20 * place : 10 + 20 * place + length] = 0
    return a_trial(number, iops)


def test_seconds_near_zero_are_a_stall() -> None:
    found = of(stalled(1, 4))
    finding = the_one(found, K.STALLED)
    assert finding.value == 4
    assert finding.size == pytest.approx(4 / 60)
    assert [(each.trial, each.from_s, each.to_s) for each in found[0].seconds] == [(1, 10, 14)]


def test_a_single_second_counts_only_if_there_is_another() -> None:
    assert of(stalled(1, 1)) == ()
    assert the_one(of(stalled(1, 1, 1)), K.STALLED).value == 1.0


def test_seconds_at_a_tenth_of_the_speed_are_no_stall() -> None:
    slow = rates((LENGTH, 1000))
    slow[10:13] = 100
    assert not [each for each in of(a_trial(1, slow)) if each.finding.kind is K.STALLED]


def test_a_noisy_trial_has_no_stalls() -> None:
    iops = np.exp(np.random.default_rng(1).normal(7, 1.0, LENGTH))
    iops[10:13] = 0.04 * np.median(iops)
    assert not [each for each in of(a_trial(1, iops)) if each.finding.kind is K.STALLED]


def test_the_kernel_s_errors_of_the_same_seconds_are_counted() -> None:
    beside, elsewhere = replace(stalled(1, 4), errors=(11, 15)), replace(stalled(1, 4), errors=(40,))
    assert "the kernel logged 2 errors" in the_one(of(beside), K.STALLED).sentence
    assert "kernel" not in the_one(of(elsewhere), K.STALLED).sentence


def test_the_device_s_counters_say_where_the_io_waited() -> None:
    above = replace(stalled(1, 4), utilisation=np.where(stalled(1, 4).iops == 0, 0.0, 99.0))
    assert the_one(of(stalled(1, 4)), K.STALLED).sentence.endswith("in flight.")
    assert the_one(of(above), K.STALLED).sentence.endswith("the device was idle.")


# ---- processor


def on_cores(number: int, *work: float, used: float = 60, irq: float = 0, steal: float | None = None) -> RecordedTrial:
    """Cores with this work in percent, of which `irq` are interrupts."""
    names = [f"cpu{core}" for core in range(len(work))]
    sensors: Sensors = {
        S.CPU_USER: dict.fromkeys(names, 0.0),
        S.CPU_SYSTEM: {name: each - irq for name, each in zip(names, work, strict=True)},
        S.CPU_IRQ: dict.fromkeys(names, irq),
    }
    if steal is not None:
        sensors[S.CPU_STEAL] = dict.fromkeys(names, steal)
    return replace(a_trial(number, sensors=sensors), utilisation=constant(used), queue_depth=constant(3))


def test_a_busy_core_in_front_of_an_idle_device_is_the_bottleneck() -> None:
    finding = the_one(of(*(on_cores(n, 20, 10, 15, 100) for n in (1, 2, 3))), K.BOTTLENECK)
    assert finding.value == pytest.approx(40)
    assert finding.sentence == (
        "randwrite: the host was the limit: core 3 was at 100 % while the device was idle 40 % of the time and held "
        "3.00 of 32 I/Os."
    )


def test_other_trials_may_have_another_busy_core() -> None:
    assert "one core" in the_one(of(on_cores(1, 99, 10), on_cores(2, 10, 99)), K.BOTTLENECK).sentence


def test_all_cores_together_are_a_bottleneck_too() -> None:
    assert "both cores were at 92 %" in the_one(of(on_cores(1, 94, 90)), K.BOTTLENECK).sentence


def test_interrupts_are_named() -> None:
    assert "with interrupts" in the_one(of(on_cores(1, 99, 99, irq=70)), K.BOTTLENECK).sentence


@pytest.mark.parametrize(
    "trials",
    [
        (on_cores(1, 20, 100, used=95),),  # the device is busy
        (on_cores(1, 20, 85),),  # no core is
        (on_cores(1, 20, 100), on_cores(2, 20, 60)),  # not in each trial
        (replace(on_cores(1, 20, 100), utilisation=constant(np.nan)),),  # the device is not counted
        (a_trial(1),),  # without sensors
    ],
)
def test_there_is_no_bottleneck_otherwise(trials: tuple[RecordedTrial, ...]) -> None:
    assert of(*trials) == ()


def test_time_that_the_hypervisor_took_is_stated() -> None:
    assert the_one(of(on_cores(1, 40, 40, steal=25), on_cores(2, 40, 40, steal=15)), K.STOLEN).value == 20
    assert of(on_cores(1, 40, 40, steal=25), on_cores(2, 40, 40, steal=1)) == ()


# ---- memory, heat


def test_buffered_writes_that_stay_in_memory_are_stated() -> None:
    """60 s of 1,000 blocks of 4 KiB are 242 MB after the first second; half of them wait."""
    waiting = np.linspace(0, 121e6, LENGTH)
    trial = a_trial(1, constant(1000), {S.MEMORY: {"dirty": waiting, "writeback": 0.0}})
    finding = the_one(of(trial, buffered=True, block_bytes=4096), K.IN_MEMORY)
    assert finding.value == pytest.approx(50, abs=0.5)
    assert of(trial, buffered=False, block_bytes=4096) == ()
    assert of(a_trial(1, sensors={S.MEMORY: {"dirty": 3e9}}), buffered=True, block_bytes=4096) == ()


def hot(*degrees: float, name: str = "nvme0n1") -> Sensors:
    """Readings every 10 s."""
    values = np.full(LENGTH, np.nan)
    values[4::10] = degrees
    return {S.TEMPERATURE: {name: values}}


def test_a_fall_of_a_hot_drive_is_stated_instead_of_the_fall() -> None:
    fall = rates((28, 20_000), (32, 10_000))
    finding = the_one(of(a_trial(1, fall, hot(45, 60, 72, 74, 75, 75))), K.HEAT)
    assert finding.value == 72
    assert finding.size == pytest.approx(np.log(2), rel=0.02)


@pytest.mark.parametrize(
    "sensors",
    [hot(40, 42, 44, 45, 45, 45), hot(70, 70, 71, 71, 71, 71), hot(45, 60, 72, 80, 85, 88),
     hot(45, 60, 72, 74, 75, 75, name="Package id 0"), hot(45, 60, 72, 74, 75, 75, name="Core 0")],
)  # fmt: skip
def test_a_fall_of_a_drive_that_is_cool_or_as_warm_as_before_is_only_a_fall(
    sensors: Sensors,
) -> None:
    the_one(of(a_trial(1, rates((28, 20_000), (32, 10_000)), sensors)), K.SETTLED)


# ---- several points


def test_points_that_show_the_same_are_one_finding_at_the_clearest_point() -> None:
    few = RecordedPoint(name="4 KiB", trials=(on_cores(1, 100, used=70),))
    clear = RecordedPoint(name="8 KiB", trials=(on_cores(2, 100, used=50),))
    (found,) = recorded_findings([few, clear])
    assert found.finding.value == pytest.approx(50)
    assert [each.trial for each in found.seconds] == [2, 1]
