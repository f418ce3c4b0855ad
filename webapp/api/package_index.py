"""A package index with one package, the command `sweetspot`:

    pip install --index-url https://sweetspot.example/simple/ sweetspot

It needs no other packages, so this works without the internet. No secrets in it, so anybody may fetch it.
https://packaging.python.org/en/latest/specifications/simple-repository-api/ (JSON; pip 22.2 or newer)
"""

from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.urls import path
from django.views.decorators.http import require_GET

from webapp.hosts.installer import client_wheel


@require_GET
def package_files(request: HttpRequest) -> HttpResponse:
    wheel = client_wheel()
    file = {"filename": wheel.filename, "url": wheel.filename, "hashes": {"sha256": wheel.sha256}}
    index = {"meta": {"api-version": "1.0"}, "name": "sweetspot", "files": [file]}
    return JsonResponse(index, content_type="application/vnd.pypi.simple.v1+json")


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
