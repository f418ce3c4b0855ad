"""Comparisons: results grouped into cells, repeats summarised, series held against a baseline."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from webapp.compare.differences import differences, verdict
from webapp.compare.dimensions import Level, Row, known_dimension, label_of
from webapp.compare.grouping import Grouped, group
from webapp.compare.mixes import totals
from webapp.compare.query import CompareQuery, CompareRefused, checked
from webapp.compare.reading import read_rows
from webapp.compare.statistics import summarise
from webapp.compare.structs import AxisLevel, Comparison
from webapp.compare.table import Summaries, Table
from webapp.results.metrics import METRICS, Metric
from webapp.results.selectors import left_out_as_invalid, located

MOST_SERIES = 50


@dataclass(frozen=True)
class Selected:
    """The results that are compared, and the place of each; `missing` have no value of the metric.

    In `grouped` the directions of a trial are one row where the metric adds up, and never in one cell where not.
    """

    query: CompareQuery
    metric: Metric
    rows: tuple[Row, ...]
    missing: int
    invalid: int  # left out because a person marked them
    grouped: Grouped


def compare(query: CompareQuery) -> Comparison:
    """Raises CompareRefused in words."""
    return comparison_of(select(query))


def select(query: CompareQuery) -> Selected:
    """Seven database queries at most, whatever is asked. Raises CompareRefused in words."""
    checked(query)
    query = replace(query, results=located(query.results))
    metric = METRICS[query.metric]
    read = read_rows(query.results, metric)
    invalid = left_out_as_invalid(query.results)
    query, grouped = _totalled(query, read.rows) if metric.adds_up else _apart(query, read.rows)
    return Selected(query, metric, read.rows, read.missing, invalid, grouped)


def for_latencies(selected: Selected) -> Selected:
    """The same results with their directions apart, whatever the metric."""
    query, grouped = _apart(selected.query, selected.rows)
    return replace(selected, query=query, grouped=grouped)


def _totalled(query: CompareQuery, rows: Sequence[Row]) -> tuple[CompareQuery, Grouped]:
    return query, grouped_for(query, rows if "direction" in query.dimensions else totals(rows))


def _apart(query: CompareQuery, rows: Sequence[Row]) -> tuple[CompareQuery, Grouped]:
    """A chart for each direction where a cell would hold several: a mean over reads and writes is the latency of
    neither."""
    grouped = grouped_for(query, rows)
    if all(len({row.direction for row in cell}) == 1 for cell in grouped.cells.values()):
        return query, grouped
    by_direction = replace(query, by_direction=True)
    return by_direction, grouped_for(by_direction, rows)


def comparison_of(selected: Selected) -> Comparison:
    """Means, ratios and what else differs."""
    query, metric, grouped = selected.query, selected.metric, selected.grouped
    found = differences(grouped, query)
    single, words = verdict(query, found, series=len(grouped.series))
    baseline = baseline_of(query, grouped)
    summaries = {place: summarise([row.value for row in rows]) for place, rows in grouped.cells.items()}
    table = Table(metric, baseline, grouped, summaries, query.ratios)
    return Comparison(
        metric=metric.key,
        metric_label=metric.label,
        shown_as=metric.shown_as,
        unit=metric.unit,
        lower_is_better=metric.lower_is_better,
        x=query.x,
        x_label=label_of(query.x),
        x_numeric=known_dimension(query.x).numeric,
        series_by=query.series,
        series_label=", ".join(label_of(name) for name in query.series),
        panel_label=", ".join(label_of(name) for name in query.panels),
        levels=tuple(AxisLevel(key=x.key, text=x.text, value=x.number) for x in grouped.x),
        panels=tuple(table.panel(panel) for panel in grouped.panels),
        baseline=baseline.key,
        ratio_as=table.form,
        verdict=words,
        single_factor=single,
        differs=found,
        notes=tuple(_notes(selected, summaries)),
        results=len(selected.rows),
    )


def _notes(selected: Selected, summaries: Summaries) -> Iterator[str]:
    if not selected.rows:
        yield "No valid results match the filter."
    if selected.invalid:
        yield f"{selected.invalid} invalid {'result is' if selected.invalid == 1 else 'results are'} left out."
    if selected.missing:
        yield f"{selected.missing} results are left out: too few I/Os for their {selected.metric.label}."
    if any(row.further for rows in selected.grouped.cells.values() for row in rows):
        yield f"For mixed workloads, {selected.metric.label} is the sum of both directions."
    if selected.query.by_direction:
        yield "A latency belongs to one direction, so there is a chart for each direction."
    alone = sum(summary.n == 1 for summary in summaries.values())
    if alone:
        yield f"{alone} of {len(summaries)} points were measured once: no interval is given for them."
    invalid = sum(bool(row.invalid) for row in selected.rows)
    if invalid:
        yield f"{invalid} invalid {'result is' if invalid == 1 else 'results are'} in these numbers."


def grouped_for(query: CompareQuery, rows: Sequence[Row]) -> Grouped:
    """Raises CompareRefused where nobody could read it."""
    grouped = group(rows, query)
    if len(grouped.series) > MOST_SERIES:
        raise CompareRefused(
            "compare_too_many",
            f"{len(grouped.series)} lines are too many to read (at most {MOST_SERIES}): choose fewer levels of "
            f"{' or '.join(label_of(name) for name in query.series)}.",
        )
    return grouped


def baseline_of(query: CompareQuery, grouped: Grouped) -> Level:
    """The series that was asked for, else the first."""
    known = {series.key: series for series in grouped.series}
    if not known:
        return Level("", "", None)
    if query.baseline and query.baseline not in known:
        there = ", ".join(known)
        raise CompareRefused("compare_baseline_unknown", f"There is no series `{query.baseline}`. There are {there}.")
    return known[query.baseline] if query.baseline else grouped.series[0]
