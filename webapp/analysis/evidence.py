"""A finding with what shows it without its page: a key, the query of the comparison that has the evidence, and a small
picture of it."""

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from hashlib import blake2b
from itertools import takewhile
from urllib.parse import urlencode

import numpy as np
from numpy.typing import NDArray

from webapp.analysis.answer import (
    CeilingMatch,
    Comparison,
    Finding,
    FindingKind,
    Mark,
    Struct,
    TrialSeconds,
    after,
    once,
)
from webapp.analysis.dimensions import MATCHED
from webapp.analysis.experiments import Experiment
from webapp.analysis.findings.curves import place_of
from webapp.analysis.findings.recorded import RecordedTrial, TimedFinding
from webapp.results.metrics import IOPS, METRICS

MOST_LINES, MOST_LEVELS = 8, 64  # of a picture
TIME = "Time"  # label of x of a trial over its seconds
MOST_TIMED_LINES = 3  # trials are drawn over each other
MOST_SECONDS = 50  # stretches of evidence
AT_A_LEVEL = (FindingKind.OUTLIER, FindingKind.GAP, FindingKind.CLIFF)  # another level is another finding
_OF_RATIOS = (
    FindingKind.DIFFERENCE, FindingKind.EQUAL, FindingKind.UNCERTAIN, FindingKind.CHANGED, FindingKind.UNCHANGED,
)  # fmt: skip
_PER_BLOCK = {"bytes_per_s": 1, "iops": -1}  # power of the block size that makes it of the other rate

Pairs = Sequence[tuple[str, str]]


class Line(Struct, frozen=True, kw_only=True):
    """One series. `values` has one for each level of the picture, null where nothing was measured."""

    name: str
    values: tuple[float | None, ...]
    first: int | None  # of the levels that are evidence; null: none are
    last: int | None


class Picture(Struct, frozen=True, kw_only=True):
    """Series over the levels of x: values of the metric in its unit, or ratios to the baseline."""

    metric: str  # key
    metric_label: str
    x_label: str
    levels: tuple[str, ...]
    ordered: bool  # the levels are places on an axis, so that a line may connect them
    ratios: bool
    lines: tuple[Line, ...]
    ceilings: tuple[CeilingMatch, ...] = ()  # known ones at the value of the finding


class Review(Struct, frozen=True, kw_only=True):
    """What a person thinks of a finding."""

    verdict: str  # confirmed | dismissed
    by: str  # user name; "" if the person was deleted
    at: datetime
    reason: str


class RunFinding(Struct, frozen=True, kw_only=True):
    """A finding of a run."""

    run: int  # its number
    title: str  # of its plan
    targets: tuple[str, ...]  # of the run, as host/target
    at: datetime | None  # when the run ended; null: it is open
    key: str  # the same for the same subject in another run of the plan
    kind: FindingKind
    sentence: str
    claim: str  # the sentence without its interval and its doubt
    certainty: str  # its interval and repeats; "" if the claim states them
    doubt: str  # what else may explain it: may be drift: …; ""
    query: str  # of the comparison that shows it, as in the address of Explore or of `GET /api/v1/compare`
    size: float  # of the effect, as the absolute value of ln(ratio)
    single: bool  # from values that were measured once
    caution: str  # what else differs between the compared levels; ""
    picture: Picture | None  # null if there are too many levels to draw, or the finding is not about series
    seconds: tuple[TrialSeconds, ...] = ()  # of trials that are evidence, the clearest first; () for whole charts
    next: Experiment | None = None  # null: the finding is certain, or its plan cannot be changed so
    review: Review | None = None

    @property
    def is_dismissed(self) -> bool:
        return self.review is not None and self.review.verdict == "dismissed"


@dataclass(frozen=True)
class Source:
    """The run that measured."""

    run: int  # its number
    title: str
    targets: tuple[str, ...]
    at: datetime | None

    @property
    def pair(self) -> tuple[str, str]:
        """Of its results, in an address."""
        return "run", str(self.run)


def with_evidence(
    source: Source,
    question: Pairs,
    made: Comparison,
    finding: Finding,
    *,
    caution: str = "",
    experiment: Experiment | None = None,
) -> RunFinding:
    """`question`: pairs of the address without the results. `caution`: of what series show against the baseline."""
    of_ratios = finding.kind in _OF_RATIOS
    return RunFinding(
        run=source.run,
        title=source.title,
        targets=source.targets,
        at=source.at,
        key=_key(made, finding, question),
        kind=finding.kind,
        **(finding if of_ratios else once(finding)).texts,
        query=urlencode([source.pair, *question]),
        size=finding.size,
        single=finding.single,
        caution=caution if of_ratios else "",
        picture=picture_of(made, finding),
        next=experiment,
    )


def with_seconds(
    source: Source, target: str, timed: TimedFinding, trials: Sequence[RecordedTrial], *, named: bool
) -> RunFinding:
    """`trials`: those of the evidence and others; the first ones of the evidence are drawn. `named`: the sentence says
    which target it is about."""
    finding = timed.finding
    return RunFinding(
        run=source.run,
        title=source.title,
        targets=source.targets,
        at=source.at,
        key=digest_of([finding.kind.value, target]),
        kind=finding.kind,
        **after(target if named else "", once(finding).texts),
        query=urlencode([source.pair]),
        size=finding.size,
        single=finding.single,
        caution="",
        picture=_timed_picture(timed, trials),
        seconds=timed.seconds[:MOST_SECONDS],
    )


