"""A verdict and the page Explore answer one question with one claim: simulated pairs of runs, without a database."""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from random import Random

import pytest

from webapp.analysis.answer import Conclusion, Series
from webapp.analysis.claims import UNKNOWN_ORDER
from webapp.analysis.comparing import Matching, Selected, comparison_of, grouped_for
from webapp.analysis.dimensions import MATCHED
from webapp.analysis.question import CompareQuery
from webapp.analysis.verdicts import MAY_BE_DRIFT, Outcome, Row
from webapp.plans.points import point_key
from webapp.results.metrics import METRICS
from webapp.results.reading.filter import ResultFilter
from webapp.results.reading.query import ResultQuery
from webapp.results.reading.rows import ResultRow
from webapp.tests.factories.plans import a_point
from webapp.tests.factories.results import START
from webapp.trends.two_sides import Side, judge_read

SIZES = (4096, 8192, 65536, 1048576)


@dataclass(frozen=True)
class Case:
    """Two sides with the logarithmic `effects` of the candidate at the points, the same at all if there is one.
    `drift` is a difference between runs that has nothing to do with the sides."""

    metric: str = "iops"
    noise: float = 0.01
    drift: float = 0.0
    effects: Sequence[float] = (0.0,)
    repeats: int = 3
    runs: int = 1  # of each side, in turns
    patterns: Sequence[str] = ("randread",)
    quiet: int = 0  # so many points have a tenth of the noise
    tolerance: float = 5.0  # percent


CASES = {
    "A/A": Case(),
    "A/A with drift": Case(drift=0.08),
    "A/A with noise and drift": Case(noise=0.03, drift=0.05),
    "A/A, uneven noise": Case(noise=0.05, drift=0.05, quiet=2),
    "A/A of two repeats": Case(drift=0.05, repeats=2),
    "A/A of five repeats": Case(repeats=5, drift=0.06),
    "A/A, hardly any tolerance": Case(repeats=5, drift=0.004, tolerance=0.1),
    "A/A of latencies, two directions": Case(metric="latency_mean", drift=0.08, patterns=("randread", "randwrite")),
    "A/A of two patterns of a direction": Case(noise=0.03, drift=0.05, patterns=("read", "randread")),
    "hardly slower, four patterns": Case(
        noise=0.04, effects=(-0.12,), patterns=("read", "randread", "write", "randwrite")
    ),
    "slower": Case(effects=(-0.2,)),
    "hardly slower": Case(effects=(-0.07,), noise=0.02),
    "faster": Case(effects=(0.2,)),
    "slower, in turns": Case(effects=(-0.2,), runs=4, drift=0.01),
    "faster and slower": Case(effects=(-0.2, -0.2, 0.2, 0.2)),
    "one point far away": Case(effects=(0.0, 0.0, 0.0, -4.0)),
}


def row_of(run: int, at: float, repeat: int, size: int, pattern: str, level: float) -> ResultRow:
    """A row with what a comparison reads; the rest is empty."""
    point = a_point(block_size=size, pattern=pattern)
    iops = 10_000 * level
    given = {
        "id": hash((run, repeat, size, pattern)), "direction": "write" if "write" in pattern else "read",
        "measured_at": START + timedelta(seconds=at), "invalid": False, "ios": round(10 * iops), "runtime_ms": 10_000,
        "iops": iops, "latency_kind": "lat", "latency_mean_ns": 1e9 / iops, "metrics": {}, "settings_changed": False,
        "device_share": None, "repeat": repeat, "point": point, "point_key": point_key(point), "trial_id": str(repeat),
        "trial": repeat, "run": run, "host": "a", "target": "nvme", "target_name": "a/nvme", "facts": {},
        "imported": 0, "reference": False, "time_known": True, "summed_ids": (), "steadiness_numbers": {},
    }  # fmt: skip
    return ResultRow(**(dict.fromkeys(ResultRow.__struct_fields__, "") | given))  # type: ignore[arg-type]


