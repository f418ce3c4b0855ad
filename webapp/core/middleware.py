"""Middleware: headers, errors of the API, values that cannot be stored, the viewer's time zone, built
files; and the answer to a request that failed."""

import logging
import sys
from collections.abc import Callable
from zoneinfo import ZoneInfo

from django.conf import settings
from django.core.exceptions import ObjectDoesNotExist
from django.db import DatabaseError, DataError, InterfaceError, OperationalError
from django.http import HttpRequest, HttpResponse, HttpResponseNotFound, JsonResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.defaults import server_error
from whitenoise.middleware import WhiteNoiseMiddleware
from whitenoise.responders import StaticFile

from webapp.core.errors import NotFound, Refusal
from webapp.core.windows import zone_names

logger = logging.getLogger(__name__)
Answer = Callable[[HttpRequest], HttpResponse]

# Security headers of every response. Django's own middleware adds the others.

# All resources come from this server, none are inline. Tabler's style sheet contains pictures as `data:` URLs.
CONTENT_SECURITY_POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self' data:",
        "font-src 'self'",
        "connect-src 'self'",
        "form-action 'self'",
        "base-uri 'none'",
        "frame-ancestors 'none'",
    )
)
PERMISSIONS_POLICY = ", ".join(
    (*(f"{name}=()" for name in ("camera", "geolocation", "microphone", "payment", "usb")), "clipboard-write=(self)")
)
HEADERS = {
    "Content-Security-Policy": CONTENT_SECURITY_POLICY,
    "Permissions-Policy": PERMISSIONS_POLICY,
    "Cross-Origin-Resource-Policy": "same-origin",
}


def browser_limits(get_response: Answer) -> Answer:
    """Middleware."""

    def middleware(request: HttpRequest) -> HttpResponse:
        response = get_response(request)
        for name, value in HEADERS.items():
            response.headers.setdefault(name, value)
        if settings.SESSION_COOKIE_NAME in request.COOKIES or "Authorization" in request.headers:
            # Neither a proxy nor the browser's own store may keep what one person sees. Files of the front end say
            # themselves for how long they may be kept.
            response.headers.setdefault("Cache-Control", "no-store")
        return response

    return middleware


# Errors under /api/ that no operation answers, such as an unknown address, as {code, message} instead of a page.

_KEPT_HEADERS = ("Retry-After",)
_CODES = {
    400: "request_refused",
    403: "not_allowed",
    404: "not_found",
    405: "method_not_allowed",
    409: "changed_meanwhile",
    413: "too_large",
    429: "too_many_requests",
    500: "server_failed",
    503: "busy",
}
_MESSAGES = {
    400: "The request cannot be read.",
    403: "The page is out of date. Load it again, or send an API token.",  # the CSRF check: all else is an operation's
    404: "There is nothing at this address. /api/v1/openapi.json lists all addresses.",
    409: "Another request changed the same data at the same time. Read them again, then repeat the request.",
    413: "The body is too large. Split it into several requests.",
    429: "Too many requests. Try again later.",
    500: "The server failed. Its log has the reason.",
    503: "The server is busy, or its database restarts. Try again later.",
}


def json_errors(get_response: Answer) -> Answer:
    """Middleware."""

    def middleware(request: HttpRequest) -> HttpResponse:
        response = get_response(request)
        if response.status_code < 400 or not request.path.startswith("/api/") or _is_json(response):
            return response
        return _problem(request, response)

    return middleware


def _is_json(response: HttpResponse) -> bool:
    return response.headers.get("Content-Type", "").startswith("application/json")


def _problem(request: HttpRequest, response: HttpResponse) -> HttpResponse:
    status, allowed = response.status_code, _sorted(response.headers.get("Allow", ""))
    message = _MESSAGES.get(status, response.reason_phrase)
    if status == 405:
        message = f"This address does not accept {request.method}. Use {allowed}."
    body = {"code": _CODES.get(status, "refused"), "message": message}
    headers = {name: text for name in _KEPT_HEADERS if (text := response.headers.get(name))}
    return JsonResponse(body, status=status, headers=headers | ({"Allow": allowed} if allowed else {}))


def _sorted(methods: str) -> str:
    return ", ".join(sorted(methods.split(", ")))


# Addresses with a NUL character: PostgreSQL cannot store NUL in text, so no object has such an address.

NUL_IN_ADDRESS = "The address contains a NUL character (%00), which no name can contain. Remove it."


def refuse_nul(get_response: Answer) -> Answer:
    """Middleware: answer such a request before any query, with 404 if the path has it and 422 if a parameter has it."""

    def answer(request: HttpRequest) -> HttpResponse:
        in_path = "\0" in request.path_info
        if not in_path and "%00" not in request.META.get("QUERY_STRING", ""):
            return get_response(request)
        status = 404 if in_path else 422
        if request.path_info.startswith("/api/"):
            return JsonResponse(
                {"code": "not_found" if in_path else "request_refused", "message": NUL_IN_ADDRESS}, status=status
            )
        return HttpResponse(NUL_IN_ADDRESS, status=status, content_type="text/plain; charset=utf-8")

    return answer


# Pages whose request has a value that no form has checked: it is not a failure of the server. The API has its own
# handlers (webapp/api/common/errors.py).

UNSTORABLE = "The request has a value that cannot be stored, such as a NUL, or a number that is too large. Correct it."


FORM_ONLY = "A form sends to this address; it cannot be opened. Go back to the page with the form."


class RefusedValues:
    """Middleware: 422 for a Refusal that the page does not show itself, and for a value that PostgreSQL refuses; words
    for the address of a form that somebody opens, because Django's answer is an empty page."""

    def __init__(self, get_response: Answer) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        response = self.get_response(request)
        if response.status_code == 405 and request.method == "GET" and not request.path.startswith("/api/"):
            words = _text(FORM_ONLY, 405)
            words.headers["Allow"] = response.headers["Allow"]
            return words
        return response

    def process_exception(self, request: HttpRequest, exception: Exception) -> HttpResponse | None:
        if isinstance(exception, Refusal):
            return _text(exception.message, 404 if isinstance(exception, NotFound) else 422)
        if isinstance(exception, DataError | UnicodeEncodeError):
            logger.warning("%s %s has a value that cannot be stored.", request.method, request.path, exc_info=exception)
            return _text(UNSTORABLE, 422)
        return None


def _text(words: str, status: int) -> HttpResponse:
    return HttpResponse(words, status=status, content_type="text/plain; charset=utf-8")


# The viewer's time zone: the browser names it in a cookie, and pages show times in it.

COOKIE = "timezone"


def viewers_time_zone(get_response: Answer) -> Answer:
    """Middleware: activates the cookie's time zone during the request, or UTC without a valid one."""

    def middleware(request: HttpRequest) -> HttpResponse:
        name = request.COOKIES.get(COOKIE, "")
        with timezone.override(ZoneInfo(name if name in zone_names() else "UTC")):
            return get_response(request)

    return middleware


# The built front end, served with WhiteNoise.

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


# The answer to a request that failed: 500, 503 while the database restarts, or 404 and 409 for what another request
# deleted or changed at the same time.

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
