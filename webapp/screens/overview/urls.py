"""Addresses of the overview."""

from django.urls import URLPattern, path

from webapp.screens.overview.views import overview_page

urlpatterns: list[URLPattern] = [
    path("", overview_page, name="overview"),
]
