"""Addresses of trends, acceptance tests and baselines."""

from django.urls import path

from webapp.screens.trend import acceptance_views, views

urlpatterns = [
    path("trends/", views.trend_page, name="trends"),
    path("trends/acceptance/", acceptance_views.acceptance_page, name="acceptance"),
    path("trends/acceptance.csv", acceptance_views.acceptance_file, name="acceptance_csv"),
    path("trends/baselines/", views.set_baseline_run, name="set_baseline"),
    path("trends/baselines/import/", views.set_import, name="set_import_baseline"),
    path("trends/baselines/<int:pk>/", views.baseline_page, name="baseline"),
    path("trends/baselines/<int:pk>/remove/", views.remove_baseline_run, name="remove_baseline"),
]
