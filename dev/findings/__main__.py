"""`make findings`: how often findings are false, and how often a planted one is found, at its place.

Generates tables of a known truth, with 2, 5 and 10 % noise and 1, 3 or 5 repeats. Needs no database. Writes its table
to .build/findings.md. Status 1 if more than 1 % of the tables without anything to find have a false finding.
"""

import argparse
import os
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import product
from pathlib import Path
from statistics import fmean

from dev.console import run_command, say, step
from dev.django_setup import set_up_without_database

RESULT = Path(".build/findings.md")
SEED = 20261128
NOISES, REPEATS, LEVELS = (0.02, 0.05, 0.10), (1, 3, 5), (6, 8, 14)
MOST_FALSE = 0.01
OF_OTHER_MEANS = "random walk"  # a noise that moves the mean of each run: two runs of it do differ
PLATEAUS = 20_000  # for each figure


@dataclass(frozen=True)
class Combination:
    levels: int
    noise: float  # standard deviation of ln(value)
    repeats: int


@dataclass(frozen=True)
class Rates:
    """Shares of the pages."""

    false: float
    found: float
    in_place: float  # of the found ones: within one level
    kinds: Counter[str]  # of false findings


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="make findings", description="False findings, and found ones.")
    parser.add_argument("--pages", type=int, default=300, help="for each combination")
    parser.add_argument("--combinations", type=int, help="only the first ones")
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--processes", type=int, default=os.cpu_count())
    options = parser.parse_args(arguments)
    chosen = [Combination(*each) for each in product(LEVELS, NOISES, REPEATS)][: options.combinations]
    set_up_without_database()
    with (
        step(f"{len(chosen)} combinations of {options.pages} tables of each family"),
        ProcessPoolExecutor(options.processes, initializer=set_up_without_database) as pool,
    ):
        measured = list(pool.map(partial(measure, pages=options.pages, seed=options.seed), chosen))
        noises = dict(pool.map(partial(noisy_pages, pages=options.pages, seed=options.seed), _noise_names()))
        equals = list(pool.map(partial(equal_drives, pages=options.pages, seed=options.seed), _noise_names()))
        runs = list(pool.map(partial(equal_runs, pages=options.pages, seed=options.seed), _noise_names()))
        recordings = list(pool.map(partial(_recordings, pages=options.pages, seed=options.seed), _recording_noises()))
    text, most = _report(chosen, measured, options.pages)
    worst = max(noises.values())
    lines = [f"| {name} | {100 * rate:.2f} |" for name, rate in noises.items()]
    from dev.findings.ceilings import table as ceilings_table

    text = "\n".join([
        text, "", "False pages of runs without differences, with the noises of `make truth-statistics`, in percent:",
        "", "| noise | false pages |", "| --- | --- |", *lines,
    ])  # fmt: skip
    text = "\n".join([
        text, "", "Pages of four drives of one model on which one is said to stand apart, and on which the one that is "
        "10 % slower is, in percent:", "", "| noise | four equal drives | one 10 % slower |", "| --- | --- | --- |",
        *(f"| {name} | {100 * false:.2f} | {100 * right:.0f} |" for name, false, right in equals),
        "", "Runs that are said to differ from the previous run of their plan, in percent:",
        "", "| noise | equal runs | 10 % slower |", "| --- | --- | --- |",
        *(f"| {name} | {100 * false:.2f} | {100 * right:.0f} |" for name, false, right in runs),
        "", *ceilings_table(PLATEAUS, options.seed),
    ])  # fmt: skip
    text = "\n".join([text, "", *_recordings_table(recordings)])
    of_runs = [false for noise, false, _ in runs if noise != OF_OTHER_MEANS]
    of_recordings = fmean(each.false for each in recordings)
    most = max(most, worst, *(false for _, false, _ in equals), fmean(of_runs), of_recordings)
    RESULT.parent.mkdir(exist_ok=True)
    RESULT.write_text(f"{text}\n")
    say(text)
    return 0 if most <= MOST_FALSE else 1


def measure(combination: Combination, pages: int, seed: int) -> dict[str, Rates]:
    """By family."""
    from dev.findings.tables import NOTHING, PLANTED

    return {family.name: rates(family.name, combination, pages, seed) for family in (*NOTHING, *PLANTED)}


def _noise_names() -> list[str]:
    from dev.truth.measure import NOISES

    return list(NOISES)


def noisy_pages(noise: str, pages: int, seed: int) -> tuple[str, float]:
    """The noise, and the share of pages of runs, of 4 and 14 points with 2, 3 and 5 repeats, on which a finding says
    more than that nothing differs."""
    import numpy as np

    from dev.truth.pages import Scenario, page
    from webapp.analysis.answer import FindingKind

    true = (FindingKind.NO_EFFECT, FindingKind.RATIOS, FindingKind.GROWTH)
    chance, false, count = np.random.default_rng([seed, *noise.encode()]), 0, 0
    for points, repeats, factor in product((4, 14), (2, 3, 5), ("scheduler", "ioengine")):
        scenario = Scenario(noise, repeats, points, factor=factor)
        for _ in range(pages):
            made = page(scenario, chance)
            false += any(one.kind not in true for one in made.findings)
            count += 1
    return noise, false / count


def equal_drives(noise: str, pages: int, seed: int) -> tuple[str, float, float]:
    """The noise, the share of pages of four equal drives with an asymmetry, and of those with one drive that is 10 %
    slower, on which this one is named."""
    import numpy as np

    from dev.truth.pages import Scenario, page_of_drives
    from webapp.analysis.answer import FindingKind

    chance, shares = np.random.default_rng([seed, 4, *noise.encode()]), list[float]()
    for effect in (0.0, -0.1):
        named = 0
        for repeats, _ in product((3, 5), range(pages)):
            made = page_of_drives(Scenario(noise, repeats, levels=4), effect, chance)
            said = [each for each in made.findings if each.kind is FindingKind.ASYMMETRY]
            named += any(not effect or each.about.endswith(": h/none") for each in said)
        shares.append(named / (2 * pages))
    return noise, shares[0], shares[1]


