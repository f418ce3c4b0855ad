"""Comparisons: results grouped into cells, repeats summarised, series held against a baseline."""

from collections.abc import Sequence
from dataclasses import dataclass

from webapp.compare.differences import Facts, differences, verdict
from webapp.compare.dimensions import DIMENSIONS, Level, Row
from webapp.compare.facts import normalised
from webapp.compare.grouping import Grouped, group
from webapp.compare.query import CompareQuery, CompareRefused, checked
from webapp.compare.statistics import summarise
from webapp.compare.structs import AxisLevel, Comparison
from webapp.compare.table import Summaries, Table
from webapp.results.metrics import METRICS, Metric
from webapp.results.models import Configuration, Result
from webapp.results.selectors import conditions

MOST_RESULTS = 20_000
MOST_SERIES = 50


def compare(query: CompareQuery) -> Comparison:
    """Two database queries, whatever is asked. Raises CompareRefused in words."""
    checked(query)
    metric = METRICS[query.metric]
    rows, missing = _rows(query, metric)
    grouped = group(rows, query)
    if len(grouped.series) > MOST_SERIES:
        raise CompareRefused("compare_too_many", f"{len(grouped.series)} series are too many to read; filter some out.")
    return _Work(query, metric, grouped, _facts(rows), len(rows), missing).comparison()


def _rows(query: CompareQuery, metric: Metric) -> tuple[list[Row], int]:
    """The results, and how many were left out because they have no value of the metric."""
    found = Result.objects.filter(conditions(query.results)).order_by("run__number", "trial__index", "id").values_list(
        metric.column, "host__slug", "target__slug", "run__number", "run__version__plan__slug", "direction", "point",
        "leg_run__configuration_id", "leg_run__fio_version",
    )  # fmt: skip
    values = list(found[: MOST_RESULTS + 1])
    if len(values) > MOST_RESULTS:
        raise CompareRefused("compare_too_many", f"More than {MOST_RESULTS:,} results: filter by run, host or factor.")
    rows = [
        Row(value, host, f"{host}/{target}", run, plan, direction, point, facts or "", fio)
        for value, host, target, run, plan, direction, point, facts, fio in values
        if value is not None
    ]
    return rows, len(values) - len(rows)


def _facts(rows: Sequence[Row]) -> Facts:
    digests = {row.facts for row in rows if row.facts}
    found = Configuration.objects.filter(digest__in=digests).values_list("digest", "facts")
    return {digest: normalised(facts) for digest, facts in found}


@dataclass(frozen=True)
class _Work:
    """One comparison while it is put together."""

    query: CompareQuery
    metric: Metric
    grouped: Grouped
    facts: Facts
    results: int
    missing: int

    def comparison(self) -> Comparison:
        query, metric, found = self.query, self.metric, differences(self.grouped, self.query, self.facts)
        single, words = verdict(query, found, series=len(self.grouped.series))
        baseline = self._baseline()
        cells = self.grouped.cells
        summaries = {place: summarise([row.value for row in rows]) for place, rows in cells.items()}
        table = Table(metric, baseline, self.grouped, summaries)
        return Comparison(
            metric=metric.key,
            metric_label=metric.label,
            shown_as=metric.shown_as,
            unit=metric.unit,
            lower_is_better=metric.lower_is_better,
            x=query.x,
            x_label=DIMENSIONS[query.x].label,
            x_numeric=DIMENSIONS[query.x].numeric,
            series_by=query.series,
            series_label=", ".join(DIMENSIONS[name].label for name in query.series),
            panel_label=DIMENSIONS[query.panel].label if query.panel else "",
            levels=tuple(AxisLevel(key=x.key, text=x.text, value=x.number) for x in self.grouped.x),
            panels=tuple(table.panel(panel) for panel in self.grouped.panels),
            baseline=baseline.key,
            ratio_as=table.form,
            verdict=words,
            single_factor=single,
            differs=found,
            notes=self._notes(summaries),
            results=self.results,
        )

    def _baseline(self) -> Level:
        """The series that was asked for, else the first."""
        known = {series.key: series for series in self.grouped.series}
        if not known:
            return Level("", "", None)
        if self.query.baseline and self.query.baseline not in known:
            there = ", ".join(known)
            raise CompareRefused(
                "compare_baseline_unknown", f"There is no series `{self.query.baseline}`. There are {there}."
            )
        return known[self.query.baseline] if self.query.baseline else self.grouped.series[0]

    def _notes(self, summaries: Summaries) -> tuple[str, ...]:
        notes = []
        if not self.results:
            notes.append("No valid results match the filter.")
        if self.missing:
            notes.append(f"{self.missing} results are left out: too few I/Os for their {self.metric.label}.")
        alone = sum(summary.n == 1 for summary in summaries.values())
        if alone:
            notes.append(f"{alone} of {len(summaries)} points were measured once: no interval is given for them.")
        return tuple(notes)
