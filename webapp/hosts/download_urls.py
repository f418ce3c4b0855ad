"""Addresses that a storage server fetches the worker from."""

from django.urls import path

from webapp.hosts.download_views import download

urlpatterns = [path("worker/<str:version>/<str:name>", download, name="worker-download")]
