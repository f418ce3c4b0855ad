"""All addresses, by app."""

from django.urls import include, path

urlpatterns = [
    path("api/worker/v1/", include("webapp.hosts.worker_urls")),
    path("api/worker/v1/", include("webapp.results.worker_urls")),
    path("api/", include("webapp.api")),
    path("", include("webapp.hosts.download_urls")),
    path("", include("webapp.core.urls")),
    path("", include("webapp.screens.urls")),
]

handler403 = "webapp.screens.access.forbidden"
