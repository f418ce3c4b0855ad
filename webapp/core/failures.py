"""The answer to a request that failed: 500, or 503 while the database restarts."""

import sys

from django.db import InterfaceError, OperationalError
from django.http import HttpRequest, HttpResponse
from django.views.defaults import server_error

DATABASE_AWAY = "The database cannot be reached at the moment. Try again in a few seconds."
AWAY_STATES = ("08", "57P")  # SQLSTATE: exceptions of the connection; a server that stops or starts
RETRY_AFTER_S = 5


def failed_request(request: HttpRequest) -> HttpResponse:
    """Django's handler500, which is called while the exception is handled, wherever it was raised."""
    if not is_database_away(sys.exception()):
        return server_error(request)
    return HttpResponse(
        DATABASE_AWAY, status=503, content_type="text/plain; charset=utf-8", headers={"Retry-After": str(RETRY_AFTER_S)}
    )


def is_database_away(error: BaseException | None) -> bool:
    """Whether a query failed because its connection is lost, or the database stops or starts."""
    state = getattr(getattr(error, "__cause__", None), "sqlstate", None)
    return isinstance(error, InterfaceError) or (
        isinstance(error, OperationalError) and (state is None or state.startswith(AWAY_STATES))
    )
