"""Error rates of steps, gradual changes and verdicts, by simulation. docs/how-to/trends.md has them. Reads no data."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from django.core.management.base import BaseCommand, CommandParser
from numpy.typing import NDArray

from webapp.analysis.cells import Measured
from webapp.analysis.verdicts import Cells, Outcome, judge, outcome_of
from webapp.trends.drift import certain
from webapp.trends.steps import steps

Series = NDArray[np.float64]
Draw = Callable[[np.random.Generator, int], Series]
SERIES: Mapping[str, Draw] = {
    "normal": lambda random, runs: random.normal(0, 0.01, runs),
    "two modes by chance": lambda random, runs: random.choice([0, 0.1], runs) + random.normal(0, 0.001, runs),
    "outliers (Student's t, 2 degrees of freedom)": lambda random, runs: random.standard_t(2, runs),
}
LENGTHS = (13, 20, 50, 100)
DRIFT_LENGTHS = (10, 20, 30, 60)
BURN_IN = 50  # values before the first one that counts


def _dependent(r: float) -> Draw:
    """Each deviation is r times the one before, plus chance (an autoregression of order 1)."""

    def draw(random: np.random.Generator, runs: int) -> Series:
        values: Series = random.normal(0, NOISE, BURN_IN + runs)
        for at in range(1, len(values)):
            values[at] += r * values[at - 1]
        return values[BURN_IN:]

    return draw


DEPENDENT: Mapping[str, Draw] = {f"each depends on the one before, r = {r:g}": _dependent(r) for r in (0.3, 0.5, 0.7)}
CELLS, NOISE, TOLERANCE = 14, 0.01, 5.0  # relative standard deviation of a repeat; percent


def false_steps(kind: str, *, runs: int, series: int, seed: int = 1) -> float:
    """The share of series without a change in which a step is found."""
    random = np.random.default_rng(seed)
    draw = {**SERIES, **DEPENDENT}[kind]
    return sum(bool(steps(list(draw(random, runs)))) for _ in range(series)) / series


def false_drifts(kind: str, *, runs: int, series: int, seed: int = 1) -> float:
    """The share of series without a change in which a slope is found."""
    random = np.random.default_rng(seed)
    draw = {**SERIES, **DEPENDENT}[kind]
    return sum(certain(list(draw(random, runs))) is not None for _ in range(series)) / series


def found_steps(*, size: float, before: int, after: int, series: int, seed: int = 1) -> float:
    """The share of series with a change in which exactly that step is found; the noise is 1 %."""
    random, correct = np.random.default_rng(seed), 0
    for _ in range(series):
        values = random.normal(0, NOISE, before + after)
        values[before:] += size
        correct += steps(list(values)) == [before]
    return correct / series


@dataclass(frozen=True)
class Case:
    """A run against its baseline run. Every cell is slower by `loss`; `noise` is the relative standard deviation of a
    repeat, and `between_runs` that of a whole run."""

    loss: float = 0.0
    noise: float = NOISE
    between_runs: float = 0.0
    repeats: int = 3


def outcomes(case: Case, *, pairs: int, seed: int = 1) -> Mapping[Outcome, float]:
    """The share of runs with each outcome."""
    random = np.random.default_rng(seed)
    by_pair = [_outcome(case, random) for _ in range(pairs)]
    return {outcome: by_pair.count(outcome) / pairs for outcome in Outcome}


def _outcome(case: Case, random: np.random.Generator) -> Outcome:
    theirs, mine = (_cells(case, 1 - loss, run, random) for run, loss in ((1, 0.0), (2, case.loss)))
    return outcome_of(judge({"iops": mine}, {"iops": theirs}, {"iops": TOLERANCE}))


def _cells(case: Case, level: float, run: int, random: np.random.Generator) -> Cells:
    level *= 1000 * (1 + random.normal(0, case.between_runs))
    noise = 1 + random.normal(0, case.noise, (CELLS, case.repeats))
    return {(str(place), "read"): _cell(run, level * row) for place, row in enumerate(noise)}


def _cell(run: int, values: Series) -> Measured:
    blocks = {(run, repeat): float(value) for repeat, value in enumerate(values, 1)}
    return Measured(blocks, dict.fromkeys(blocks, 0.0), 1e-6, balanced=True)


STEPS = ((-0.05, 10, 3), (-0.05, 10, 4), (-0.05, 30, 3), (-0.03, 20, 5), (-0.02, 20, 20))  # size, runs before, after
CASES = (
    Case(), Case(noise=0.03), Case(noise=0.03, repeats=10), Case(repeats=5), Case(between_runs=0.01),
    Case(between_runs=0.02), Case(between_runs=0.05), Case(loss=0.05), Case(loss=0.05, noise=0.03), Case(loss=0.08),
    Case(loss=0.10, noise=0.03),
)  # fmt: skip


class Command(BaseCommand):
    help = "Print the error rates of steps, gradual changes and verdicts in simulated series. It reads no data."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--series", type=int, default=2000, help="simulated series for each figure")

    def handle(self, *args: object, series: int, **options: object) -> None:  # noqa: ARG002 - the framework gives them
        self._false_steps(series)
        self._found_steps(series)
        self._false_drifts(series)
        self._outcomes(series)

    def _row(self, *texts: object) -> None:
        self.stdout.write(f"| {' | '.join(map(str, texts))} |")

    def _head(self, *texts: str) -> None:
        self.stdout.write("")
        self._row(*texts)
        self._row(*["---"] * len(texts))

    def _false_steps(self, series: int) -> None:
        self._head("values without a change", *(f"{runs} runs" for runs in LENGTHS))
        for kind in (*SERIES, *DEPENDENT):
            self._row(kind, *(_percent(false_steps(kind, runs=runs, series=series)) for runs in LENGTHS))

    def _false_drifts(self, series: int) -> None:
        self._head("values without a change", *(f"{runs} runs" for runs in DRIFT_LENGTHS))
        for kind in (*SERIES, *DEPENDENT):
            self._row(kind, *(_percent(false_drifts(kind, runs=runs, series=series)) for runs in DRIFT_LENGTHS))

    def _found_steps(self, series: int) -> None:
        self._head("step", "runs before", "runs after", "found at the right run")
        for size, before, after in STEPS:
            share = found_steps(size=size, before=before, after=after, series=series)
            self._row(_percent(size), before, after, _percent(share))

    def _outcomes(self, series: int) -> None:
        self._head("loss", "repeats", "noise of repeats", "variation between runs", *Outcome)
        for case in CASES:
            share_by_outcome = outcomes(case, pairs=series)
            shares = [_percent(share_by_outcome[each]) for each in Outcome]
            self._row(_percent(case.loss), case.repeats, _percent(case.noise), _percent(case.between_runs), *shares)


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"
