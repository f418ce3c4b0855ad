"""The built front end, as WhiteNoise serves it."""

from django.http import HttpRequest, HttpResponse, HttpResponseNotFound
from whitenoise.middleware import WhiteNoiseMiddleware
from whitenoise.responders import StaticFile

GONE = "This file is not there any more: the front end was built anew. The server must be started again."


class StaticFiles(WhiteNoiseMiddleware):  # type: ignore[misc]  # it has no types
    """The files that there were when the server began. One that was taken away since then is not found."""

    @staticmethod
    def serve(static_file: StaticFile, request: HttpRequest) -> HttpResponse:
        try:
            response: HttpResponse = WhiteNoiseMiddleware.serve(static_file, request)
        except FileNotFoundError:
            return HttpResponseNotFound(GONE, content_type="text/plain; charset=utf-8")
        return response
