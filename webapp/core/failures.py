"""The answer to a request that failed: 500, 503 while the database restarts, or 404 and 409 for what another request
deleted or changed at the same time."""

import sys

from django.core.exceptions import ObjectDoesNotExist
from django.db import DatabaseError, InterfaceError, OperationalError
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.defaults import server_error

from webapp.core.errors import NotFound

DATABASE_AWAY = "The database cannot be reached at the moment. Try again in a few seconds."
AWAY_STATES = ("08", "57P")  # SQLSTATE: exceptions of the connection; a server that stops or starts
CONFLICT_STATES = ("23503", "23505", "40")  # a foreign key or a unique value; deadlocks
RETRY_AFTER_S = 5


def failed_request(request: HttpRequest) -> HttpResponse:
    """Django's handler500, which is called while the exception is handled, wherever it was raised."""
    error = sys.exception()
    if isinstance(error, ObjectDoesNotExist | NotFound):
        return render(request, "404.html", status=404)
    if is_conflict(error):
        return render(request, "409.html", status=409)
    if not is_database_away(error):
        return server_error(request)
    return HttpResponse(
        DATABASE_AWAY, status=503, content_type="text/plain; charset=utf-8", headers={"Retry-After": str(RETRY_AFTER_S)}
    )


def is_database_away(error: BaseException | None) -> bool:
    """Whether a query failed because its connection is lost, or the database stops or starts."""
    state = _sqlstate(error)
    return isinstance(error, InterfaceError) or (
        isinstance(error, OperationalError) and (state is None or state.startswith(AWAY_STATES))
    )


def is_conflict(error: BaseException | None) -> bool:
    """Whether a statement failed because of rows that another request wrote or deleted at the same time."""
    return isinstance(error, DatabaseError) and (_sqlstate(error) or "").startswith(CONFLICT_STATES)


def _sqlstate(error: BaseException | None) -> str | None:
    return getattr(getattr(error, "__cause__", None), "sqlstate", None)
