"""What a storage server fetches before it has a token: the worker and the script that installs it. No secrets in it."""

from django.http import Http404, HttpRequest, HttpResponse
from django.views.decorators.http import require_GET

from webapp.hosts.installer import SCRIPT, install_script
from webapp.hosts.wheel import worker_wheel


@require_GET
def download(request: HttpRequest, version: str, name: str) -> HttpResponse:  # noqa: ARG001 - every view has one
    wheel = worker_wheel()
    if version != wheel.version or name not in (SCRIPT, wheel.filename):
        raise Http404(f"This server has worker version {wheel.version}. Create a new command on the page “Add host”.")
    if name == SCRIPT:
        return HttpResponse(install_script(wheel).text, content_type="text/x-shellscript; charset=utf-8")
    return HttpResponse(wheel.content, content_type="application/octet-stream")
