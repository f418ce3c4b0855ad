"""Addresses for monitoring systems."""

from django.urls import path

from webapp.core import probe_views

urlpatterns = [
    path("healthz", probe_views.ready, name="healthz"),
    path("healthz/live", probe_views.live, name="healthz-live"),
    path("metrics", probe_views.metrics, name="metrics"),
]
