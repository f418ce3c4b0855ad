"""Generated recordings with a known truth: the seconds and counters of the trials of a run at one target."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from webapp.analysis.answer import FindingKind
from webapp.analysis.findings import recorded_findings
from webapp.analysis.findings.recorded import RecordedPoint, RecordedTrial
from worker.contract.items import SensorKind

K = FindingKind
POINTS, SECONDS, CORES = 12, 60, 4
Logs = NDArray[np.float64]  # ln(rate) of each second, around 0
Chance = np.random.Generator
NOISES: dict[str, Callable[[Chance], Logs]] = {
    "white 2 %": lambda chance: chance.normal(0, 0.02, SECONDS),
    "white 10 %": lambda chance: chance.normal(0, 0.10, SECONDS),
    "white 50 %": lambda chance: chance.normal(0, 0.50, SECONDS),
    "AR(1) 0.8, 3 %": lambda chance: _autocorrelated(chance, 0.03),
    "AR(1) 0.8, 10 %": lambda chance: _autocorrelated(chance, 0.10),
    "periodic 5 %": lambda chance: _periodic(chance),
    "two modes, 20 %": lambda chance: np.log(0.8) * chance.integers(0, 2, SECONDS) + chance.normal(0, 0.01, SECONDS),
    "slow seconds": lambda chance: _slow_seconds(chance),
}


def _autocorrelated(chance: Chance, sd: float) -> Logs:
    made = np.empty(SECONDS)
    made[0] = chance.normal(0, sd)
    for second in range(1, SECONDS):
        made[second] = 0.8 * made[second - 1] + chance.normal(0, sd * 0.6)
    return made


def _periodic(chance: Chance) -> Logs:
    period, phase = chance.uniform(3, 40), chance.uniform(0, 2 * np.pi)
    wave: Logs = 0.05 * np.sin(2 * np.pi * np.arange(SECONDS) / period + phase)
    return wave + chance.normal(0, 0.01, SECONDS)


def _slow_seconds(chance: Chance) -> Logs:
    """One second in thirty has a third to a tenth of the speed: garbage collection, but no stall."""
    slow = chance.random(SECONDS) < 1 / 30
    return np.where(slow, chance.uniform(np.log(0.1), np.log(0.33), SECONDS), 0.0) + chance.normal(0, 0.03, SECONDS)


Change = Callable[[RecordedTrial, Chance], RecordedTrial]


@dataclass(frozen=True)
class Plant:
    """`change` plants it in the trials of the first point. `allowed` may be said besides."""

    name: str
    kind: FindingKind
    change: Change
    allowed: frozenset[FindingKind] = frozenset()


def _fall(share: float) -> Change:
    def change(trial: RecordedTrial, chance: Chance) -> RecordedTrial:
        at = int(chance.integers(8, 40))
        return replace(trial, iops=trial.iops * np.where(np.arange(SECONDS) < at, 1.0, share))

    return change


def _stall(lengths: tuple[int, ...]) -> Change:
    def change(trial: RecordedTrial, chance: Chance) -> RecordedTrial:
        rates = trial.iops.copy()
        for place, length in enumerate(lengths):
            first = int(chance.integers(5, 20)) + 25 * place
            rates[first : first + length] *= chance.uniform(0, 0.02)
        return replace(trial, iops=rates)

    return change


def _busy_core(trial: RecordedTrial, chance: Chance) -> RecordedTrial:
    system = np.clip(chance.normal(68.5, 0.5, SECONDS), 0, 70)
    busy = {(SensorKind.CPU_SYSTEM.value, "cpu1"): system, (SensorKind.CPU_USER.value, "cpu1"): np.full(SECONDS, 30.0)}
    return replace(trial, sensors={**trial.sensors, **busy})


def _hot_fall(trial: RecordedTrial, _chance: Chance) -> RecordedTrial:
    degrees = np.full(SECONDS, np.nan)
    degrees[4::10] = [45, 60, 71, 74, 75, 75]
    fallen = replace(trial, iops=trial.iops * np.where(np.arange(SECONDS) < 28, 1.0, 0.5))
    return replace(fallen, sensors={**fallen.sensors, (SensorKind.TEMPERATURE.value, "nvme0n1"): degrees})


PLANTS = (
    Plant("fall to ×0.25", K.SETTLED, _fall(0.25)),
    Plant("fall by 30 %", K.SETTLED, _fall(0.7)),
    Plant("stall of 3 s", K.STALLED, _stall((3,))),
    Plant("two stalls of 1 s", K.STALLED, _stall((1, 1))),
    Plant("one busy core", K.BOTTLENECK, _busy_core),
    Plant("fall by half at 71 °C", K.HEAT, _hot_fall),
)


def trial(number: int, noise: str, chance: Chance) -> RecordedTrial:
    """A device that is idle for 40 % of the time, cores with some work, and a warm drive."""
    rates = np.round(np.exp(np.log(20_000) + NOISES[noise](chance)))
    shares = {SensorKind.CPU_USER: 20.0, SensorKind.CPU_SYSTEM: 45.0, SensorKind.CPU_IRQ: 8.0}
    sensors = {
        (kind.value, f"cpu{core}"): np.clip(chance.normal(mean, 5, SECONDS), 0, mean + 10)
        for core in range(CORES)
        for kind, mean in shares.items()
    }
    degrees = np.full(SECONDS, np.nan)
    degrees[4::10] = np.linspace(45, 62, len(degrees[4::10]))
    sensors[SensorKind.TEMPERATURE.value, "nvme0n1"] = degrees
    used = np.clip(chance.normal(60, 5, SECONDS), 0, 100)
    return RecordedTrial(number=number, iops=rates, utilisation=used, queue_depth=used / 50, sensors=sensors)


def points(noise: str, repeats: int, chance: Chance, plant: Plant | None = None) -> list[RecordedPoint]:
    """A run of `POINTS` points."""
    made = []
    for place in range(POINTS):
        trials = [trial(place * repeats + repeat + 1, noise, chance) for repeat in range(repeats)]
        planted = [plant.change(each, chance) for each in trials] if plant and place == 0 else trials
        made.append(RecordedPoint(name=f"Queue depth {place + 1}", trials=tuple(planted), depth=32))
    return made


def measure(noise: str, repeats: int, pages: int, seed: int) -> tuple[float, dict[str, float]]:
    """The share of runs without anything to find that have a finding, and of each plant the share of runs in which it
    is found at its point."""
    chance = np.random.default_rng([seed, repeats, *noise.encode()])
    false = sum(bool(recorded_findings(points(noise, repeats, chance))) for _ in range(pages))
    return false / pages, {
        plant.name: sum(_is_found(points(noise, repeats, chance, plant), plant) for _ in range(pages)) / pages
        for plant in PLANTS
    }


def _is_found(run: list[RecordedPoint], plant: Plant) -> bool:
    planted = {each.number for each in run[0].trials}
    made = recorded_findings(run)
    return any(each.finding.kind is plant.kind and each.seconds[0].trial in planted for each in made)
