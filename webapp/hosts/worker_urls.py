"""Addresses under /api/worker/v1/ that need no host token."""

from django.urls import path

from webapp.hosts import worker_views

urlpatterns = [path("enrol", worker_views.enrol, name="worker-enrol")]
