"""Addresses that storage servers call: the installation files, and the worker's messages under /api/worker/v1/."""

from django.urls import path

from webapp.worker_api.common_start import start
from webapp.worker_api.downloads import download
from webapp.worker_api.enrolment import enrol, renew_token
from webapp.worker_api.registration import register
from webapp.worker_api.reports import report

urlpatterns = [
    path("worker/<str:version>/<str:name>", download, name="worker-download"),
    path("api/worker/v1/enrol", enrol, name="worker-enrol"),
    path("api/worker/v1/token", renew_token, name="worker-token"),
    path("api/worker/v1/hello", register, name="worker-hello"),
    path("api/worker/v1/start", start, name="worker-start"),
    path("api/worker/v1/report", report, name="worker-report"),
]
