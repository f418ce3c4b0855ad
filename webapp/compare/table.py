"""Compute the panels of a comparison from grouped results: cells, ratios and sentences."""

from collections.abc import Iterator, Sequence

from webapp.compare.comparison import BaselineRatio, Cell, Level, Panel, Series
from webapp.compare.grouping import CellKey, Grouped
from webapp.compare.sentences import against_baseline, form_of, interval, shown
from webapp.compare.statistics import Ratio, Summary, combined, ratio
from webapp.results.metrics import Metric
from webapp.results.reading.rows import ResultRow

Summaries = dict[CellKey, Summary]
WIDE = 0.5  # half the interval over the mean; a wider interval is a doubt


def _doubts(summary: Summary, rows: Sequence[ResultRow]) -> Iterator[str]:
    reasons = dict.fromkeys(row.why_invalid for row in rows if row.invalid)
    if reasons:
        yield f"includes invalid results: {'; '.join(reasons)}"
    if summary.n == 1:
        yield "measured once: its spread is unknown"
    elif summary.high is not None and summary.high - summary.mean > WIDE * abs(summary.mean):
        share = 100 * (summary.high - summary.mean) / abs(summary.mean) if summary.mean else 0
        yield f"repeats differ widely: the mean has an uncertainty of ± {share:,.0f} %"


class Table:
    """All ratios of a table have one form."""

    def __init__(self, metric: Metric, baseline: Level, grouped: Grouped, summaries: Summaries, form: str = "") -> None:
        self._metric, self._baseline, self._grouped, self._summaries = metric, baseline, grouped, summaries
        self._ratios = {key: self._ratio(key) for key in summaries if key[1] != baseline.key}
        self.form = form or form_of([known.value for known in self._ratios.values() if known is not None])

    def panel(self, panel: Level) -> Panel:
        used = {key[1] for key in self._summaries if key[0] == panel.key}
        series = (self._series(panel, each) for each in self._grouped.series if each.key in used)
        return Panel(key=panel.key, name=panel.text, series=tuple(series))

    def _ratio(self, key: CellKey) -> Ratio | None:
        baseline = self._summaries.get((key[0], self._baseline.key, key[2]))
        return ratio(self._summaries[key], baseline) if baseline else None

    def _series(self, panel: Level, series: Level) -> Series:
        keys = [(panel.key, series.key, x.key) for x in self._grouped.x]
        cells = tuple(self._cell(level, key) for level, key in enumerate(keys) if key in self._summaries)
        is_baseline = series.key == self._baseline.key
        pairs = [] if is_baseline else self._pairs(keys)
        overall = combined(pairs)
        return Series(
            key=series.key,
            name=series.text,
            is_baseline=is_baseline,
            cells=cells,
            sentence="" if is_baseline else self._sentence(series, keys, pairs, overall),
            against_baseline=self._against_baseline(overall),
        )

    def _pairs(self, keys: Sequence[CellKey]) -> list[tuple[Summary, Summary]]:
        """This series and the baseline, at each chart point where both were measured."""
        known = self._summaries
        both = [(known.get(key), known.get((key[0], self._baseline.key, key[2]))) for key in keys]
        return [(mine, theirs) for mine, theirs in both if mine and theirs]

    def _sentence(
        self,
        series: Level,
        keys: Sequence[CellKey],
        pairs: Sequence[tuple[Summary, Summary]],
        overall: Ratio | None,
    ) -> str:
        single = [known for key in keys if (known := self._ratios.get(key)) is not None]
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

    def _cell(self, level: int, key: CellKey) -> Cell:
        summary = self._summaries[key]
        return Cell(
            level=level,
            summary=summary,
            text=self._metric.format(summary.mean),
            spread_text=self._spread(summary),
            doubts=tuple(_doubts(summary, self._grouped.cells[key])),
            against_baseline=self._against_baseline(self._ratios.get(key)),
        )

    def _against_baseline(self, ratio: Ratio | None) -> BaselineRatio | None:
        if ratio is None:
            return None
        return BaselineRatio(
            ratio=ratio,
            better=(ratio.value > 1) is not self._metric.lower_is_better if ratio.resolved else None,
            text=shown(ratio.value, self.form),
            interval_text=interval(ratio, self.form),
        )

    def _spread(self, summary: Summary) -> str:
        return "one repeat" if summary.high is None else f"± {self._metric.format(summary.high - summary.mean)}"
