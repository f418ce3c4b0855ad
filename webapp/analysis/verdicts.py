"""Judge a run by its baseline run, row by row. Pure.

A row is a metric at one cell, or the geometric mean over the cells of a chart: a pattern and a direction. Its ratio is
the run by the baseline run, with the 95 % interval of `analysis.conclusions`: a verdict asks the question of the page
Explore whose series are the two sides, whose charts are the patterns, with reads and writes of a mix apart, and whose
margin is the tolerance; x is everything else. So `conclusion` and `sentence` of a row are those of that page, and a row
fails only if the page says that the sides differ. The limit is the ratio that the tolerance allows: 0.95 for IOPS and
5 %, 1.10 for a latency and 10 %.

    passes          the whole interval is on the good side of the limit
    fails           the whole interval is on the bad side, also after the correction for the number of rows, and the
                    sides differ after the correction of the page
    unclear         otherwise: the interval contains the limit, a cell has fewer than 3 repeats or no value

With `single_values`, a cell with fewer than 3 repeats on a side is judged by its values alone, like hardware in an
acceptance test: it fails if the ratio is beyond the limit, and else passes. Such a row has no interval. It says on
which side of the limit the two measured values are, and does not claim that the systems differ: a second measurement
may have another outcome. It does not count for the mean.

A run fails if a row fails, and passes if all rows pass: then each row is tested at its full level (R. L. Berger:
Multiparameter hypothesis testing and acceptance sampling, Technometrics 24, 1982). If no row is worse than its limit,
any row fails with a probability of at most 5 %: one half for means and one for cells, each corrected by Holm's method
(`analysis.claims`). The interval covers the variation of repeats. Variation between runs has to fit into the tolerance:
if one side always ran before the other, `order` of a row says so, and a difference may be drift.
"""

import math
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from statistics import geometric_mean

from webapp.analysis.answer import Conclusion, Level
from webapp.analysis.cells import BUCKET_WIDTH, PERCENTILES, CellKey, Grouped, Measured
from webapp.analysis.claims import MIN_BLOCKS, OF_POINTS, UNKNOWN_ORDER, Contrast, ContrastTest, Pair, holm, listed
from webapp.analysis.conclusions import GroupedCells, PointResult, conclusions, no_ratio
from webapp.analysis.dimensions import MATCHED, label_of
from webapp.analysis.table import Table
from webapp.analysis.trial_metrics import metric_named
from webapp.analysis.words import in_sentence, order_notes, two_speeds
from webapp.core.statistics import Ratio, tail
from webapp.results.metrics import Metric, Missing
from worker.contract.packing import LAST_BUCKET_NS

Cell = tuple[str, str]  # point key and direction
Cells = Mapping[Cell, Measured]
Mixed = Mapping[Cell, Sequence[str]]  # names of dimensions


class Outcome(StrEnum):
    """From the most to the least serious."""

    FAILS = "fails"
    UNCLEAR = "unclear"
    PASSES = "passes"


LABELS = {Outcome.FAILS: "Fails", Outcome.UNCLEAR: "Unclear", Outcome.PASSES: "Passes"}
NO_VALUES = "the baseline has no values of this metric"
CONTAINS_LIMIT = "the interval contains the limit"
TOO_FEW = f"a verdict needs {MIN_BLOCKS} on both sides"
TOO_FEW_FOR_MEAN = "no cell has enough repeats on both sides"
ONLY_A_BOUND = "a percentile above 17 s is only a lower bound"
COARSE = f"the histogram cannot tell the ratio from the limit: its steps are {100 * BUCKET_WIDTH:.1f} %"
ONE_VALUE_EACH = "one value on each side, no interval"
ROUNDING = 1e-9  # of a ratio: a value exactly at the limit passes
MAY_BE_CHANCE = "worse than the limit, but that may be chance among so many rows"
MAY_BE_DRIFT = "may be drift: one side always ran before the other"
MAY_BE_DRIFT_OF_IMPORTS = "may be drift: imported files do not state when they were measured"


