"""The page of what was found, and the same for the command palette."""

import msgspec
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from webapp.screens.access import page
from webapp.screens.payloads import SearchHit, SearchHits
from webapp.screens.search.find import MAX_FOUND, find

MAX_QUERY_LENGTH = 200
HITS_PER_GROUP = 5


@page
def search_page(request: HttpRequest) -> HttpResponse:
    words = _words(request)
    context = {"words": words, "groups": find(words) if words else (), "most": MAX_FOUND}
    return render(request, "screens/search.html", context)


@page
def search_hits(request: HttpRequest) -> HttpResponse:
    """The first hits of each group, as JSON."""
    words = _words(request)
    hits = tuple(
        SearchHit(group=group.title, title=hit.title, address=hit.address, detail=hit.detail)
        for group in (find(words) if words else ())
        for hit in group.hits[:HITS_PER_GROUP]
    )
    return HttpResponse(msgspec.json.encode(SearchHits(hits=hits)), content_type="application/json")


def _words(request: HttpRequest) -> str:
    return request.GET.get("q", "").strip()[:MAX_QUERY_LENGTH]
