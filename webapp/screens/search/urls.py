"""Addresses of the search."""

from django.urls import URLPattern, path

from webapp.screens.search.views import search_hits, search_page

urlpatterns: list[URLPattern] = [
    path("search/", search_page, name="search"),
    path("search/hits/", search_hits, name="search_hits"),
]
