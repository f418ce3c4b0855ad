"""The trend of one metric: a value for each run of a plan at a target, and the steps between runs."""

import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from statistics import fmean, geometric_mean, stdev
from uuid import UUID

from webapp.analysis.cells import BUCKET_WIDTH, PERCENTILES
from webapp.analysis.claims import Influences
from webapp.analysis.dimensions import VOLATILE, label_of_fact
from webapp.analysis.question import MARGIN
from webapp.core.statistics import student_t, tail
from webapp.results.metrics import Metric
from webapp.results.reading.content import FACTS, Point
from webapp.runs.models import Run
from webapp.trends.drift import Drift, certain, drift
from webapp.trends.run_values import Cell, History, RunHistory
from webapp.trends.steps import MIN_LEVEL, MIN_RUNS, steps

# What changed in the configuration between two runs: facts, engine version and plan version.

ENGINE_VERSION, PLAN_VERSION = "engine version", "plan version"
_DIFFERENT_EACH_TIME = VOLATILE | {"target", "device"}

RunFacts = Mapping[str, frozenset[str]]  # name -> the texts that it had in the run


@dataclass(frozen=True)
class Change:
    """`kernel.release`: 6.1.0 before, 6.12.0 after."""

    name: str
    before: str
    after: str

    @property
    def label(self) -> str:
        return label_of_fact(self.name)


def facts_of(runs: Sequence[RunHistory], keys: Set[str]) -> list[RunFacts]:
    """The facts of each run at these points. One query at most."""
    facts = FACTS.get({digest: digest for run_history in runs for digest, _ in run_history.values.observed if digest})
    made: list[RunFacts] = []
    for run_history in runs:
        texts_by_name: dict[str, set[str]] = {PLAN_VERSION: {str(run_history.run.version.number)}}
        for (digest, engine), measured in run_history.values.observed.items():
            texts = {**facts.get(digest, {}), ENGINE_VERSION: engine}
            for name, text in texts.items() if not keys.isdisjoint(measured) else ():
                if text and name not in _DIFFERENT_EACH_TIME:
                    texts_by_name.setdefault(name, set()).add(text)
        made.append({name: frozenset(texts) for name, texts in texts_by_name.items()})
    return made


def changes(runs: Iterable[RunFacts]) -> Iterator[tuple[Change, ...]]:
    """What differs in each run from the runs before, by name. A fact that a run does not state keeps its value. A fact
    that is stated for the first time is no change, because a newer worker reports more facts."""
    known: dict[str, frozenset[str]] = {}
    for facts in runs:
        names = sorted(name for name in known.keys() & facts.keys() if known[name] != facts[name])
        yield tuple(Change(name, _text(known[name]), _text(facts[name])) for name in names)
        known |= facts


def _text(texts: frozenset[str]) -> str:
    return ", ".join(sorted(texts))


INCOMPLETE, NO_VALUES = "some points have no valid value of this metric", "no valid value of this metric"
OTHER_POINTS = "measured other points"
FALSE_FALLS = 0.001  # of newest runs that are as those before them
MIN_SHARED = 0.5  # of the newest run's cells that an older run needs


@dataclass(frozen=True)
class RunName:
    pk: UUID
    number: int
    state: str  # done, cancelled or failed


@dataclass(frozen=True)
class RunValue:
    """The geometric mean over the cells. `low` and `high` are its 95 % confidence interval; None without repeats."""

    run: RunName
    at: datetime
    value: float
    low: float | None
    high: float | None
    repeats: int  # of the cell that has the fewest
    changed: tuple[Change, ...]  # since the run before
    zeros: int  # results with the value 0, which are not in `value`


@dataclass(frozen=True)
class Step:
    """From the run `after` on, the level is another one. `ratio` is the new level by the old one."""

    before: RunValue
    after: RunValue
    old_level: float
    new_level: float

    @property
    def ratio(self) -> float:
        return self.new_level / self.old_level

    @property
    def changed(self) -> tuple[Change, ...]:
        return self.after.changed


@dataclass(frozen=True)
class LeftOut:
    run: RunName
    why: str


@dataclass(frozen=True)
class CellTrend:
    """The first and the last value of one cell: geometric means of the repeats."""

    point: Point
    direction: str
    part: str  # of the plan, if several have the point
    first: float
    last: float


@dataclass(frozen=True)
class Trend:
    """Runs oldest first. `cells` are those that all these runs have; `new_cells` counts others of the newest run."""

    metric: Metric
    runs: Sequence[RunValue]
    steps: Sequence[Step]
    cells: Sequence[CellTrend]
    other_cells: int
    left_out: Sequence[LeftOut]
    invalid_results: int  # at the chosen points

    @property
    def runs_missing(self) -> int:
        """How many more runs the search for steps needs."""
        return max(0, MIN_RUNS - len(self.runs))

    @property
    def since_step(self) -> Sequence[RunValue]:
        """The runs on the last level."""
        return self.runs[self.runs.index(self.steps[-1].after) if self.steps else 0 :]

    @property
    def line(self) -> Drift | None:
        """Through the runs on the last level; None for too few."""
        return None if self.runs_missing else drift([math.log(run.value) for run in self.since_step])

    @property
    def drift(self) -> Drift | None:
        """A gradual change up to the newest run, by more than `MARGIN`, that chance does not explain."""
        found = None if self.runs_missing else certain([math.log(run.value) for run in self.since_step])
        return found if found and abs(found.change) > math.log1p(MARGIN) else None

    @property
    def is_steady(self) -> bool:
        """Whether the runs on the last level show that they did not change by more than `MARGIN`."""
        line, most = self.line, math.log1p(MARGIN)
        return line is not None and -most <= line.low and line.high <= most

    @property
    def fall(self) -> Step | None:
        """The newest run against those of its level before it, if it is worse by more than `MARGIN` and than chance
        explains. A step needs several runs on its new level, so it says nothing of the last night."""
        logs = [math.log(run.value) for run in self.since_step]
        if self.runs_missing or len(logs) <= MIN_LEVEL:
            return None
        level, change = fmean(logs[:-1]), logs[-1] - fmean(logs[:-1])
        loss = change if self.metric.lower_is_better else -change
        spread = stdev(logs[:-1]) * math.sqrt(1 + 1 / (len(logs) - 1))  # of one more run
        if loss < math.log(1 + MARGIN) or (spread and tail(len(logs) - 2, loss / spread) > FALSE_FALLS):
            return None
        return Step(self.runs[-2], self.runs[-1], math.exp(level), self.runs[-1].value)


