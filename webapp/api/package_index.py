"""A package index (PEP 503) with one package, the command `sweetspot`:

    pip install --index-url https://sweetspot.example/simple/ sweetspot

It needs no other packages, so this works without the internet. No secrets in it, so anybody may fetch it.
"""

from django.http import Http404, HttpRequest, HttpResponse
from django.urls import path
from django.utils.html import format_html
from django.views.decorators.http import require_GET

from webapp.hosts.wheel import client_wheel


@require_GET
def package_files(request: HttpRequest) -> HttpResponse:
    wheel = client_wheel()
    link = format_html('<a href="{0}#sha256={1}">{0}</a>', wheel.filename, wheel.sha256)
    return HttpResponse(format_html("<!DOCTYPE html><title>sweetspot</title>{}", link))


@require_GET
def package_file(request: HttpRequest, name: str) -> HttpResponse:
    wheel = client_wheel()
    if name != wheel.filename:
        raise Http404(f"This server has {wheel.filename}.")
    return HttpResponse(wheel.content, content_type="application/octet-stream")


urlpatterns = [
    path("simple/sweetspot/", package_files, name="package-files"),
    path("simple/sweetspot/<str:name>", package_file, name="package-file"),
]
