"""Errors under /api/ that no operation answers, such as an unknown address, as {code, message} instead of a page."""

from collections.abc import Callable

from django.http import HttpRequest, HttpResponse, JsonResponse

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


def json_errors(get_response: Callable[[HttpRequest], HttpResponse]) -> Callable[[HttpRequest], HttpResponse]:
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
