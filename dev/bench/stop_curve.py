"""`make stop-curve`: the time and the error of stop rules on recorded series, against their full length.

The error compares the mean of a rule's window with the mean of the whole series. The table is Markdown.
"""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, median

from dev.bench.recorded_series import Recorded, series_at
from dev.console import run_command, say
from worker.contract.stopping import Confidence, Settled, SteadyRounds, StopRule
from worker.recipes.stop_rules import write
from worker.stop_rules import first_window
from worker.stop_rules.tests.recorded import DATA

FAR = 0.05
LEAST_S = (5, 10)
RULES: tuple[StopRule, ...] = (
    *(Confidence(percent=percent) for percent in (1, 2, 3, 5, 10)),
    Settled(hold_s=10), Settled(hold_s=20), SteadyRounds(round_s=2), SteadyRounds(round_s=5),
)  # fmt: skip


@dataclass(frozen=True)
class Stop:
    """One series: how long it took with a rule, and the relative error of the mean."""

    name: str
    seconds: int
    of_s: int
    error: float


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="make stop-curve", description=__doc__)
    parser.add_argument("paths", nargs="*", type=Path, metavar="PATH", default=[DATA], help="file or folder")
    parser.add_argument("--each", action="store_true", help="also show every series that is more than 5 % off")
    options = parser.parse_args(arguments)
    sources = {name: found for path in options.paths for name, found in series_at(path).items()}
    if not sources:
        parser.error("there are no series below these paths")
    for name, recorded in sources.items():
        _show(name, recorded, each=options.each)
    return 0


def _show(source: str, recorded: Recorded, *, each: bool) -> None:
    say(f"\n{source}, {len(recorded)} series\n")
    say("| rule | minimum | time | median error | largest error | more than 5 % off |")
    say("| --- | --- | --- | --- | --- | --- |")
    for rule in RULES:
        for least_s in _minima(rule):
            _row(rule, least_s, [stop(name, rates, rule, least_s) for name, rates in recorded.items()], each=each)


def _row(rule: StopRule, least_s: int, stops: Sequence[Stop], *, each: bool) -> None:
    far = [one for one in stops if abs(one.error) > FAR]
    share = sum(one.seconds for one in stops) / sum(one.of_s for one in stops)
    errors = [abs(one.error) for one in stops]
    least = f"{least_s} s" if len(_minima(rule)) > 1 else ""
    say(f"| {write(rule)} | {least} | {share:.2f} | {median(errors):.2%} | {max(errors):.1%} | {len(far)} |")
    for one in far if each else ():
        say(f"    {one.name}: {one.error:+.1%} after {one.seconds} s")


def _minima(rule: StopRule) -> tuple[int, ...]:
    return LEAST_S if isinstance(rule, Confidence) else LEAST_S[:1]


def stop(name: str, rates: list[float], rule: StopRule, least_s: int) -> Stop:
    window = first_window(rule, rates, least_runtime_s=least_s)
    if window is None:
        return Stop(name, len(rates), len(rates), 0.0)
    return Stop(name, window.to_s, len(rates), fmean(rates[window.from_s : window.to_s]) / fmean(rates) - 1)


if __name__ == "__main__":
    run_command(main)
