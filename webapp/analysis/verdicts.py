"""Judge a run by its baseline run, row by row. Pure.

A row is a metric at one cell, or the geometric mean over the cells. Its ratio is the run by the baseline run, with the
95 % interval of `analysis.claims`. The limit is the ratio that the tolerance allows: 0.95 for IOPS and 5 %, 1.10 for
a latency and 10 %.

    passes          the whole interval is on the good side of the limit
    fails           the whole interval is on the bad side, also after the correction for the number of rows
    unclear         otherwise: the interval contains the limit, a cell has fewer than 3 repeats or no value

With `single_values`, a cell with fewer than 3 repeats on a side is judged by its values alone, like hardware in an
acceptance test: it fails if the ratio is beyond the limit, and else passes. Such a row has no interval. It says on
which side of the limit the two measured values are, and does not claim that the systems differ: a second measurement
may have another outcome. It does not count for the mean.

A run fails if a row fails, and passes if all rows pass: then each row is tested at its full level (R. L. Berger:
Multiparameter hypothesis testing and acceptance sampling, Technometrics 24, 1982). If no row is worse than its limit,
any row fails with a probability of at most 5 %: one half for means and one for cells, each corrected by Holm's method
(`analysis.claims`). The interval covers the variation of repeats. Variation between runs has to fit into the tolerance.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from statistics import geometric_mean

from webapp.analysis.cells import BUCKET_WIDTH, NOT_COMPARED, PERCENTILES, Measured
from webapp.analysis.claims import EACH, MIN_BLOCKS, Contrast, Pair, contrast, holm
from webapp.core.statistics import Ratio, tail
from webapp.results.metrics import METRICS, Metric
from worker.contract.packing import LAST_BUCKET_NS

Cell = tuple[str, str]  # point key and direction
Cells = Mapping[Cell, Measured]


class Outcome(StrEnum):
    """From the most to the least serious."""

    FAILS = "fails"
    UNCLEAR = "unclear"
    PASSES = "passes"


LABELS = {Outcome.FAILS: "Fails", Outcome.UNCLEAR: "Unclear", Outcome.PASSES: "Passes"}
NOT_MEASURED = "not measured, or without a valid value of this metric"
NO_VALUES = "the baseline has no values of this metric"
NO_CONTRAST = "a value is 0"
CONTAINS_LIMIT = "the interval contains the limit"
TOO_FEW = f"a verdict needs {MIN_BLOCKS} on both sides"
ONLY_A_BOUND = "a percentile above 17 s is only a lower bound"
COARSE = f"the histogram cannot tell the ratio from the limit: its steps are {100 * BUCKET_WIDTH:.1f} %"
ONE_VALUE_EACH = "one value on each side, no interval"
ROUNDING = 1e-9  # of a ratio: a value exactly at the limit passes
MAY_BE_CHANCE = "worse than the limit, but that may be chance among so many rows"


@dataclass(frozen=True)
class Row:
    """`baseline` and `value` are geometric means over the repeats.

    `cell` is None for the mean over `cells` cells."""

    metric: Metric
    cell: Cell | None
    cells: int
    tolerance: float  # percent
    limit: float  # ratio
    baseline: float | None
    value: float | None
    ratio: Ratio | None
    outcome: Outcome
    why: str  # if it is unclear, or judged without an interval
    single_values: bool = False  # judged by the values alone

    @property
    def not_measured(self) -> bool:
        return self.why == NOT_MEASURED

    @property
    def too_few(self) -> bool:
        """Unclear because a side has too few repeats."""
        return self.why.endswith(TOO_FEW)


@dataclass(frozen=True)
class _Test:
    """A row before the correction. Without a contrast it is judged by its values, or unclear, and `why`."""

    metric: Metric
    cell: Cell | None
    tolerance: float
    pairs: Sequence[Pair]
    baseline: float | None
    value: float | None
    contrast: Contrast | None = None
    why: str = ""
    single_values: bool = False

    @property
    def limit(self) -> float:
        return limit_of(self.metric, self.tolerance)

    def _excess(self) -> float:
        """How far the ratio is beyond the limit, as a logarithm; below 0 on the good side."""
        assert self.contrast is not None
        beyond = self.contrast.value - math.log(self.limit)
        return beyond if self.metric.lower_is_better else -beyond

    def p_worse(self) -> float:
        """One-sided p-value of "not worse than the limit"."""
        return 1.0 if self.contrast is None else _tail(self.contrast, self._excess())

    def p_fine(self) -> float:
        """One-sided p-value of "worse than the limit"."""
        return 1.0 if self.contrast is None else _tail(self.contrast, -self._excess())

    def row(self, corrected: float) -> Row:
        if self.single_values and self.baseline and self.value:
            ratio: Ratio | None = Ratio(self.value / self.baseline, None, None)
            outcome, why = self._by_values(self.value / self.baseline), self.why
        else:
            ratio = self.contrast.ratio if self.contrast else None
            outcome, why = self._judged(ratio, corrected)
        return Row(
            self.metric, self.cell, len(self.pairs), self.tolerance, self.limit, self.baseline, self.value, ratio,
            outcome, why, self.single_values,
        )  # fmt: skip

    def _by_values(self, ratio: float) -> Outcome:
        beyond = ratio / self.limit - 1
        worse = beyond > ROUNDING if self.metric.lower_is_better else beyond < -ROUNDING
        return Outcome.FAILS if worse else Outcome.PASSES

    def _judged(self, ratio: Ratio | None, corrected: float) -> tuple[Outcome, str]:
        if ratio is None or ratio.low is None or ratio.high is None:
            return Outcome.UNCLEAR, self.why
        if ratio.low <= self.limit <= ratio.high:
            return Outcome.UNCLEAR, CONTAINS_LIMIT
        if self._excess() < 0:
            return (Outcome.PASSES, "") if self.p_fine() <= EACH else (Outcome.UNCLEAR, CONTAINS_LIMIT)
        return (Outcome.FAILS, "") if corrected <= EACH else (Outcome.UNCLEAR, MAY_BE_CHANCE)


def _tail(one: Contrast, excess: float) -> float:
    return tail(one.freedom, excess / math.sqrt(one.variance)) if one.variance else float(excess <= 0)


def limit_of(metric: Metric, tolerance: float) -> float:
    """The ratio that a tolerance in percent allows."""
    return 1 + tolerance / 100 if metric.lower_is_better else 1 - tolerance / 100


def judge(
    run: Mapping[str, Cells],
    baseline: Mapping[str, Cells],
    tolerances: Mapping[str, float],
    *,
    single_values: bool = False,
) -> tuple[Row, ...]:
    """Rows by metric: the mean, then the cells of the baseline run. `run` and `baseline` have cells by metric key.

    With `single_values`, there is no mean if no cell has enough repeats for it.
    """
    means: list[_Test] = []
    cells: list[_Test] = []
    for key, tolerance in tolerances.items():
        metric, theirs, mine = METRICS[key], baseline.get(key, {}), run.get(key, {})
        tests = [
            _cell_test(metric, tolerance, cell, mine.get(cell), known, single_values=single_values)
            for cell, known in theirs.items()
        ]
        repeated = [test for test in tests if test.contrast]
        cells += tests or [_Test(metric, None, tolerance, (), None, None, why=NO_VALUES)]
        if len(tests) > 1 and (repeated or not single_values):
            means.append(_mean_test(metric, tolerance, repeated))
    rows = [*_rows(means), *_rows(cells)]
    order = {key: place for place, key in enumerate(tolerances)}
    return tuple(sorted(rows, key=lambda row: (order[row.metric.key], row.cell is not None)))


def _rows(tests: Sequence[_Test]) -> list[Row]:
    corrected = holm([test.p_worse() for test in tests])
    return [test.row(p) for test, p in zip(tests, corrected, strict=True)]


def _cell_test(
    metric: Metric, tolerance: float, cell: Cell, mine: Measured | None, theirs: Measured, *, single_values: bool
) -> _Test:
    reference = theirs.mean
    if mine is None:
        return _Test(metric, cell, tolerance, (), reference, None, why=NOT_MEASURED)
    pair, value = (mine, theirs), mine.mean
    counts = len(mine.values), len(theirs.values)
    if not mine.same_kind(theirs):
        return _Test(metric, cell, tolerance, [pair], reference, value, why=NOT_COMPARED)
    if not (mine.positive and theirs.positive):
        return _Test(metric, cell, tolerance, [pair], reference, value, why=NO_CONTRAST)
    if min(counts) >= MIN_BLOCKS:
        return _Test(metric, cell, tolerance, [pair], reference, value, contrast([pair]))
    if not single_values:
        return _Test(metric, cell, tolerance, [pair], reference, value, why=_too_few(min(counts)))
    if why := _too_coarse(pair, value / reference, metric, tolerance):
        return _Test(metric, cell, tolerance, [pair], reference, value, why=why)
    why = _no_interval(*counts)
    return _Test(metric, cell, tolerance, [pair], reference, value, why=why, single_values=True)


def _too_coarse(pair: Pair, ratio: float, metric: Metric, tolerance: float) -> str:
    """Why percentiles of a histogram cannot be judged by their values. Printed values count as they were printed."""
    if metric.column not in PERCENTILES:
        return ""
    if any(LAST_BUCKET_NS in one.values.values() for one in pair):
        return ONLY_A_BOUND
    is_histogram = all(one.step == BUCKET_WIDTH for one in pair)
    return COARSE if is_histogram and abs(math.log(ratio / limit_of(metric, tolerance))) < BUCKET_WIDTH else ""


def _too_few(repeats: int) -> str:
    return f"{repeats} repeat{'' if repeats == 1 else 's'}; {TOO_FEW}"


def _no_interval(mine: int, theirs: int) -> str:
    if mine == theirs == 1:
        return ONE_VALUE_EACH
    return f"number of values: baseline {theirs}, candidate {mine}; no interval"


def _mean_test(metric: Metric, tolerance: float, tests: Sequence[_Test]) -> _Test:
    """Over the cells that have enough repeats on both sides."""
    if not tests:
        return _Test(metric, None, tolerance, (), None, None, why="no cell has enough repeats on both sides")
    pairs = [pair for test in tests for pair in test.pairs]
    mine, theirs = (geometric_mean([pair[side].mean for pair in pairs]) for side in (0, 1))
    return _Test(metric, None, tolerance, pairs, theirs, mine, contrast(pairs))


def outcome_of(rows: Sequence[Row]) -> Outcome:
    """Of the whole run. Without rows nothing can be said."""
    outcomes = {row.outcome for row in rows}
    return next((each for each in Outcome if each in outcomes), Outcome.UNCLEAR)
