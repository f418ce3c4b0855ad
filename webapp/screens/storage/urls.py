"""The address of the page Storage."""

from django.urls import URLPattern, path

from webapp.screens.storage.views import storage_page

urlpatterns: list[URLPattern] = [path("storage/", storage_page, name="storage")]
