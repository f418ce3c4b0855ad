from django.urls import include, path

from dev.bench.ingest.bare import bare

urlpatterns = [path("bare/<uuid:attempt>/<int:second>", bare), path("", include("webapp.urls"))]
