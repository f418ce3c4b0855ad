"""Noise of a storage benchmark, as deviations of ln(value) for trials in the order in which they ran.

Sizes are those seen on real drives: repeats within 1 to 3 %, slow phases of 10 to 30 %. `white` and `shared` have
known intervals, so coverage is measured with them. The others are what time does to a run.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Noise = NDArray[np.float64]


@dataclass(frozen=True)
class Trials:
    """Trials in the order in which they ran. Trials of one level in one block that ran together have one segment.
    Trials that differ in the compared factor alone have one point."""

    segments: Sequence[int]
    points: Sequence[int]

    def __len__(self) -> int:
        return len(self.segments)


Model = Callable[[np.random.Generator, Trials], Noise]


def white(chance: np.random.Generator, trials: Trials, sd: float = 0.02) -> Noise:
    return chance.normal(0, sd, len(trials))


def shared(chance: np.random.Generator, trials: Trials) -> Noise:
    """Each block and level has an error of its own, which all its trials share: the split plot."""
    each = chance.normal(0, 0.03, max(trials.segments) + 1)
    made: Noise = each[np.asarray(trials.segments)] + white(chance, trials, 0.01)
    return made


def quiet(chance: np.random.Generator, trials: Trials) -> Noise:
    return white(chance, trials, 0.01)


def uneven(chance: np.random.Generator, trials: Trials) -> Noise:
    """Half of the points have ten times the noise of the others."""
    made: Noise = white(chance, trials, 1.0) * np.where(np.asarray(trials.points) % 2, 0.005, 0.05)
    return made


def walk(chance: np.random.Generator, trials: Trials) -> Noise:
    return np.cumsum(chance.normal(0, 0.01, len(trials))) + white(chance, trials, 0.005)


def autocorrelated(chance: np.random.Generator, trials: Trials) -> Noise:
    """AR(1) with a coefficient of 0.8 from trial to trial and a standard deviation of 3 %."""
    shocks = chance.normal(0, 0.03 * np.sqrt(1 - 0.8**2), len(trials))
    made = np.empty(len(trials))
    made[0] = chance.normal(0, 0.03)
    for n in range(1, len(trials)):
        made[n] = 0.8 * made[n - 1] + shocks[n]
    return made


def episodes(chance: np.random.Generator, trials: Trials) -> Noise:
    """A few slow phases of one to six trials, 30 % slower."""
    made = white(chance, trials, 0.01)
    for _ in range(int(chance.poisson(1.5))):
        begin = int(chance.integers(0, len(trials)))
        made[begin : begin + int(chance.integers(1, 7))] += np.log(0.7)
    return made


def warm_up(chance: np.random.Generator, trials: Trials) -> Noise:
    """The first trials are up to 20 % faster; the effect fades exponentially over a sixth of the run."""
    at = np.arange(len(trials)) / (len(trials) / 6)
    made: Noise = 0.2 * np.exp(-at) + white(chance, trials, 0.005)
    return made


def drift(chance: np.random.Generator, trials: Trials) -> Noise:
    """A linear change of 10 % over the run."""
    return np.linspace(0, -0.1, len(trials)) + white(chance, trials, 0.005)


def bimodal(chance: np.random.Generator, trials: Trials) -> Noise:
    """Every trial is in one of two modes by chance; the slower one is 20 % slower."""
    made: Noise = np.log(0.8) * chance.integers(0, 2, len(trials)) + white(chance, trials, 0.003)
    return made


def modes(chance: np.random.Generator, trials: Trials) -> Noise:
    """Each application of a level is in one of two stable modes until the next one; the slower is 20 % slower."""
    each = np.log(0.8) * chance.integers(0, 2, max(trials.segments) + 1)
    made: Noise = each[np.asarray(trials.segments)] + white(chance, trials, 0.003)
    return made


def periodic(chance: np.random.Generator, trials: Trials) -> Noise:
    """A disturbance of 5 % that comes back every 3 to 40 trials, such as garbage collection or a timer of the host."""
    period, phase = chance.uniform(3, 40), chance.uniform(0, 2 * np.pi)
    wave = 0.05 * np.sin(2 * np.pi * np.arange(len(trials)) / period + phase)
    made: Noise = wave + white(chance, trials, 0.005)
    return made


def bucketed(chance: np.random.Generator, trials: Trials) -> Noise:
    """Little noise; the page compares a percentile that is a histogram bucket."""
    return white(chance, trials, 0.004)


MODELS: Mapping[str, Model] = {
    "quiet": quiet,
    "white": white,
    "shared": shared,
    "uneven": uneven,
    "random walk": walk,
    "AR(1) 0.8": autocorrelated,
    "episodes": episodes,
    "warm-up": warm_up,
    "drift": drift,
    "bimodal": bimodal,
    "modes": modes,
    "periodic": periodic,
    "bucketed": bucketed,
}
