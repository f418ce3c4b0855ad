"""The rows of Bench as a file, in stored units."""

import msgspec
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase

from webapp.bench.answer import answer, bench_table
from webapp.bench.products import BenchRefused
from webapp.bench.side_by_side import side_by_side
from webapp.core.table_files.response import file_response
from webapp.screens.access import page
from webapp.screens.bench.address import read_address

NAME = "sweetspot-bench"


@page
def bench_file(request: HttpRequest, ending: str) -> HttpResponseBase:
    """JSON has the shape of `GET /api/v1/bench`."""
    try:
        asked = read_address(request.GET)
    except BenchRefused as refusal:
        return HttpResponse(refusal.message, status=422, content_type="text/plain")
    if asked is None:
        return HttpResponse("Choose products first.", status=404, content_type="text/plain")
    found = answer(side_by_side(asked))
    if ending != "json":
        return file_response(bench_table(found), NAME, ending)
    name = {"Content-Disposition": f'attachment; filename="{NAME}.json"'}
    return HttpResponse(msgspec.json.encode(found), content_type="application/json", headers=name)
