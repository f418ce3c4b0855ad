"""All results: a table with filters in the address, and the same as CSV."""

import csv
from collections.abc import Iterator

from django.core.paginator import Paginator
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.shortcuts import render

from webapp.results.models import Result
from webapp.screens import points
from webapp.screens.access import page
from webapp.screens.results.factors import chosen_levels, distinct_points, factor_filters
from webapp.screens.results.forms import ResultFilterForm

PER_PAGE = 100
_NUMBERS = (
    "ios", "bytes", "runtime_ms", "iops", "bytes_per_s", "latency_kind", "latency_min_ns", "latency_mean_ns",
    "latency_max_ns", "latency_stddev_ns", "p50_ns", "p95_ns", "p99_ns", "p999_ns",
)  # fmt: skip


@page
def results_page(request: HttpRequest) -> HttpResponse:
    form = ResultFilterForm(request.GET)
    base = form.results()
    chosen = chosen_levels(request.GET)
    all_points = distinct_points(base)
    results = base.filter(point__contains=chosen) if chosen else base
    shown = Paginator(results, PER_PAGE).get_page(request.GET.get("page"))
    names = points.varying(all_points)
    context = {
        "form": form,
        "factor_filters": factor_filters(all_points, chosen),
        "factors": [points.label(name) for name in names],
        "rows": [(result, points.levels(result.point, names)) for result in shown.object_list],
        "pages": shown,
        "filtered": bool(request.GET),
        "query": request.GET.urlencode(),
    }
    return render(request, "screens/results.html", context)


@page
def results_csv(request: HttpRequest) -> StreamingHttpResponse:
    """Plain numbers in ns, bytes and bytes/s; every factor a column."""
    base = ResultFilterForm(request.GET).results()
    chosen = chosen_levels(request.GET)
    results = base.filter(point__contains=chosen) if chosen else base
    names = list(dict.fromkeys(name for point in distinct_points(results) for name in point))
    response = StreamingHttpResponse(_csv_lines(results, names), content_type="text/csv")
    response["Content-Disposition"] = 'attachment; filename="sweetspot-results.csv"'
    return response


class _Echo:
    """A file that hands back what is written to it."""

    def write(self, text: str) -> str:
        return text


def _csv_lines(results: QuerySet[Result], names: list[str]) -> Iterator[str]:
    writer = csv.writer(_Echo())
    yield writer.writerow(
        ["run", "trial", "repeat", "host", "target", "direction", "measured_at", "invalid", *names, *_NUMBERS]
    )
    for result in results.iterator(chunk_size=1000):
        trial = result.trial
        yield writer.writerow([
            result.run.number, trial.index + 1, trial.repeat, result.host.slug, result.target.slug, result.direction,
            result.measured_at.isoformat(), result.invalid, *(result.point.get(name, "") for name in names),
            *(getattr(result, number) for number in _NUMBERS),
        ])  # fmt: skip
