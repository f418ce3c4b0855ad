"""Compute the panels of a comparison from grouped results: cells, ratios and sentences."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from copy import copy

from msgspec.structs import replace

from webapp.analysis.answer import BaselineRatio, Cell, Conclusion, Level, Panel, Sentence, Series
from webapp.analysis.cells import CellKey, Grouped, Measured, is_clear, mean_in
from webapp.analysis.claims import (
    MIN_BLOCKS,
    NOTHING,
    Claim,
    Side,
    Where,
    by_parts,
    by_range,
    listed,
    may_be_modes,
    opposites,
)
from webapp.analysis.conclusions import Conclusions, Extremes, PointGroup, PointResult, SeriesResult, no_ratio
from webapp.analysis.dimensions import MATCHED, known_dimension, label_of
from webapp.analysis.words import RangeStatement, Sentences, Statement, form_of, interval, label_in_sentence, shown
from webapp.core.formatting import ratio as as_ratio
from webapp.core.statistics import Ratio, Summary, summarise
from webapp.plans.points import differing, in_order
from webapp.results.metrics import LOAD_BESIDE, Metric
from webapp.results.reading.doubts import doubts, kept_up
from webapp.results.reading.rows import TEST, ResultRow, places_of_several_tests

WIDE = 0.5  # half the interval over the mean; a wider interval is a doubt
_LISTED = 3
_NAMED = 6  # further ones of which the place is said


class Table:
    """All ratios of a table have one form."""

    def __init__(
        self,
        *,
        metric: Metric,
        x: str,
        baselines: Mapping[str, Level],
        grouped: Grouped,
        cells: Mapping[CellKey, Measured],
        conclusions: Conclusions,
        form: str,
        margin: float,
        where: Where | None = None,
        is_cheap: bool = False,
        other_rate: Metric | None = None,
    ) -> None:
        """`baselines`: panel key -> series. `is_cheap`: the levels of the series are applied anew for each trial.
        `other_rate` is stated beside the metric."""
        self._metric, self._x, self._baselines, self._margin = metric, x, baselines, margin
        self._grouped, self._cells, self._conclusions = grouped, cells, conclusions
        self._is_cheap, self._other_rate = is_cheap, other_rate
        self._points_at = (
            by_parts(grouped.x) if x == MATCHED else by_range(grouped.x, label_in_sentence(x, label_of(x)))
        )
        self._where = where or self._points_at
        self._repeated = any(len(cell.values) > 1 for cell in cells.values())
        self.form = form or form_of([point.ratio.value for point in conclusions.points.values()])

    def with_baseline(self, baseline: Level) -> "Table":
        """The same table, whose sentences have another name of the baseline of all charts."""
        named = copy(self)
        named._baselines = dict.fromkeys(self._baselines, baseline)
        return named

    def panel(self, panel: Level, scaling: tuple[str, ...]) -> Panel:
        used = {key[1] for key in self._cells if key[0] == panel.key}
        series = [self._series(panel, each) for each in self._grouped.series if each.key in used]
        return Panel(key=panel.key, name=panel.text, scaling=scaling, series=tuple(self._without_points(panel, series)))

    def _without_points(self, panel: Level, series: Sequence[Series]) -> Iterator[Series]:
        """One sentence for all series that share no point with the baseline, at the first of them."""
        names = [each.name for each in series if not each.is_baseline and self._is_without_points(panel, each)]
        for each in series:
            if len(names) < 2 or each.name not in names or each.is_baseline:
                yield each
            elif each.name == names[0]:
                texts = Sentence(
                    (f"{listed(names)} share no test points with {self._baselines[panel.key].text}",)
                ).texts
                yield replace(each, sentence=texts["sentence"], headline=texts["sentence"], claim=texts["claim"])
            else:
                yield replace(each, sentence="", headline="", claim="")

    def _is_without_points(self, panel: Level, series: Series) -> bool:
        return (panel.key, series.key) not in self._conclusions.series and panel.key not in self._conclusions.extremes

    def _series(self, panel: Level, series: Level) -> Series:
        keys = [(panel.key, series.key, x.key) for x in self._grouped.x]
        cells = tuple(self.cell(key, level) for level, key in enumerate(keys) if key in self._cells)
        result = self._conclusions.series.get((panel.key, series.key))
        extremes = self._conclusions.extremes.get(panel.key)
        sentences = self.sentences(panel, series)
        return Series(
            key=series.key,
            name=series.text,
            is_baseline=series.key == self._baselines[panel.key].key,
            cells=cells,
            sentence=sentences.page,
            conclusion=sentences.conclusion,
            headline=sentences.headline["sentence"],
            against_baseline=self._overall(result) if result else None,
            points=len(result.points) if result else 0,
            order=extremes.order if extremes else result.order if result else "",
            claim=sentences.headline["claim"],
            certainty=sentences.headline["certainty"],
            doubt=sentences.headline["doubt"],
        )

    # ---- against the baseline

    def _overall(self, result: SeriesResult) -> BaselineRatio | None:
        if result.ratio is None:
            return None
        claim = NOTHING if self.differs_both_ways(result) else result.claim
        return self._against(result.ratio, claim, result.n, result.order, modes=self._may_be_modes(result))

    def _may_be_modes(self, result: SeriesResult) -> bool:
        """Of the claim of a sentence: the mean over all points, or each side of `_opposites`."""
        compared = len(self._grouped.series) - 1
        if result.ratio is not None and not self.differs_both_ways(result):
            applications = result.n * (len(result.points) if self._is_cheap else 1)
            return may_be_modes(applications, compared, result.ratio.value)
        sides = [point for _, point in self._opposite_groups(result)] or [
            self._conclusions.points[key] for key in result.points
        ]
        return any(may_be_modes(point.n, compared, point.ratio.value) for point in sides if point.claim.different)

    def differs_both_ways(self, result: SeriesResult) -> bool:
        """Whether some points are certainly higher and others lower: their mean is neither better nor worse, nor
        equal."""
        return self._opposites(result) is not None

    def _against(self, ratio: Ratio, claim: Claim, n: int, order: str, *, modes: bool = False) -> BaselineRatio:
        conclusion = claim.conclusion(order, modes=modes)
        is_certain = conclusion is Conclusion.DIFFERENT
        return BaselineRatio(
            ratio=ratio,
            conclusion=conclusion,
            better=(ratio.value > 1) is not self._metric.lower_is_better if is_certain else None,
            equal=claim.equal,
            p=claim.p,
            n=n,
            text=shown(ratio.value, self.form),
            interval_text=interval(ratio, self.form),
        )

    def sentences(self, panel: Level, series: Level) -> Sentences:
        result = self._conclusions.series.get((panel.key, series.key))
        extremes = self._conclusions.extremes.get(panel.key)
        if extremes:
            return self._range(extremes).sentences
        if series.key == self._baselines[panel.key].key:
            return Sentences()
        return self._statement(panel, series, result).sentences

    def _statement(self, panel: Level, series: Level, result: SeriesResult | None) -> Statement:
        inside = [self._conclusions.points[key] for key in result.points] if result else []
        return Statement(
            name=series.text,
            baseline=self._baselines[panel.key].text,
            metric=self._metric,
            form=self.form,
            margin=self._margin,
            ratio=result.ratio if result else None,
            claim=result.claim if result else NOTHING,
            n=result.n if result else 0,
            points=len(inside),
            common=len(inside) + len(result.apart) if result else 0,
            total=self._total(panel, series),
            apart=tuple(self._apart(result.apart)) if result else (),
            different=tuple(point.ratio.value for point in inside if point.claim.different),
            measured=tuple(point.ratio.value for point in inside),
            order=result.order if result else "",
            compared=self._conclusions.sentences,
            opposites=self._opposites(result) if result else None,
            single=self._single(result) if result else None,
            modes=self._may_be_modes(result) if result else False,
        )

    def _single(self, result: SeriesResult) -> tuple[str, str] | None:
        """The values of baseline and series, if each has one point, measured once."""
        if len(result.points) != 1 or result.apart:
            return None
        (key,) = result.points
        pair = (self._cells[key[0], self._baselines[key[0]].key, key[2]].values, self._cells[key].values)
        if any(len(values) != 1 for values in pair):
            return None
        before, after = (self._metric.format(next(iter(values.values()))) for values in pair)
        return before, after

    def _opposites(self, result: SeriesResult) -> tuple[Side, Side] | None:
        """None too if the series are equal within the margin, and so is each side."""
        if groups := self._opposite_groups(result):
            sides: tuple[Side, Side] | None = _side_of(groups, higher=True), _side_of(groups, higher=False)
        else:
            points = {key[2]: self._conclusions.points[key] for key in result.points}
            sides = opposites({key: (point.ratio.value, point.claim) for key, point in points.items()}, self._where)
        if sides is None or not result.claim.equal:
            return sides
        widest = max(max(ratio, 1 / ratio) for side in sides for ratio in side.ratios)
        return sides if widest > 1 + self._margin else None

    def _opposite_groups(self, result: SeriesResult) -> list[tuple[PointGroup, PointResult]]:
        """The levels of a factor at which the difference has both directions for certain; of several factors, the one
        with the largest difference. Empty if there is none."""
        by_factor: dict[int, list[tuple[PointGroup, PointResult]]] = {}
        for group, at_level in result.groups:
            if at_level.claim.different:
                by_factor.setdefault(group.place, []).append((group, at_level))
        ranges = [
            (max(of_factor, key=_ratio_of), min(of_factor, key=_ratio_of), of_factor)
            for of_factor in by_factor.values()
        ]
        opposite = [each for each in ranges if _ratio_of(each[1]) < 1 < _ratio_of(each[0])]
        return max(opposite, key=lambda each: _ratio_of(each[0]) / _ratio_of(each[1]))[2] if opposite else []

    def _total(self, panel: Level, series: Level) -> int:
        """Points that the series or the baseline has."""
        keys = (series.key, self._baselines[panel.key].key)
        return sum(any((panel.key, key, x.key) in self._cells for key in keys) for x in self._grouped.x)

    def _apart(self, keys: Sequence[CellKey]) -> Iterator[str]:
        """`×0.01 at 4 KiB`, and the reasons why other points have no ratio."""
        without: dict[str, list[CellKey]] = {}
        for key in keys:
            if reason := self._no_ratio(key):
                without.setdefault(reason, []).append(key)
        for reason, places in without.items():
            yield f"not compared at {self._places(places)}: {reason}"
        far = [key for key in keys if not self._no_ratio(key)]
        for key in far[:_LISTED]:
            result = self._conclusions.points[key]
            few = f" (n = {result.n})" if result.n < MIN_BLOCKS else ""
            yield f"{as_ratio(result.ratio.value)} at {self._places([key])}{few}"
        if rest := far[_LISTED:]:
            ratios = [self._conclusions.points[key].ratio.value for key in rest]
            ends = dict.fromkeys(as_ratio(each) for each in (min(ratios), max(ratios)))
            where = self._places(rest[:_NAMED])
            yield f"{' to '.join(ends)} at {where}{f' and {len(rest) - _NAMED} others' if len(rest) > _NAMED else ''}"

    def _no_ratio(self, key: CellKey) -> str:
        return no_ratio(self._cells[key], self._cells[key[0], self._baselines[key[0]].key, key[2]])

    def _places(self, keys: Sequence[CellKey]) -> str:
        mine = {key[2] for key in keys}
        return self._points_at(mine, {x.key for x in self._grouped.x} - mine)

    def _range(self, extremes: Extremes) -> RangeStatement:
        label = label_in_sentence(self._x, label_of(self._x))
        levels = {x.key: x.text if is_clear(x) else f"{label} {x.text}" for x in self._grouped.x}
        means = [self._metric.format(self._cells[key].mean) for key in (extremes.low, extremes.high)]
        return RangeStatement(
            metric=self._metric,
            margin=self._margin,
            low=means[0],
            low_at=levels[extremes.low[2]],
            high=means[1],
            high_at=levels[extremes.high[2]],
            claim=extremes.claim,
            n=extremes.n,
            points=extremes.points,
            order=extremes.order,
            modes=may_be_modes(extremes.n, extremes.points - 1, extremes.ratio),
        )

    # ---- cells

    def cell(self, key: CellKey, level: int) -> Cell:
        measured, rows, at_point = self._cells[key], self._grouped.cells[key], self._conclusions.points.get(key)
        summary = summarise(list(measured.values.values()), measured.step)
        result = self._conclusions.series.get((key[0], key[1]))
        against = None
        if result and result.points == (key,):  # the sentence is about this point
            against = self._overall(result)
        elif at_point:
            against = self._against(at_point.ratio, at_point.claim, at_point.n, result.order if result else "")
        return Cell(
            level=level,
            summary=summary,
            text=self._metric.format(summary.mean),
            spread_text=self._spread(summary),
            doubts=tuple(_doubts(summary, measured, rows, repeated=self._repeated)),
            against_baseline=against,
            other_rate=self._in_other_rate(rows),
            results=len(rows),
            lagging=sum(not kept_up(row) for row in rows),
            lagging_beside=sum(LOAD_BESIDE in row.metrics for row in rows),
        )

    def _in_other_rate(self, rows: Sequence[ResultRow]) -> str:
        metric = self._other_rate
        if metric is None or any(metric.of(row) is None for row in rows):
            return ""
        text = metric.format(mean_in(rows, metric))
        return f"{text} {metric.label}" if metric.shown_as == "iops" else text

    def _spread(self, summary: Summary) -> str:
        if summary.low is None or summary.high is None:
            return f"n = {summary.n}"
        return f"{self._metric.format(summary.low)} to {self._metric.format(summary.high)}"


def _ratio_of(group: tuple[PointGroup, PointResult]) -> float:
    return group[1].ratio.value


def _side_of(groups: Sequence[tuple[PointGroup, PointResult]], *, higher: bool) -> Side:
    same_side = [group for group in groups if (_ratio_of(group) > 1) is higher]
    points = sum(len(group.keys) for group, _ in same_side)
    return Side(listed([group.text for group, _ in same_side]), tuple(map(_ratio_of, same_side)), points)


def _doubts(summary: Summary, measured: Measured, rows: Sequence[ResultRow], *, repeated: bool) -> Iterator[str]:
    """`repeated`: some point was measured more than once. Else a note says that none has an interval."""
    reasons = dict.fromkeys(row.why_invalid for row in rows if row.invalid)
    if reasons:
        yield f"includes invalid results: {'; '.join(reasons)}"
    mixed = _mixed(rows)
    if not measured.balanced:
        yield f"not comparable: repeats mix {mixed or 'targets'}"
    elif mixed:
        yield f"mean over {mixed}"
    if len(measured.kinds) > 1:
        yield "mixes total and completion latency"
    counted = Counter(doubt.short for row in rows for doubt in doubts(row))
    yield from (f"{doubt} ({count} of {len(rows)})" for doubt, count in counted.items())
    if not measured.positive:
        yield zeros_text(summary)
    if measured.zeros_inside:
        yield f"0 in {measured.zeros_inside} of {len(rows)} results: the mean includes it"
    if summary.n == 1 and repeated:
        yield "n = 1: its spread is unknown"
    if summary.high is not None and summary.high > (1 + WIDE) * summary.mean:
        yield f"noisy (×/÷ {as_ratio(summary.high / summary.mean).removeprefix('×')})"


def zeros_text(summary: Summary) -> str:
    """`0 in 1 of 3 repeats: the value is the mean of the others`."""
    zeros = sum(value == 0 for value in summary.values)
    return f"0 in {zeros} of {summary.n} repeats" + (": the value is the mean of the others" if summary.mean else "")


def _mixed(rows: Sequence[ResultRow]) -> str:
    """What differs between the points of one cell, `Jobs 1, 4`, or between equal points of an import, `Test of the tool
    Read, Re-read`."""
    points = list({row.point_key: row.point for row in rows}.values())
    if len(points) < 2:
        several = places_of_several_tests(rows, lambda _: "")
        return f"{label_of(TEST)} {_levels(TEST, rows)}" if several else ""
    return (
        "; ".join(f"{label_of(name)} {_levels(name, rows)}" for name in in_order(differing(points))) or "several points"
    )


def _levels(name: str, rows: Sequence[ResultRow]) -> str:
    levels = {level.key: level for level in map(known_dimension(name).level, rows)}
    texts = [level.text for level in sorted(levels.values(), key=lambda level: level.order)]
    return ", ".join(texts[:_LISTED]) + (" …" if len(texts) > _LISTED else "")