@dataclass(frozen=True)
class Row:
    """`baseline` and `value` are geometric means over the repeats.

    `cell` is None for the mean over `cells` cells of a chart. `conclusion` is what Explore claims of the row."""

    metric: Metric
    cell: Cell | None
    direction: str  # "" if the baseline has no values of the metric
    cells: int
    tolerance: float  # percent
    limit: float  # ratio
    baseline: float | None
    value: float | None
    ratio: Ratio | None
    outcome: Outcome
    why: str  # if it is unclear, judged without an interval, or fails and may be drift
    single_values: bool = False  # judged by the values alone
    conclusion: Conclusion = Conclusion.NONE
    repeats: int = 0  # on the smaller side; 0 without a ratio that has an interval
    order: str = ""  # claims.same_order: the candidate always ran before or after the baseline
    sentence: str = ""  # of Explore, about all cells of this chart; on the first of its rows
    missing: Missing | None = None  # why the candidate has no number
    mixes: Sequence[str] = ()  # dimensions of which a side has several levels here, and therefore no number
    chart: str = ""  # the pattern of a mean, if there are several

    @property
    def over(self) -> str:
        """What a mean is over: `4 cells, randread, read`"""
        return ", ".join(filter(None, (f"{self.cells} cells", self.chart, self.direction)))

    @property
    def too_few(self) -> bool:
        """Unclear because a side has too few repeats."""
        return self.why.endswith(TOO_FEW)


@dataclass(frozen=True)
class _Test:
    """A row before the correction. Without `tested` it is judged by its values, or unclear, and `why`."""

    metric: Metric
    tolerance: float
    cell: Cell | None
    direction: str
    cells: int
    baseline: float | None
    value: float | None
    why: str = ""
    single_values: bool = False
    tested: ContrastTest | None = None
    differs: bool = False  # after the correction of the page
    conclusion: Conclusion = Conclusion.NONE
    order: str = ""
    sentence: str = ""
    missing: Missing | None = None
    mixes: Sequence[str] = ()
    chart: str = ""

    @property
    def limit(self) -> float:
        return limit_of(self.metric, self.tolerance)

    def _excess(self, contrast: Contrast) -> float:
        """How far the ratio is beyond the limit, as a logarithm; below 0 on the good side."""
        beyond = contrast.value - math.log(self.limit)
        return beyond if self.metric.lower_is_better else -beyond

    def p_worse(self) -> float:
        """One-sided p-value of "not worse than the limit"."""
        return 1.0 if self.tested is None else _tail(self.tested.tested, self._excess(self.tested.tested))

    def row(self, corrected: float) -> Row:
        if self.single_values and self.baseline and self.value:
            ratio: Ratio | None = Ratio(self.value / self.baseline, None, None)
            outcome, why = self._by_values(self.value / self.baseline), self.why
        elif self.tested:
            ratio = self.tested.shown.ratio
            outcome, why = self._judged(ratio, self.tested.shown, corrected)
        else:
            ratio, outcome, why = None, Outcome.UNCLEAR, self.why
        return Row(
            self.metric, self.cell, self.direction, self.cells, self.tolerance, self.limit, self.baseline, self.value,
            ratio, outcome, why, self.single_values, self.conclusion,
            self.tested.shown.n if self.tested else 0, self.order, self.sentence,
            self.missing, self.mixes, self.chart,
        )  # fmt: skip

    def _by_values(self, ratio: float) -> Outcome:
        beyond = ratio / self.limit - 1
        worse = beyond > ROUNDING if self.metric.lower_is_better else beyond < -ROUNDING
        return Outcome.FAILS if worse else Outcome.PASSES

    def _judged(self, ratio: Ratio, shown: Contrast, corrected: float) -> tuple[Outcome, str]:
        if ratio.low is None or ratio.high is None or ratio.low <= self.limit <= ratio.high:
            return Outcome.UNCLEAR, CONTAINS_LIMIT
        excess = self._excess(shown)
        if excess < 0:
            return (Outcome.PASSES, "") if _tail(shown, -excess) <= OF_POINTS else (Outcome.UNCLEAR, CONTAINS_LIMIT)
        if not self.differs or corrected > OF_POINTS:
            return Outcome.UNCLEAR, MAY_BE_CHANCE
        drift = MAY_BE_DRIFT_OF_IMPORTS if self.order == UNKNOWN_ORDER else MAY_BE_DRIFT
        modes = f"may be chance: {two_speeds(shown.n)}" if self.conclusion is Conclusion.MAY_BE_MODES else ""
        return Outcome.FAILS, drift if self.order else modes


def _tail(test_contrast: Contrast, excess: float) -> float:
    return (
        tail(test_contrast.freedom, excess / math.sqrt(test_contrast.variance))
        if test_contrast.variance
        else float(excess <= 0)
    )


def limit_of(metric: Metric, tolerance: float) -> float:
    """The ratio that a tolerance in percent allows."""
    return 1 + tolerance / 100 if metric.lower_is_better else 1 - tolerance / 100


