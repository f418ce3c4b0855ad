"""All results: a table with filters in the address, and the same as CSV."""

import csv
from collections.abc import Iterator

from django.core.paginator import Paginator
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.shortcuts import render

from webapp.results.filters import FilterRefused, ResultFilter, read_filter
from webapp.results.models import Result
from webapp.results.selectors import filtered
from webapp.screens import points
from webapp.screens.access import page
from webapp.screens.results.choices import distinct_points, factor_choices, pairs_of, place_choices, points_of

PER_PAGE = 100
_NUMBERS = (
    "ios", "bytes", "runtime_ms", "iops", "bytes_per_s", "latency_kind", "latency_min_ns", "latency_mean_ns",
    "latency_max_ns", "latency_stddev_ns", "p50_ns", "p95_ns", "p99_ns", "p999_ns",
)  # fmt: skip


@page
def results_page(request: HttpRequest) -> HttpResponse:
    try:
        asked = read_filter(pairs_of(request.GET, "page"))
    except FilterRefused as refusal:
        context = {"refusal": str(refusal), "choices": place_choices(ResultFilter()), "filtered": True}
        return render(request, "screens/results.html", context, status=400)
    return render(request, "screens/results.html", _context(request, asked))


def _context(request: HttpRequest, asked: ResultFilter) -> dict[str, object]:
    all_points = points_of(asked)
    names = points.varying(all_points)
    shown = Paginator(filtered(asked), PER_PAGE).get_page(request.GET.get("page"))
    return {
        "choices": [*place_choices(asked), *factor_choices(all_points, asked)],
        "invalid": asked.invalid,
        "factors": [points.label(name) for name in names],
        "rows": [(result, points.levels(result.point, names)) for result in shown.object_list],
        "pages": shown,
        "filtered": bool(request.GET),
        "query": request.GET.urlencode(),
    }


@page
def results_csv(request: HttpRequest) -> HttpResponse | StreamingHttpResponse:
    """Plain numbers in ns, bytes and bytes/s; every factor a column."""
    try:
        results = filtered(read_filter(pairs_of(request.GET, "page")))
    except FilterRefused as refusal:
        return HttpResponse(str(refusal), status=400, content_type="text/plain")
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
