"""A comparison as CSV: stored units, named in the header."""

from collections.abc import Iterator, Sequence

from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase

from webapp.compare.options import split
from webapp.compare.query import read_query
from webapp.compare.selectors import compare
from webapp.compare.structs import Comparison
from webapp.core.errors import Refusal
from webapp.screens.access import page
from webapp.screens.compare.charts import TableRow, table_of
from webapp.screens.results.csv_export import csv_response
from webapp.screens.results.picks import pairs_of


@page
def compare_csv(request: HttpRequest) -> HttpResponseBase:
    try:
        comparison = compare(read_query(split(pairs_of(request.GET))[0]))
    except Refusal as refusal:
        return HttpResponse(str(refusal), status=400, content_type="text/plain")
    return csv_response("sweetspot-comparison", comparison_rows(comparison))


def comparison_rows(comparison: Comparison) -> Iterator[Sequence[object]]:
    metric, unit = comparison.metric_label, comparison.unit
    yield [
        comparison.panel_label or "Chart", comparison.x_label, comparison.series_label or "Series", "Baseline", "n",
        *(f"{metric} {what} [{unit}]" for what in ("mean", "95 % CI low", "95 % CI high", "sd", "least", "largest")),
        "Ratio to the baseline", "Ratio 95 % CI low", "Ratio 95 % CI high", "In doubt",
    ]  # fmt: skip
    yield from map(_row, table_of(comparison))


def _row(row: TableRow) -> Sequence[object]:
    cell, ratio = row.cell, row.cell.ratio
    return [
        row.panel, row.level, row.series, row.is_baseline, cell.n, cell.mean, cell.ci95_low, cell.ci95_high, cell.sd,
        cell.low, cell.high, *((ratio.value, ratio.low, ratio.high) if ratio else (None, None, None)),
        "; ".join(cell.doubts),
    ]  # fmt: skip
