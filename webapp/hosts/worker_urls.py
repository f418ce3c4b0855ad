"""Addresses under /api/worker/v1/ by which a host comes by its token."""

from django.urls import path

from webapp.hosts import worker_views

urlpatterns = [
    path("enrol", worker_views.enrol, name="worker-enrol"),
    path("token", worker_views.token, name="worker-token"),
]
