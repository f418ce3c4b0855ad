"""Addresses of the page of results."""

from django.urls import URLPattern, path

from webapp.screens.results.views import keep_columns, results_file, results_page

urlpatterns: list[URLPattern] = [
    path("results/", results_page, name="results"),
    path("results/columns/", keep_columns, name="results_columns"),
    path("results.csv", results_file, {"ending": "csv"}, name="results_csv"),
    path("results.json", results_file, {"ending": "json"}, name="results_json"),
    path("results.parquet", results_file, {"ending": "parquet"}, name="results_parquet"),
]
