"""All addresses, by app."""

from django.urls import include, path

urlpatterns = [
    path("", include("webapp.worker_api.urls")),
    path("api/", include("webapp.api.urls")),
    path("", include("webapp.api.package_index")),
    path("", include("webapp.core.urls")),
    path("", include("webapp.screens.urls")),
]

handler403 = "webapp.screens.access.forbidden"
handler500 = "webapp.core.failures.failed_request"
