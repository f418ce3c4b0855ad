"""`make truth-statistics`: how often the pages claim a difference that does not exist.

Simulates pages where nothing differs (A/A) through the product's own expansion and comparison, under several kinds of
noise, and counts false claims; then coverage of the intervals, power, and equivalence that is found. Needs no
database. Writes its table to .build/truth-statistics.md. Status 1 if a limit is exceeded.
"""

import argparse
import os
import sys
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path

from dev.console import run_command, say, step
from dev.django_setup import set_up_without_database

RESULT = Path(".build/truth-statistics.md")
SEED = 20240501
FIGURE_PAGES = 8  # pages for coverage and power, times those of a scenario


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="make truth-statistics", description="False claims, coverage and power.")
    parser.add_argument("--pages", type=int, default=500, help="for each scenario")
    parser.add_argument("--scenarios", type=int, help="only the first ones")
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--processes", type=int, default=os.cpu_count())
    options = parser.parse_args(arguments)
    with ProcessPoolExecutor(options.processes, initializer=set_up_without_database) as pool:
        text, ok = _measure(pool, options.pages, options.scenarios, options.seed)
    RESULT.parent.mkdir(exist_ok=True)
    RESULT.write_text(text)
    say(text)
    say(f"Written to {RESULT}.")
    return 0 if ok else 1


def _measure(pool: ProcessPoolExecutor, pages: int, count: int | None, seed: int) -> tuple[str, bool]:
    set_up_without_database()
    from dev.truth.measure import NOISES, bench_figures, false_claims, figures, scenarios, until_decided_figures
    from dev.truth.report import report

    chosen = scenarios()[:count]
    with step(f"{len(chosen)} scenarios of {pages} pages"):
        claims = list(pool.map(partial(false_claims, pages=pages, seed=seed), chosen))
    with step("coverage and power"):
        found = list(figures(FIGURE_PAGES * pages, seed))
    with step("runs that repeat until decided"):
        for of_noise in pool.map(partial(until_decided_figures, pages=pages, seed=seed), NOISES):
            found += of_noise
    with step("pages of Bench"):
        for of_noise in pool.map(partial(bench_figures, pages=pages, seed=seed), NOISES):
            found += of_noise
    return report(claims, found, pages=pages, seed=seed), all(one.ok for one in claims) and all(one.ok for one in found)


if __name__ == "__main__":
    sys.exit(run_command(main))
