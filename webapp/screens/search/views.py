"""The page of what was found."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from webapp.screens.access import page
from webapp.screens.search.find import MAX_FOUND, find

MAX_QUERY_LENGTH = 200


@page
def search_page(request: HttpRequest) -> HttpResponse:
    words = request.GET.get("q", "").strip()[:MAX_QUERY_LENGTH]
    context = {"words": words, "groups": find(words) if words else (), "most": MAX_FOUND}
    return render(request, "screens/search.html", context)