def judge(
    run: Mapping[str, Cells],
    baseline: Mapping[str, Cells],
    tolerances: Mapping[str, float],
    *,
    single_values: bool = False,
    names: tuple[str, str] = ("candidate", "baseline"),
    levels: Mapping[str, Level] | None = None,
    charts: Mapping[str, str] | None = None,
    measured: Collection[Cell] = (),
    mixed: Mapping[str, Mixed] | None = None,
    questions: int = 1,
    is_cheap: bool = False,
) -> tuple[Row, ...]:
    """Rows by metric: the means of each chart, then the cells of the baseline run. `run` and `baseline` have cells
    by metric key. `names` of both sides are for sentences. `levels` are those of x and `charts` the patterns, both by
    point key: the charts of a metric share the levels of x. `measured` has the cells of
    which the run has results, with or without a value. `mixed`, by metric key, are cells at which a side has no value,
    because it has several levels of these dimensions there. `questions` of the run that both sides are of
    (`analysis.claims`). `is_cheap`: the factor in which they differ is applied anew for each trial.

    With `single_values`, there is no mean if no cell has enough repeats for it.
    """
    means: list[_Test] = []
    cells: list[_Test] = []
    for key, tolerance in tolerances.items():
        question = _Question(
            metric_named(key), tolerance, run.get(key, {}), baseline.get(key, {}), names, levels or {}, charts or {},
            single_values, questions, is_cheap,
        )  # fmt: skip
        means += question.means()
        cells += question.cells(measured, (mixed or {}).get(key, {}))
    order = {key: place for place, key in enumerate(tolerances)}
    rows = sorted([*_rows(means), *_rows(cells)], key=lambda row: (order[row.metric.key], row.cell is not None))
    return tuple(rows)


def _rows(tests: Sequence[_Test]) -> list[Row]:
    corrected = holm([test.p_worse() for test in tests])
    return [test.row(p) for test, p in zip(tests, corrected, strict=True)]


_CANDIDATE, _BASELINE = "candidate", "baseline"  # keys of the series


class _Question:
    """One metric of both sides, as Explore compares them: a chart for each pattern and direction, two series, x is the
    rest of the point."""

    def __init__(
        self, metric: Metric, tolerance: float, mine: Cells, theirs: Cells, names: tuple[str, str],
        levels: Mapping[str, Level], charts: Mapping[str, str], single_values: bool, questions: int, is_cheap: bool,
    ) -> None:  # fmt: skip
        self._metric, self._tolerance, self._single_values = metric, tolerance, single_values
        self._mine, self._theirs = mine, theirs
        self._levels = {key: levels.get(key, Level(key, key, None)) for key, _ in (*theirs, *mine)}
        self._series, other = (Level(key, name, None) for key, name in zip((_CANDIDATE, _BASELINE), names, strict=True))
        self._charts = charts if len({charts.get(key, "") for key, _ in theirs}) > 1 else {}
        self._cells_of = Counter(map(self._panel, theirs))
        self._panels = {panel: Level(panel, panel, None) for panel in self._cells_of}
        baselines = dict.fromkeys(self._panels, other)
        x = tuple(sorted({level.key: level for level in self._levels.values()}.values(), key=lambda level: level.order))
        grouped = Grouped({}, tuple(self._panels.values()), (self._series, other), x)
        measured = {
            self._key(cell, side): cell_values
            for side, side_cells in ((_CANDIDATE, mine), (_BASELINE, theirs))
            for cell, cell_values in side_cells.items()
            if self._panel(cell) in self._panels
        }
        self._conclusions = conclusions(
            GroupedCells(grouped, measured, baselines), tolerance / 100, questions=questions
        )
        self._table = Table(
            metric=metric, x=MATCHED, baselines=baselines, grouped=grouped, cells=measured,
            conclusions=self._conclusions, form="", margin=tolerance / 100, is_cheap=is_cheap,
        )  # fmt: skip

    def _panel(self, cell: Cell) -> str:
        return ", ".join(filter(None, (self._charts.get(cell[0], ""), cell[1])))

    def _key(self, cell: Cell, side: str = _CANDIDATE) -> CellKey:
        return self._panel(cell), side, self._levels[cell[0]].key

    def means(self) -> Iterator[_Test]:
        """Of each chart with several cells: over the cells that Explore has in its mean."""
        for key, panel in self._panels.items():
            baseline_cells = [cell for cell in self._theirs if self._panel(cell) == key]
            result = self._conclusions.series.get((key, _CANDIDATE))
            if len(baseline_cells) < 2:
                continue
            point, direction = baseline_cells[0]
            chart = self._charts.get(point, "")
            if result is None or result.test is None or result.n < MIN_BLOCKS:
                if not self._single_values:
                    yield _Test(
                        self._metric, self._tolerance, None, direction, 0, None, None, why=TOO_FEW_FOR_MEAN, chart=chart
                    )
                continue
            inside = [cell for cell in baseline_cells if self._key(cell) in result.points]
            theirs, mine = (geometric_mean([side[cell].mean for cell in inside]) for side in (self._theirs, self._mine))
            sentences = self._table.sentences(panel, self._series)
            yield _Test(
                self._metric, self._tolerance, None, direction, len(inside), theirs, mine, tested=result.test,
                differs=result.claim.different and not self._table.differs_both_ways(result),
                conclusion=sentences.conclusion, order=result.order, sentence=sentences.page, chart=chart,
            )  # fmt: skip

    def cells(self, measured: Collection[Cell], mixed: Mixed) -> Iterator[_Test]:
        if not self._theirs and not mixed:
            yield _Test(self._metric, self._tolerance, None, "", 0, None, None, why=NO_VALUES)
        for cell, theirs in self._theirs.items():
            mine, result = self._mine.get(cell), self._conclusions.points.get(self._key(cell))
            if cell in mixed:
                continue
            if mine is None:
                missing = Missing.NO_VALUE if cell in measured else Missing.NOT_MEASURED
                yield _Test(
                    self._metric, self._tolerance, cell, cell[1], 0, theirs.mean, None, why=missing, missing=missing
                )
            elif result is None or result.n < MIN_BLOCKS:
                yield self._without_interval(cell, mine, theirs)
            else:
                yield self._repeated(cell, mine, theirs, result)
        for cell, names in mixed.items():
            baseline, value = (side[cell].mean if cell in side else None for side in (self._theirs, self._mine))
            why = f"a side has several levels of {listed([in_sentence(label_of(name)) for name in names])}: choose one"
            yield _Test(self._metric, self._tolerance, cell, cell[1], 0, baseline, value, why=why, mixes=names)

    def _repeated(self, cell: Cell, mine: Measured, theirs: Measured, result: PointResult) -> _Test:
        panel = self._panel(cell)
        order = self._conclusions.series[panel, _CANDIDATE].order
        is_alone = self._conclusions.series[panel, _CANDIDATE].points == (self._key(cell),)
        sentences = self._table.sentences(self._panels[panel], self._series) if is_alone else None
        return _Test(
            self._metric, self._tolerance, cell, cell[1], 1, theirs.mean, mine.mean, tested=result.test,
            differs=result.claim.different, order=order,
            conclusion=sentences.conclusion if sentences else result.claim.conclusion(order),
            sentence=sentences.page if sentences and self._cells_of[panel] == 1 else "",
        )  # fmt: skip

    def _without_interval(self, cell: Cell, mine: Measured, theirs: Measured) -> _Test:
        """Judged by the values alone, or unclear."""
        counts = len(mine.values), len(theirs.values)
        why = no_ratio(mine, theirs)
        if not why and self._single_values:
            why = _too_coarse((mine, theirs), mine.mean / theirs.mean, self._metric, self._tolerance)
        elif not why:
            why = _too_few(min(counts))
        return _Test(
            self._metric, self._tolerance, cell, cell[1], 1, theirs.mean, mine.mean, why=why or _no_interval(*counts),
            single_values=not why,
        )  # fmt: skip