def _key(made: Comparison, finding: Finding, question: Pairs) -> str:
    subject = [sorted(question), finding.about, *place_of_evidence(made, finding)]
    return digest_of(subject)


def digest_of(subject: Sequence[object]) -> str:
    return blake2b(json.dumps(subject).encode(), digest_size=12).hexdigest()


def place_of_evidence(made: Comparison, finding: Finding) -> tuple[str, tuple[tuple[str, str], ...], str]:
    """The kind, the marked series as keys of chart and series, and the level of a finding at one level."""
    panels = [(made.panels[mark.panel], mark.series) for mark in finding.marks]
    series = {(panel.key, panel.series[place].key) for panel, place in panels}
    at = made.levels[finding.level].key if finding.kind in AT_A_LEVEL and finding.level is not None else ""
    return finding.kind.value, tuple(sorted(series)), at


def picture_of(made: Comparison, finding: Finding) -> Picture | None:
    """The marked series, then the others of their charts. None if there are no marks or too many levels. A level
    without a place on the axis, such as a size that is not stated, comes last, and is left out unless it is evidence.
    """
    if not finding.marks or len(made.levels) > MOST_LEVELS:
        return None
    marks = {(mark.panel, mark.series): mark for mark in finding.marks}
    panels = dict.fromkeys(panel for panel, _ in marks)
    others = [(panel, index) for panel in panels for index in range(len(made.panels[panel].series))]
    places = list(dict.fromkeys([*marks, *others]))[:MOST_LINES]
    ratios = finding.kind in _OF_RATIOS
    if ratios:
        places = [place for place in places if place in marks]
    metric = METRICS.get(finding.about, METRICS.get(made.metric))
    count = sum(1 for _ in takewhile(lambda level: place_of(level) is not None, made.levels))
    ordered = made.x != MATCHED and count > 1 and all(mark.last < count for mark in finding.marks)
    levels = made.levels[:count] if ordered else made.levels
    return Picture(
        metric=metric.key if metric else made.metric,
        metric_label=metric.label if metric else made.metric_label,
        x_label=made.x_label,
        levels=tuple(level.text for level in levels),
        ordered=ordered,
        ratios=ratios,
        lines=tuple(
            _line(made, finding, panel, index, marks.get((panel, index)), len(levels)) for panel, index in places
        ),
        ceilings=finding.matches,
    )


def _line(made: Comparison, finding: Finding, panel: int, index: int, mark: Mark | None, levels: int) -> Line:
    """`levels`: how many of the first ones are drawn."""
    series = made.panels[panel].series[index]
    power = _PER_BLOCK.get(finding.about, 0) if finding.about != made.metric else 0
    values: list[float | None] = [None] * len(made.levels)
    for cell in series.cells:
        if finding.kind in _OF_RATIOS:
            values[cell.level] = cell.against_baseline.ratio.value if cell.against_baseline else None
        else:
            values[cell.level] = cell.summary.mean * (made.levels[cell.level].number or 1) ** power
    names = [made.panels[panel].name, series.name if len(made.panels[panel].series) > 1 else ""]
    return Line(
        name=": ".join(filter(None, names)),
        values=tuple(None if value is None else float(f"{value:.4g}") for value in values[:levels]),
        first=mark.first if mark else None,
        last=mark.last if mark else None,
    )


def _timed_picture(timed: TimedFinding, trials: Sequence[RecordedTrial]) -> Picture | None:
    """IOPS over time, the mean of each bin. None if a trial is shorter than two bins."""
    by_number = {trial.number: trial for trial in trials}
    stretches = {each.trial: each for each in reversed(timed.seconds)}  # the clearest of each trial
    shown = [stretches[number] for number in dict.fromkeys(each.trial for each in timed.seconds)][:MOST_TIMED_LINES]
    longest = max(len(by_number[each.trial].iops) for each in shown)
    width = math.ceil(longest / MOST_LEVELS)
    count = math.ceil(longest / width) if longest else 0
    if count < 2:
        return None
    return Picture(
        metric=IOPS.key, metric_label=IOPS.label, x_label=TIME, ordered=True, ratios=False,
        levels=tuple(f"{index * width} s" for index in range(count)),
        lines=tuple(
            Line(
                name=f"Trial {each.trial}", values=_binned(by_number[each.trial].iops, width, count),
                first=each.from_s // width, last=min((each.to_s - 1) // width, count - 1),
            )
            for each in shown
        ),
    )  # fmt: skip


def _binned(rates: NDArray[np.float64], width: int, count: int) -> tuple[float | None, ...]:
    full = np.pad(rates, (0, width * count - len(rates)), constant_values=np.nan).reshape(count, width)
    return tuple(float(np.nanmean(each)) if not np.isnan(each).all() else None for each in full)
