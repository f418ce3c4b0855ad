"""A comparison as CSV and JSON, in stored units. The CSV names them in the header."""

from collections.abc import Callable, Iterator, Sequence

import msgspec
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase

from webapp.compare.comparison import Comparison
from webapp.compare.options import Pairs, split
from webapp.compare.query import read_query
from webapp.compare.selectors import compare
from webapp.core.errors import Refusal
from webapp.screens.access import page
from webapp.screens.explore.charts import TableRow, table_of
from webapp.screens.explore.resolve import with_defaults
from webapp.screens.results.csv_export import csv_response
from webapp.screens.results.picks import pairs_of


@page
def explore_csv(request: HttpRequest) -> HttpResponseBase:
    return _file(request, lambda found: csv_response("sweetspot-comparison", comparison_rows(found)))


@page
def explore_json(request: HttpRequest) -> HttpResponseBase:
    """The same shape as `GET /api/v1/compare`."""
    return _file(request, _json)


def _json(comparison: Comparison) -> HttpResponse:
    name = {"Content-Disposition": 'attachment; filename="sweetspot-comparison.json"'}
    return HttpResponse(msgspec.json.encode(comparison), content_type="application/json", headers=name)


def _file(request: HttpRequest, write: Callable[[Comparison], HttpResponseBase]) -> HttpResponseBase:
    try:
        comparison = _asked(pairs_of(request.GET))
    except Refusal as refusal:
        return HttpResponse(str(refusal), status=400, content_type="text/plain")
    if comparison is None:
        return HttpResponse("No results match.", status=404, content_type="text/plain")
    return write(comparison)


def _asked(pairs: Pairs) -> Comparison | None:
    """With the defaults of the page if x is missing; None without results. Raises Refusal for choices that do not fit:
    a file has no place to name what was dropped."""
    complete = with_defaults([pair for pair in pairs if pair[1]])
    return compare(read_query(split(complete)[0])) if complete else None


_FIGURES = ("mean", "95 % CI low", "95 % CI high", "sd", "minimum", "maximum")


def comparison_rows(comparison: Comparison) -> Iterator[Sequence[object]]:
    metric, unit = comparison.metric_label, comparison.unit
    yield [
        comparison.panel_label or "Chart", comparison.x_label, comparison.series_label or "Series", "Baseline", "n",
        *(f"{metric} {figure} [{unit}]" for figure in _FIGURES),
        "Ratio to the baseline", "Ratio 95 % CI low", "Ratio 95 % CI high", "Corrected p", "Within margin", "Doubts",
    ]  # fmt: skip
    yield from map(_row, table_of(comparison))


def _row(row: TableRow) -> Sequence[object]:
    cell, summary, against = row.cell, row.cell.summary, row.cell.against_baseline
    ratio: tuple[object, ...] = (None,) * 5
    if against:
        ratio = (against.ratio.value, against.ratio.low, against.ratio.high, against.p, against.equal)
    return [
        row.panel, row.level, row.series, row.is_baseline, summary.n, summary.mean, summary.low, summary.high,
        summary.sd, min(summary.values), max(summary.values), *ratio, "; ".join(cell.doubts),
    ]  # fmt: skip
