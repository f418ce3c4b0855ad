"""Addresses of Rankings."""

from django.urls import URLPattern, path

from webapp.screens.rankings.views import rankings_file, rankings_page

urlpatterns: list[URLPattern] = [
    path("rankings/", rankings_page, name="rankings"),
    path("rankings.csv", rankings_file, {"ending": "csv"}, name="rankings_csv"),
    path("rankings.json", rankings_file, {"ending": "json"}, name="rankings_json"),
    path("rankings.parquet", rankings_file, {"ending": "parquet"}, name="rankings_parquet"),
]
