"""What a storage server fetches before it has a token: worker, packages, installation script. No secrets in it."""

from django.http import FileResponse, Http404, HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.views.decorators.http import require_GET

from webapp.hosts.installer import SCRIPT, install_script
from webapp.hosts.wheel import worker_wheel
from webapp.hosts.wheelhouse import built_wheelhouse


@require_GET
def download(request: HttpRequest, version: str, name: str) -> HttpResponseBase:  # noqa: ARG001 - every view has one
    wheel, wheelhouse = worker_wheel(), built_wheelhouse()
    if version == wheel.version:
        if name == SCRIPT:
            return HttpResponse(install_script(wheel).text, content_type="text/x-shellscript; charset=utf-8")
        if name == wheel.filename:
            return HttpResponse(wheel.content, content_type="application/octet-stream")
        if wheelhouse and name == wheelhouse.filename:
            return FileResponse(wheelhouse.path.open("rb"), content_type="application/zip")
    raise Http404(f"This server has worker version {wheel.version}. Create a new command on the page “Add host”.")