def _too_coarse(pair: Pair, ratio: float, metric: Metric, tolerance: float) -> str:
    """Why percentiles of a histogram cannot be judged by their values. Printed values count as they were printed."""
    if metric.column not in PERCENTILES:
        return ""
    if any(LAST_BUCKET_NS in side.values.values() for side in pair):
        return ONLY_A_BOUND
    is_histogram = all(side.step == BUCKET_WIDTH for side in pair)
    return COARSE if is_histogram and abs(math.log(ratio / limit_of(metric, tolerance))) < BUCKET_WIDTH else ""


def _too_few(repeats: int) -> str:
    return f"{repeats} repeat{'' if repeats == 1 else 's'}; {TOO_FEW}"


def _no_interval(mine: int, theirs: int) -> str:
    if mine == theirs == 1:
        return ONE_VALUE_EACH
    return f"number of values: baseline {theirs}, candidate {mine}; no interval"


def outcome_of(rows: Sequence[Row]) -> Outcome:
    """Of the whole run. Without rows nothing can be said."""
    outcomes = {row.outcome for row in rows}
    return next((each for each in Outcome if each in outcomes), Outcome.UNCLEAR)


def limits_of(rows: Sequence[Row]) -> tuple[str, ...]:
    """What the verdict cannot say, in sentences: drift, the number of repeats, the correction."""
    tested = [row for row in rows if row.repeats]
    if not tested:
        return ()
    fewest, count = min(row.repeats for row in tested), len(tested)
    return (
        *order_notes({row.order for row in tested}),
        f"Intervals cover the variation of the repeats ({fewest} or more on each side), not that between runs.",
        f"Claims are corrected for {count} {'row' if count == 1 else 'rows'} (Holm, 5 % for any false claim); 95 % "
        "intervals are not.",
    )
