"""Addresses of trends and baseline runs."""

from django.urls import path

from webapp.screens.trend import baseline_views, views

urlpatterns = [
    path("trends/", views.trend_page, name="trends"),
    path("trends/baselines/", baseline_views.set_baseline_run, name="set_baseline"),
    path("trends/baselines/<int:pk>/", baseline_views.baseline_page, name="baseline"),
    path("trends/baselines/<int:pk>/remove/", baseline_views.remove_baseline_run, name="remove_baseline"),
]
