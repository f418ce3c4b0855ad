from django.urls import include, path

from webapp.local.ingest_bench.bare import bare

urlpatterns = [path("bare/<uuid:attempt>/<int:second>", bare), path("", include("webapp.urls"))]
