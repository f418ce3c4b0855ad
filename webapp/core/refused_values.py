"""Answers pages whose request has a value that no form has checked, so that it is not a failure of the server.

The API has its own handlers (webapp/api/common/errors.py).
"""

import logging
from collections.abc import Callable

from django.db import DataError
from django.http import HttpRequest, HttpResponse

from webapp.core.errors import NotFound, Refusal

UNSTORABLE = "The request has a value that cannot be stored, such as a NUL, or a number that is too large. Correct it."
logger = logging.getLogger(__name__)


class RefusedValues:
    """Middleware: 422 for a Refusal that the page does not show itself, and for a value that PostgreSQL refuses."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        return self.get_response(request)

    def process_exception(self, request: HttpRequest, exception: Exception) -> HttpResponse | None:
        if isinstance(exception, Refusal):
            return _text(exception.message, 404 if isinstance(exception, NotFound) else 422)
        if isinstance(exception, DataError | UnicodeEncodeError):
            logger.warning("%s %s has a value that cannot be stored.", request.method, request.path, exc_info=exception)
            return _text(UNSTORABLE, 422)
        return None


def _text(words: str, status: int) -> HttpResponse:
    return HttpResponse(words, status=status, content_type="text/plain; charset=utf-8")
