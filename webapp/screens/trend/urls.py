"""Addresses of trends and baseline runs."""

from django.urls import path

from webapp.screens.trend import baseline_views, views

urlpatterns = [
    path("trend/", views.trend_page, name="trend"),
    path("trend/baselines/", baseline_views.set_baseline_run, name="set_baseline"),
    path("trend/baselines/<int:pk>/", baseline_views.baseline_page, name="baseline"),
    path("trend/baselines/<int:pk>/remove/", baseline_views.remove_baseline_run, name="remove_baseline"),
]
