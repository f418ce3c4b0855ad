"""All addresses, by app."""

from django.urls import include, path

from webapp import probes
from webapp.worker_api import views as worker

urlpatterns = [
    # What storage servers call: the installation files, and the messages of their workers.
    path("ca.crt", worker.authority_certificate, name="authority"),
    path("worker/<str:version>/<str:name>", worker.download, name="worker-download"),
    path("api/worker/v1/enrol", worker.enrol, name="worker-enrol"),
    path("api/worker/v1/token", worker.renew_token, name="worker-token"),
    path("api/worker/v1/hello", worker.register, name="worker-hello"),
    path("api/worker/v1/start", worker.start, name="worker-start"),
    path("api/worker/v1/report", worker.report, name="worker-report"),
    path("api/", include("webapp.api.urls")),
    path("", include("webapp.api.package_index")),
    path("healthz", probes.ready, name="healthz"),
    path("healthz/live", probes.live, name="healthz-live"),
    path("metrics", probes.metrics, name="metrics"),
    path("", include("webapp.screens.urls")),
]

handler403 = "webapp.screens.access.forbidden"
handler500 = "webapp.core.middleware.failed_request"
