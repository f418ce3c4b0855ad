"""Addresses of the page of results."""

from django.urls import URLPattern, path

from webapp.screens.results.views import keep_columns, results_csv, results_page

urlpatterns: list[URLPattern] = [
    path("results/", results_page, name="results"),
    path("results/columns/", keep_columns, name="results_columns"),
    path("results.csv", results_csv, name="results_csv"),
]
