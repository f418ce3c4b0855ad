"""Error responses: every error is {code, message}."""

from collections.abc import Callable
from typing import Any

from django.conf import settings
from django.core.exceptions import ObjectDoesNotExist, RequestDataTooBig
from django.db import DataError
from django.http import Http404, HttpRequest, HttpResponse
from ninja import NinjaAPI, Schema
from ninja.errors import AuthenticationError, HttpError, ValidationError

from webapp.core.errors import Refusal

_HTTP_CODES = {400: "request_refused", 403: "not_allowed", 405: "not_allowed"}

_STATUSES = {
    "not_allowed": 403,
    "plan_exists": 409,
    "group_exists": 409,
    "group_in_use": 409,
    "host_unavailable": 409,
    "target_unavailable": 409,
    "run_open": 409,
}


class Problem(Schema):
    """The body of every error response."""

    code: str
    message: str


def add_error_handlers(api: NinjaAPI) -> None:
    """Every error is {code, message}."""
    handlers: dict[type[Exception], Callable[[Any], tuple[int, str, str]]] = {
        Refusal: lambda error: (_status(error.code), error.code, error.message),
        ValidationError: lambda error: (422, "request_refused", _said(error)),
        AuthenticationError: lambda _: (401, "not_logged_in", "Log in, or send Authorization: Bearer <API token>."),
        HttpError: lambda error: (error.status_code, _HTTP_CODES.get(error.status_code, "refused"), str(error)),
        Http404: lambda _: (404, "not_found", "Not found. Check the address."),
        ObjectDoesNotExist: lambda _: (404, "not_found", "Not found. Check the address."),
        RequestDataTooBig: lambda _: (413, "too_large", _too_large()),
        # JSON can contain unpaired surrogates and NUL, PostgreSQL's text cannot
        UnicodeEncodeError: lambda _: (
            422,
            "request_refused",
            "The request contains an unpaired surrogate. Send valid Unicode.",
        ),
        DataError: lambda error: (422, "request_refused", _unkept(error)),
    }
    for kind, describe in handlers.items():
        api.add_exception_handler(kind, _handler(api, describe))


def _handler(
    api: NinjaAPI, describe: Callable[[Any], tuple[int, str, str]]
) -> Callable[[HttpRequest, Any], HttpResponse]:
    def answer(request: HttpRequest, error: Any) -> HttpResponse:
        status, code, message = describe(error)
        return api.create_response(request, {"code": code, "message": message}, status=status)

    return answer


def _status(code: str) -> int:
    """The status of a refusal: 404 not found, 403 not allowed, 422 invalid value."""
    if code.endswith("_unknown") and not code.startswith("compare_"):
        return 404
    return _STATUSES.get(code, 422)


def _unkept(error: DataError) -> str:
    """The first line of the error; further lines quote the statement."""
    return f"The request contains data that cannot be stored, for example a NUL: {str(error).splitlines()[0]}"


def _too_large() -> str:
    return (
        f"The body has more than {settings.DATA_UPLOAD_MAX_MEMORY_SIZE // 2**20} MiB. Split it into several requests."
    )


def _said(error: ValidationError) -> str:
    """`body.targets: Field required; …`."""
    places = [".".join(str(step) for step in dict.fromkeys(one["loc"]) if step != "payload") for one in error.errors]
    return "; ".join(f"{place}: {one['msg']}" for place, one in zip(places, error.errors, strict=True))
