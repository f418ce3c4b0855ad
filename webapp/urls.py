"""All addresses, by app."""

from django.urls import include, path

from webapp import probes

urlpatterns = [
    path("", include("webapp.worker_api.urls")),
    path("api/", include("webapp.api.urls")),
    path("", include("webapp.api.package_index")),
    path("healthz", probes.ready, name="healthz"),
    path("healthz/live", probes.live, name="healthz-live"),
    path("metrics", probes.metrics, name="metrics"),
    path("", include("webapp.screens.urls")),
]

handler403 = "webapp.screens.access.forbidden"
handler500 = "webapp.core.failures.failed_request"
