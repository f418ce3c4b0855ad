"""The page of one imported test with a time series: the series as a chart."""

from dataclasses import replace

import msgspec
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render

from webapp.analysis.answer import Level
from webapp.analysis.latency import ChartPoint
from webapp.analysis.question import CompareRefused
from webapp.analysis.timeline import time_lines
from webapp.imports.selectors import results_of
from webapp.results.metrics import METRICS
from webapp.results.models import Import
from webapp.results.reading.rows import read_rows
from webapp.screens.access import page
from webapp.screens.explore.payloads import SeriesName, TimeCharts
from webapp.screens.imports.views import table_of

CHOICES = {key: METRICS[key].label for key in ("iops", "bytes_per_s", "latency_mean")}


@page
def import_test_page(request: HttpRequest, number: int, test: int) -> HttpResponse:
    imported = get_object_or_404(Import, number=number)
    rows = read_rows(results_of(imported).filter(origin__number=test, origin__series__isnull=False))
    if not rows:
        raise Http404
    metric = request.GET.get("metric", "")
    metric = metric if metric in CHOICES else "iops"
    point = ChartPoint("", "", {Level(row.direction, row.direction, None): (row,) for row in rows}, "")
    refusal = ""
    try:
        lines = time_lines(point, metric)
    except CompareRefused as refused:
        refusal, lines = str(refused), time_lines(replace(point, series={}), metric)
    context = {
        "import": imported,
        "test": test,
        "name": rows[0].test,
        "table": table_of(rows),
        "completion_latency": any(row.latency_kind == "clat" for row in rows),
        "choices": CHOICES,
        "metric": metric,
        "lines": lines,
        "refusal": refusal,
        "drawn": any(series.mean for series in lines.series),
        "payload": TimeCharts(lines=lines, logarithmic=False, ceilings=()),
        "names": msgspec.to_builtins(
            [SeriesName(name=row.direction, is_baseline=False, colour=n) for n, row in enumerate(rows)]
        ),
    }
    return render(request, "screens/import_test.html", context)
