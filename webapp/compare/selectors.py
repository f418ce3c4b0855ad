"""Comparisons: results grouped into cells, repeats summarised, series compared with a baseline."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from webapp.compare.comparison import Comparison, Level
from webapp.compare.differences import differences, verdict
from webapp.compare.dimensions import known_dimension, label_of
from webapp.compare.grouping import Grouped, group
from webapp.compare.mixes import totals
from webapp.compare.query import CompareQuery, CompareRefused, checked
from webapp.compare.statistics import summarise
from webapp.compare.table import Summaries, Table
from webapp.results.metrics import METRICS, Metric
from webapp.results.reading.query import ResultQuery
from webapp.results.reading.rows import ResultRow, read_rows

MAX_SERIES = 50
MAX_RESULTS = 20_000


@dataclass(frozen=True)
class Selected:
    """The compared results, grouped into cells.

    In `grouped` the directions of a trial are one row if the metric adds up. Otherwise they are in different cells.
    """

    query: CompareQuery
    metric: Metric
    found: ResultQuery
    rows: tuple[ResultRow, ...]  # in the order of measuring
    missing: int  # results without a value of the metric
    invalid: int  # results left out because a person marked them
    grouped: Grouped


def compare(query: CompareQuery) -> Comparison:
    """Raises CompareRefused."""
    return comparison_of(select(query))


def select(query: CompareQuery) -> Selected:
    """At most ten database queries. Raises CompareRefused."""
    checked(query)
    metric, found = METRICS[query.metric], ResultQuery.of(query.results)
    read = _read(found)
    rows = tuple(row for row in read if metric.of(row) is not None)
    query, grouped = _totalled(query, rows) if metric.adds_up else _apart(query, rows)
    invalid = found.count_invalid_left_out()
    return Selected(query, metric, found, rows, len(read) - len(rows), invalid, grouped)


def _read(found: ResultQuery) -> list[ResultRow]:
    rows = read_rows(found.results.order_by()[: MAX_RESULTS + 1])
    if len(rows) > MAX_RESULTS:
        message = f"More than {MAX_RESULTS:,} results match. Choose runs, hosts, drives or levels of a factor."
        raise CompareRefused("compare_too_many", message)
    return sorted(rows, key=lambda row: (row.run, row.trial, row.id))


def for_latencies(selected: Selected) -> Selected:
    """The same results with one chart per direction, for any metric."""
    query, grouped = _apart(selected.query, selected.rows)
    return replace(selected, query=query, grouped=grouped)


def _totalled(query: CompareQuery, rows: Sequence[ResultRow]) -> tuple[CompareQuery, Grouped]:
    return query, grouped_for(query, rows if "direction" in query.dimensions else totals(rows))


def _apart(query: CompareQuery, rows: Sequence[ResultRow]) -> tuple[CompareQuery, Grouped]:
    """One chart per direction if a cell would contain several: a latency mean over reads and writes is meaningless."""
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
    summaries = {key: summarise([metric.of(row) or 0.0 for row in rows]) for key, rows in grouped.cells.items()}
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
        levels=grouped.x,
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
        yield "No valid results match."
    if selected.invalid:
        yield f"{selected.invalid} invalid {'result is' if selected.invalid == 1 else 'results are'} left out."
    if selected.missing:
        yield f"{selected.missing} results are left out: too few I/Os for {selected.metric.label}."
    if any(row.summed_ids for rows in selected.grouped.cells.values() for row in rows):
        yield f"For mixed workloads, {selected.metric.label} is the sum of both directions."
    if selected.query.by_direction:
        yield "Latencies are not added up, so each direction has its own chart."
    alone = sum(summary.n == 1 for summary in summaries.values())
    if alone:
        yield f"{alone} of {len(summaries)} points were measured once and have no interval."
    invalid = sum(row.invalid for row in selected.rows)
    if invalid:
        yield f"{invalid} invalid {'result is' if invalid == 1 else 'results are'} included."


def grouped_for(query: CompareQuery, rows: Sequence[ResultRow]) -> Grouped:
    """Raises CompareRefused if there are too many series to read."""
    grouped = group(rows, query)
    if len(grouped.series) > MAX_SERIES:
        raise CompareRefused(
            "compare_too_many",
            f"{len(grouped.series)} series are too many (at most {MAX_SERIES}). Choose fewer levels of "
            f"{' or '.join(label_of(name) for name in query.series)}.",
        )
    return grouped


def baseline_of(query: CompareQuery, grouped: Grouped) -> Level:
    """The series that the query names, else the first."""
    known = {series.key: series for series in grouped.series}
    if not known:
        return Level("", "", None)
    if query.baseline and query.baseline not in known:
        names = ", ".join(known)
        raise CompareRefused("compare_baseline_unknown", f"There is no series `{query.baseline}`. Use {names}.")
    return known[query.baseline] if query.baseline else grouped.series[0]
