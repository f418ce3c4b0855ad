"""Addresses under /api/worker/v1/ that a worker calls with its own token."""

from django.urls import path

from webapp.results import worker_views

urlpatterns = [
    path("hello", worker_views.hello, name="worker-hello"),
    path("report", worker_views.report, name="worker-report"),
]
