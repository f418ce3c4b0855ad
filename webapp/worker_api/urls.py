"""Addresses that storage servers call: the installation files, and the worker's messages under /api/worker/v1/."""

from django.urls import path

from webapp.worker_api.views import authority_certificate, download, enrol, register, renew_token, report, start

urlpatterns = [
    path("ca.crt", authority_certificate, name="authority"),
    path("worker/<str:version>/<str:name>", download, name="worker-download"),
    path("api/worker/v1/enrol", enrol, name="worker-enrol"),
    path("api/worker/v1/token", renew_token, name="worker-token"),
    path("api/worker/v1/hello", register, name="worker-hello"),
    path("api/worker/v1/start", start, name="worker-start"),
    path("api/worker/v1/report", report, name="worker-report"),
]
