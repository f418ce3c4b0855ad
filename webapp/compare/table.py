"""Grouped results -> cells, ratios and sentences, as they are shown."""

from collections.abc import Iterator, Sequence

from webapp.compare.dimensions import Level, Row
from webapp.compare.grouping import Grouped, Place
from webapp.compare.sentences import against_baseline, form_of, interval, shown
from webapp.compare.statistics import Ratio, Summary, combined, ratio
from webapp.compare.structs import Cell, Panel, RatioCell, Series
from webapp.results.metrics import Metric

Summaries = dict[Place, Summary]
WIDE = 0.5  # half the interval over the mean, from which on a mean says little


def _doubts(summary: Summary, rows: Sequence[Row]) -> Iterator[str]:
    reasons = dict.fromkeys(row.invalid for row in rows if row.invalid)
    if reasons:
        yield f"holds invalid results: {'; '.join(reasons)}"
    if summary.n == 1:
        yield "measured once: nothing is known of its spread"
    elif summary.high is not None and summary.high - summary.mean > WIDE * abs(summary.mean):
        share = 100 * (summary.high - summary.mean) / abs(summary.mean) if summary.mean else 0
        yield f"repeats differ widely: the mean is known to ± {share:,.0f} % only"


class Table:
    """Cells and ratios, all ratios written in one form."""

    def __init__(self, metric: Metric, baseline: Level, grouped: Grouped, summaries: Summaries, form: str = "") -> None:
        self._metric, self._baseline, self._grouped, self._summaries = metric, baseline, grouped, summaries
        self._ratios = {place: self._ratio(place) for place in summaries if place[1] != baseline.key}
        self.form = form or form_of([one.value for one in self._ratios.values() if one is not None])

    def panel(self, panel: Level) -> Panel:
        there = [s for s in self._grouped.series if any(key[:2] == (panel.key, s.key) for key in self._summaries)]
        return Panel(key=panel.key, name=panel.text, series=tuple(self._series(panel, series) for series in there))

    def _ratio(self, place: Place) -> Ratio | None:
        baseline = self._summaries.get((place[0], self._baseline.key, place[2]))
        return ratio(self._summaries[place], baseline) if baseline else None

    def _series(self, panel: Level, series: Level) -> Series:
        places = [(panel.key, series.key, x.key) for x in self._grouped.x]
        cells = tuple(self._cell(n, place) for n, place in enumerate(places) if place in self._summaries)
        is_baseline = series.key == self._baseline.key
        pairs = [] if is_baseline else self._pairs(places)
        overall = combined(pairs)
        return Series(
            key=series.key,
            name=series.text,
            is_baseline=is_baseline,
            points=cells,
            sentence="" if is_baseline else self._sentence(series, places, pairs, overall),
            overall=self._ratio_cell(overall),
        )

    def _pairs(self, places: Sequence[Place]) -> list[tuple[Summary, Summary]]:
        """This series and the baseline, at each place where both were measured."""
        known = self._summaries
        both = [(known.get(place), known.get((place[0], self._baseline.key, place[2]))) for place in places]
        return [(mine, theirs) for mine, theirs in both if mine and theirs]

    def _sentence(
        self,
        series: Level,
        places: Sequence[Place],
        pairs: Sequence[tuple[Summary, Summary]],
        overall: Ratio | None,
    ) -> str:
        single = [one for place in places if (one := self._ratios.get(place)) is not None]
        repeats = min((min(mine.n, theirs.n) for mine, theirs in pairs), default=0)
        return against_baseline(
            name=series.text,
            baseline=self._baseline.text,
            metric=self._metric,
            overall=overall,
            single=single,
            repeats=repeats,
            form=self.form,
        )

    def _cell(self, level: int, place: Place) -> Cell:
        summary = self._summaries[place]
        return Cell(
            level=level,
            values=summary.values,
            n=summary.n,
            mean=summary.mean,
            sd=summary.sd,
            ci95_low=summary.low,
            ci95_high=summary.high,
            low=min(summary.values),
            high=max(summary.values),
            text=self._metric.format(summary.mean),
            spread_text=self._spread(summary),
            doubts=tuple(_doubts(summary, self._grouped.cells[place])),
            ratio=self._ratio_cell(self._ratios.get(place)),
        )

    def _ratio_cell(self, one: Ratio | None) -> RatioCell | None:
        if one is None:
            return None
        better = (one.value > 1) is not self._metric.lower_is_better if one.resolved else None
        return RatioCell(
            value=one.value,
            low=one.low,
            high=one.high,
            resolved=one.resolved,
            better=better,
            text=shown(one.value, self.form),
            interval_text=interval(one, self.form),
        )

    def _spread(self, summary: Summary) -> str:
        return "one repeat" if summary.high is None else f"± {self._metric.format(summary.high - summary.mean)}"
