"""Serves the built front end with WhiteNoise."""

from django.http import HttpRequest, HttpResponse, HttpResponseNotFound
from whitenoise.middleware import WhiteNoiseMiddleware
from whitenoise.responders import StaticFile

GONE = "This file no longer exists because the front end was rebuilt. Restart the server."


class StaticFiles(WhiteNoiseMiddleware):  # type: ignore[misc]  # it has no types
    """The files that existed when the server started. A file that was deleted since then gives 404."""

    @staticmethod
    def serve(static_file: StaticFile, request: HttpRequest) -> HttpResponse:
        try:
            response: HttpResponse = WhiteNoiseMiddleware.serve(static_file, request)
        except FileNotFoundError:
            return HttpResponseNotFound(GONE, content_type="text/plain; charset=utf-8")
        return response