def sides_of(case: Case, chance: Random) -> tuple[list[ResultRow], list[ResultRow]]:
    """The rows of the baseline and of the candidate, whose runs have odd and even numbers."""
    sides: tuple[list[ResultRow], list[ResultRow]] = ([], [])
    for run in range(1, 2 * case.runs + 1):
        shift = chance.gauss(0, case.drift)
        for repeat in range(1, case.repeats + 1):
            for place, size in enumerate(SIZES):
                for pattern in case.patterns:
                    noise = case.noise / (10 if place < case.quiet else 1)
                    effect = 0.0 if run % 2 else case.effects[place % len(case.effects)]
                    level = math.exp(shift + effect + chance.gauss(0, noise))
                    at = 100_000.0 * run + 100 * repeat + place
                    sides[1 - run % 2].append(row_of(run, at, repeat, size, pattern, level))
    return sides


def judged(case: Case, sides: tuple[list[ResultRow], list[ResultRow]]) -> Sequence[Row]:
    theirs, mine = (Side({"run": [str(number)]}, rows, f"run {number}") for number, rows in enumerate(sides, 1))
    return judge_read(theirs, mine, {case.metric: case.tolerance}, ignored=(), single_values=False).rows


def explored(case: Case, sides: tuple[list[ResultRow], list[ResultRow]]) -> dict[str, Series]:
    """The candidate's series of each chart, by pattern."""
    query = CompareQuery(
        x=MATCHED, series=("run",), panel="pattern", metric=case.metric, baseline="1", margin=case.tolerance / 100
    )
    rows = [*sides[0], *sides[1]]
    matching = Matching(ResultQuery.of(ResultFilter()), ())
    selected = Selected(query, METRICS[case.metric], matching, tuple(rows), 0, 0, grouped_for(query, rows))
    made = comparison_of(selected)
    return {panel.key: series for panel in made.panels for series in panel.series if not series.is_baseline}


def agree(case: Case, chance: Random) -> Counter[str]:
    sides = sides_of(case, chance)
    rows, seen = judged(case, sides), Counter[str]()
    charts = explored(case, sides)
    for mean in (row for row in rows if row.cell is None):
        series = charts[mean.chart or case.patterns[0]]
        if case.repeats < 3:
            assert (mean.outcome, mean.conclusion, series.conclusion) == (Outcome.UNCLEAR, "none", "none")
            continue
        assert series.against_baseline is not None
        assert (mean.ratio, mean.cells) == (series.against_baseline.ratio, series.points)
        assert (mean.conclusion, mean.order, mean.sentence) == (series.conclusion, series.order, series.sentence)
    for series in charts.values():
        own = {row.ratio: row for row in rows if row.cell and row.ratio}
        for cell in series.cells:
            against = cell.against_baseline
            assert against is not None
            if against.n < 3:
                assert (against.better, against.equal, own) == (None, False, {})
                continue
            row = own[against.ratio]
            assert row.conclusion == against.conclusion
            assert row.outcome is not Outcome.FAILS or against.better is not True
    for row in rows:
        if row.outcome is Outcome.FAILS:
            assert row.conclusion in (Conclusion.DIFFERENT, Conclusion.MAY_BE_DRIFT)
            assert row.why == (MAY_BE_DRIFT if row.order else "")
        assert row.order != UNKNOWN_ORDER
        seen[f"{row.outcome} {row.conclusion}"] += 1
    return seen


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if case.runs == 1])
def test_a_verdict_and_explore_agree(name: str) -> None:
    chance = Random(name)
    seen = sum((agree(CASES[name], chance) for _ in range(25)), Counter[str]())
    assert not any(key.startswith(("fails none", "fails equal")) for key in seen)
    if CASES[name].drift == 0.08 or name.startswith("slower"):
        assert seen["fails may_be_drift"] > 0  # the pairs are not all alike


def test_runs_in_turns_can_tell_a_difference_from_drift() -> None:
    case = CASES["slower, in turns"]
    rows = judged(case, sides_of(case, Random(1)))
    assert {(row.outcome, row.conclusion, row.order, row.why) for row in rows} == {
        (Outcome.FAILS, Conclusion.DIFFERENT, "", "")
    }
