"""Measured runs without a real difference: server, worker, fio and an unlimited loop device.

The compared factor is fio's I/O priority: `be/4` is what the kernel gives to a process without one. So the two series
are the same job, and whatever Explore claims about them is false. All noise is that of this machine.
"""

from dev.bench.figures import Figure, figure
from dev.console import say, step
from dev.demo import start
from dev.stack.temporary import installation
from dev.truth.drive import NotPossible

RUNS, REPEATS = 10, 4
SMALLEST_RUNS, SMALLEST_REPEATS = 1, 2
FACTORS = {"pattern": "randread", "block_size": "4k", "iodepth": "1, 8", "ionice": "none, be/4", "runtime": "1s"}
TARGET = "loop0"


def figures(runs: int, repeats: int) -> list[Figure]:
    """Raises NotPossible."""
    with installation("truth") as state:
        if TARGET not in {target.id for target in start.bring_up(state)}:
            raise NotPossible("there is no loop device")
        claims = [claim for number in range(1, runs + 1) for claim in _claims(number, repeats)]
    for text in claims:
        say(f"    {text}")
    name = f"claims on {runs} measured runs in which nothing differs"
    return [figure(name, "", [len(claims)], "0", met=not claims)]


def _claims(number: int, repeats: int) -> list[str]:
    """False claims of one run's pages, one for each metric."""
    from dev.bench import runs
    from dev.truth.claims import claims_of
    from webapp.analysis.comparing import compare
    from webapp.analysis.question import CompareQuery
    from webapp.results.reading.filter import ResultFilter

    with step(f"run {number}"):
        run = runs.run_to_end(f"nothing differs {number}", FACTORS, target=TARGET, repeats=repeats)
    found = []
    for metric in ("iops", "latency_p99"):
        made = compare(CompareQuery("iodepth", ("ionice",), metric=metric, results=ResultFilter(runs=(run.number,))))
        claims = claims_of(made)
        if claims.page or claims.headline:
            sentences = [series.sentence for panel in made.panels for series in panel.series if series.sentence]
            found.append(f"run {number}, {metric}: {'; '.join(sentences)}")
    return found
