"""Addresses of Bench and of the pages of products."""

from django.urls import URLPattern, path

from webapp.screens.bench.picker import bench_shares
from webapp.screens.bench.product_page import product_page
from webapp.screens.bench.summary import bench_summary
from webapp.screens.bench.views import bench_file, bench_page, plan_missing, price_action

urlpatterns: list[URLPattern] = [
    path("bench/", bench_page, name="bench"),
    path("bench/shares.json", bench_shares, name="bench_shares"),
    path("bench/summary/", bench_summary, name="bench_summary"),
    path("bench.csv", bench_file, {"ending": "csv"}, name="bench_csv"),
    path("bench.json", bench_file, {"ending": "json"}, name="bench_json"),
    path("bench.parquet", bench_file, {"ending": "parquet"}, name="bench_parquet"),
    path("bench/plan/", plan_missing, name="bench_plan"),
    path("products/price/", price_action, name="set_price"),
    path("products/<str:kind>/<path:value>/", product_page, name="product"),
]