def trend(history: History, metric: Metric, keys: Set[str], direction: str = "") -> Trend:
    """Of the points with these keys, in one direction or ("") in all. One query at most."""
    left_out: list[LeftOut] = []
    complete: list[RunHistory] = []
    for run_history in history.runs:
        why = _why_left_out(run_history, keys, direction)
        if why:
            left_out.append(LeftOut(_name(run_history.run), why))
        elif why is not None:
            complete.append(run_history)
    comparable, common = _shared(complete, keys, direction, left_out)
    changed = changes(facts_of(comparable, {key for key, *_ in common}))
    runs = [
        _value(run_history, common, metric, observed) for run_history, observed in zip(comparable, changed, strict=True)
    ]
    newest = _cells(comparable[-1], keys, direction) if comparable else set()
    return Trend(
        metric=metric,
        runs=runs,
        steps=_steps(runs),
        cells=[_cell_trend(cell, comparable, history.points) for cell in common],
        other_cells=len(newest) - len(common),
        left_out=sorted(left_out, key=lambda each: each.run.number),
        invalid_results=sum(
            _invalid(run_history, history.points.keys() - keys, direction) for run_history in history.runs
        ),
    )


def _why_left_out(run_history: RunHistory, keys: Collection[str], direction: str) -> str | None:
    """ "" if the run is complete; None if it did not plan any of these points."""
    wanted = run_history.values.planned.intersection(keys)
    measured = {key for key, *_ in _cells(run_history, keys, direction)}
    if not wanted:
        return None
    if not measured:
        return NO_VALUES
    # A point may lack the chosen direction altogether, so only points without any value count as missing.
    missing = wanted - measured if not direction else wanted - {key for key, *_ in run_history.values.cells}
    return INCOMPLETE if missing else ""


def _cells(run_history: RunHistory, keys: Collection[str], direction: str) -> set[Cell]:
    return {cell for cell in run_history.values.cells if cell[0] in keys and direction in ("", cell[1])}


def _invalid(run_history: RunHistory, others: Collection[str], direction: str) -> int:
    """Invalid results in this direction, without those at other points than the chosen ones."""
    return sum(
        count
        for (key, way), count in run_history.values.invalid.items()
        if key not in others and direction in ("", way)
    )


def _shared(
    complete: Sequence[RunHistory], keys: Collection[str], direction: str, left_out: list[LeftOut]
) -> tuple[list[RunHistory], list[Cell]]:
    """The newest run and all that share at least half of its cells; the cells that all of these have."""
    comparable: list[RunHistory] = []
    common: set[Cell] = set()
    least = 0.0
    for run_history in reversed(complete):
        cells = _cells(run_history, keys, direction)
        shared = common & cells if comparable else cells
        least = least or MIN_SHARED * len(cells)
        if len(shared) < least:
            left_out.append(LeftOut(_name(run_history.run), OTHER_POINTS))
            continue
        comparable.insert(0, run_history)
        common = shared
    order = list(comparable[-1].values.cells) if comparable else []
    return comparable, [cell for cell in order if cell in common]


def _name(run: Run) -> RunName:
    return RunName(run.pk, run.number, run.state)


def _value(run_history: RunHistory, common: Sequence[Cell], metric: Metric, changed: tuple[Change, ...]) -> RunValue:
    """The interval is that of blocks: repeats of all cells (`analysis.claims`)."""
    sums = Influences()
    logs = [
        {(run_history.run.number, repeat): math.log(value) for repeat, value in run_history.values.cells[cell].items()}
        for cell in common
    ]
    mean = math.fsum(sums.add(each, 1 / len(common)) for each in logs)
    zeros = sum(run_history.values.zeros.get(cell, 0) for cell in common)
    low = high = None
    if sums.least > 1:
        coarse = BUCKET_WIDTH / 2 if metric.column in PERCENTILES else 0.0
        half = max(student_t(sums.least - 1) * math.sqrt(sums.variance(len(sums))), coarse)
        low, high = math.exp(mean - half), math.exp(mean + half)
    return RunValue(_name(run_history.run), run_history.at, math.exp(mean), low, high, sums.least, changed, zeros)


def _steps(runs: Sequence[RunValue]) -> list[Step]:
    logs = [math.log(run.value) for run in runs]
    starts = steps(logs)
    ends = [0, *starts, len(runs)]
    levels = [math.exp(fmean(logs[start:end])) for start, end in pairwise(ends) if end > start]
    return [Step(runs[at - 1], runs[at], levels[place], levels[place + 1]) for place, at in enumerate(starts)]


def _cell_trend(cell: Cell, comparable: Sequence[RunHistory], points: Mapping[str, Point]) -> CellTrend:
    key, direction, part = cell
    first, last = (
        geometric_mean(run_history.values.cells[cell].values()) for run_history in (comparable[0], comparable[-1])
    )
    return CellTrend(points[key], direction, part, first, last)
