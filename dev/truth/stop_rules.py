"""Time against error of each stop rule, beside an oracle that knows the end of each series.

    python -m dev.truth.stop_rules

Time: of all series of a set, as a share of their full length. Error: of the mean of the window against the mean of the
full series. The oracle stops at the first second from which on the mean of all seconds so far stays within ±2 % of that
of the full series; it has no window, so a warm-up makes it late. Recorded series are those of the tests of the rules;
simulated ones have noise of 1 to 8 % and autocorrelations of 0, 0.5 and 0.8. Slow falls of drives over four hours are
simulated, too: by 10 to 50 %, to the end, or with a level after the first hour, with noise of 1 and 3 %. A late fall
begins after an hour: no rule can see it before. The minimum time is that of a plan that names none.
"""

import argparse
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from statistics import fmean

import numpy as np

from dev.console import run_command, say
from webapp.plans.values import least_runtime_s
from worker.contract.steadiness import Verdict, steadiness_of_rates
from worker.contract.workload import Confidence, Settled, SteadyRounds, StopRule
from worker.stop_rules import MIN_LOOK_S, first_window
from worker.stop_rules.tests.recorded import DATA, KINGSTON, LOOPS, read_series

ALLOWED, OFF = 0.02, 0.05
HOURS_S = 4 * 3600
RULES: Mapping[str, StopRule] = {
    **{f"confidence {percent}%": Confidence(percent=percent) for percent in (1, 2, 3, 5, 10)},
    **{f"settled {seconds}s": Settled(hold_s=seconds) for seconds in (10, 20, 60)},
    **{f"snia {seconds}s": SteadyRounds(round_s=seconds) for seconds in (5, 60)},
}
Rates = Sequence[float]


def noisy(level: "np.typing.NDArray[np.float64]", deviation: float, correlated: float, seed: int) -> list[float]:
    """The level of each second with AR(1) noise."""
    chance, wave = np.random.default_rng(seed), np.zeros(len(level))
    steps = chance.normal(0, deviation, len(level)) * (1 - correlated**2) ** 0.5
    for second in range(1, len(level)):
        wave[second] = correlated * wave[second - 1] + steps[second]
    rates: list[float] = (level * np.maximum(0.1, 1 + wave)).tolist()
    return rates


def simulated(seconds: int) -> Iterator[list[float]]:
    for seed, (percent, correlated) in enumerate(product((1, 2, 3, 4, 6, 8), (0.0, 0.5, 0.8))):
        for repeat in range(5):
            yield noisy(np.full(seconds, 10_000.0), percent / 100, correlated, 100 * seed + repeat)


AT = np.arange(HOURS_S) / HOURS_S
FALLS = {
    "to the end": AT,
    "with a level": 1 - np.exp(-16 * AT),
    "late": np.maximum(0, AT - 0.25) / 0.75,
}  # of the first speed, from 0 to 1


def falling(shape: "np.typing.NDArray[np.float64]") -> Iterator[list[float]]:
    for seed, (fall, deviation) in enumerate(product((0.1, 0.3, 0.5), (0.01, 0.03))):
        yield noisy(10_000 * (1 - fall * shape), deviation, 0.5, seed)


def sets() -> Mapping[str, list[Rates]]:
    grid = [rates for rates in read_series(DATA / "bm-flash-grid.txt").values() if len(rates) >= MIN_LOOK_S]
    return {
        "recorded, 60 s": list(KINGSTON.values()),
        "recorded on loop devices": list(LOOPS.values()),
        "recorded grid, 10 s": list(grid),
        "simulated, 60 s": list(simulated(60)),
        "simulated, 300 s": list(simulated(300)),
        "steady, 4 h": list(falling(np.zeros(HOURS_S))),
        **{f"slow falls {name}, 4 h": list(falling(shape)) for name, shape in FALLS.items()},
    }


def oracle_s(rates: Rates) -> int:
    means = np.cumsum(rates) / np.arange(1, len(rates) + 1)
    outside = np.flatnonzero(np.abs(means / means[-1] - 1) > ALLOWED)
    return max(MIN_LOOK_S, int(outside[-1]) + 2 if len(outside) else 0)


@dataclass(frozen=True)
class Row:
    """Of a rule on a set. `time`: share of the full lengths; `of_oracle`: divided by the oracle's time."""

    time: float
    of_oracle: float
    reached: int
    series: int
    largest_error: float
    off: int  # series whose window is off by more than OFF
    too_short: int  # windows that the verdict calls too short


def measured(rule: StopRule, series: Sequence[Rates]) -> Row:
    windows = [first_window(rule, rates, least_runtime_s=least_runtime_s(len(rates))) for rates in series]
    ends = [window.to_s if window else len(rates) for window, rates in zip(windows, series, strict=True)]
    inside = [(rates, rates[window.from_s : window.to_s])
              for window, rates in zip(windows, series, strict=True) if window]  # fmt: skip
    errors = [abs(fmean(part) / fmean(rates) - 1) for rates, part in inside]
    return Row(
        time=sum(ends) / sum(map(len, series)),
        of_oracle=sum(ends) / sum(map(oracle_s, series)),
        reached=len(inside),
        series=len(series),
        largest_error=max(errors, default=0.0),
        off=sum(error > OFF for error in errors),
        too_short=sum(steadiness_of_rates(part).verdict is Verdict.TOO_SHORT for _, part in inside),
    )


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m dev.truth.stop_rules", description="Time against error.")
    parser.add_argument("--rules", nargs="+", choices=list(RULES), default=list(RULES))
    options = parser.parse_args(arguments)
    heads = ("series", "rule", "reached", "time", "× the oracle's", "largest error", "> 5 % off", "too short")
    say(f"| {' | '.join(heads)} |\n|{' --- |' * len(heads)}")
    for name, series in sets().items():
        say(f"| {name} | oracle | | {sum(map(oracle_s, series)) / sum(map(len, series)):.3f} | 1.00 | | | |")
        for rule in options.rules:
            row = measured(RULES[rule], series)
            cells = (
                name, rule, f"{row.reached} of {row.series}", f"{row.time:.3f}", f"{row.of_oracle:.2f}",
                f"{row.largest_error:.1%}", f"{row.off}", f"{row.too_short}",
            )  # fmt: skip
            say(f"| {' | '.join(cells)} |")
    return 0


if __name__ == "__main__":
    sys.exit(run_command(main))
