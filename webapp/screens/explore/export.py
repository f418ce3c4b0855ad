"""A comparison as a file, in stored units."""

from collections.abc import Callable

import msgspec
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase

from webapp.analysis.answer import Comparison, comparison_table
from webapp.analysis.comparing import compare
from webapp.analysis.question import Pairs, read_query, split
from webapp.core.errors import Refusal
from webapp.core.table_files.response import file_response
from webapp.screens.access import page
from webapp.screens.explore.resolve import with_defaults
from webapp.screens.results.picks import pairs_of


@page
def explore_file(request: HttpRequest, ending: str) -> HttpResponseBase:
    return _file(request, lambda found: file_response(comparison_table(found), "sweetspot-comparison", ending))


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
        return HttpResponse(str(refusal), status=422, content_type="text/plain")
    if comparison is None:
        return HttpResponse("No results match.", status=404, content_type="text/plain")
    return write(comparison)


def _asked(pairs: Pairs) -> Comparison | None:
    """With the defaults of the page if x is missing; None without results. Raises Refusal for choices that do not fit:
    a file has no place to name what was dropped."""
    complete = with_defaults([pair for pair in pairs if pair[1]])
    return compare(read_query(split(complete)[0])) if complete else None