def equal_runs(noise: str, pages: int, seed: int) -> tuple[str, float, float]:
    """The noise, the share of runs, of 4 points with 3 and 5 repeats, that are said to differ from an equal previous
    run, and of those that are 10 % slower."""
    import numpy as np

    from dev.truth.pages import Scenario, page_of_runs
    from webapp.analysis.answer import FindingKind
    from webapp.analysis.past_findings import claims

    chance, shares = np.random.default_rng([seed, 5, *noise.encode()]), list[float]()
    for effect in (0.0, -0.1):
        made = (page_of_runs(Scenario(noise, repeats), effect, chance) for repeats in (3, 5) for _ in range(pages))
        shares.append(fmean(any(each.kind is FindingKind.DIFFERENCE for each in claims(page)) for page in made))
    return noise, shares[0], shares[1]


@dataclass(frozen=True)
class RecordingRates:
    """Shares of the runs with one noise within trials."""

    noise: str
    repeats: int
    false: float
    found: Mapping[str, float]  # by plant


def _recording_noises() -> list[tuple[str, int]]:
    """Noises within trials, each with one and with three repeats."""
    from dev.findings.recordings import NOISES as WITHIN

    return list(product(WITHIN, (1, 3)))


def _recordings(noise: tuple[str, int], pages: int, seed: int) -> RecordingRates:
    from dev.findings.recordings import measure as measure_recordings

    return RecordingRates(*noise, *measure_recordings(*noise, pages, seed))


def _recordings_table(rates_of: Sequence[RecordingRates]) -> list[str]:
    plants = list(rates_of[0].found)
    rows = [
        [
            each.noise,
            str(each.repeats),
            f"{100 * each.false:.1f}",
            *(f"{100 * each.found[name]:.0f}" for name in plants),
        ]
        for each in rates_of
    ]
    heads = ["noise within trials", "repeats", "false", *plants]
    table = [f"| {' | '.join(row)} |" for row in (heads, ["---"] * len(heads), *rows)]
    return ["Runs with a false finding about seconds or counters, and with the planted one, in percent:", "", *table]


def rates(name: str, combination: Combination, pages: int, seed: int) -> Rates:
    import numpy as np

    from dev.findings.tables import FAMILIES, table
    from webapp.analysis.answer import FindingKind
    from webapp.analysis.findings import findings
    from webapp.results.metrics import IOPS

    measured = (FindingKind.RATIOS, FindingKind.GROWTH)  # without a claim

    family, kinds, false, found, in_place = FAMILIES[name], Counter[str](), 0, 0, 0
    chance = np.random.default_rng((seed, combination.levels, round(1000 * combination.noise), combination.repeats))
    for _ in range(pages):
        made = table(
            family, chance, levels=combination.levels, noise=combination.noise, repeats=combination.repeats
        )  # fmt: skip
        said = [one for one in findings(made.comparison, IOPS) if one.kind not in measured]
        wrong = [one.kind.value for one in said if one.kind is not family.planted and one.kind not in family.allowed]
        kinds.update(wrong)
        own = [one for one in said if one.kind is family.planted]
        places = [at for at in made.at if at is not None]
        right = bool(own) and (not places or any(abs((own[0].level or 0) - at) <= 1 for at in places))
        false, found, in_place = false + bool(wrong), found + bool(own), in_place + right
    return Rates(false / pages, found / pages, in_place / found if found else 0.0, kinds)


def _report(chosen: Sequence[Combination], measured: Sequence[dict[str, Rates]], pages: int) -> tuple[str, float]:
    """The text, and the share of false pages among all tables without anything to find, of the worst family."""
    from dev.findings.tables import NOTHING, PLANTED

    most = max(sum(rates[one.name].false for rates in measured) / len(measured) for one in NOTHING)
    lines = [f"{pages} tables for each figure.", "", "False pages, in percent:", ""]
    lines += _table(chosen, [[f"{100 * rates[one.name].false:.1f}" for one in NOTHING] for rates in measured], NOTHING)
    lines += ["", "Found / of these at its place / pages with another finding that is false, in percent:", ""]
    cells = [[_words(rates[one.name]) for one in PLANTED] for rates in measured]
    lines += _table(chosen, cells, PLANTED)
    kinds = sum((rates[one.name].kinds for rates in measured for one in NOTHING), Counter[str]())
    lines += ["", f"Worst family without anything to find: {100 * most:.2f} % of its tables (limit: 1 %)."]
    lines += [
        f"Kinds of false findings there: {', '.join(f'{kind} {n}' for kind, n in kinds.most_common()) or 'none'}."
    ]
    return "\n".join(lines), most


def _words(one: Rates) -> str:
    return f"{100 * one.found:.0f} / {100 * one.in_place:.0f} / {100 * one.false:.1f}"


def _table(chosen: Sequence[Combination], cells: Sequence[Sequence[str]], families: Sequence[object]) -> list[str]:
    heads = ["levels", "noise", "repeats", *(str(family) for family in families)]
    rows = [
        [str(one.levels), f"{100 * one.noise:g} %", str(one.repeats), *own]
        for one, own in zip(chosen, cells, strict=True)
    ]
    return [f"| {' | '.join(row)} |" for row in (heads, ["---"] * len(heads), *rows)]


if __name__ == "__main__":
    sys.exit(run_command(main))
