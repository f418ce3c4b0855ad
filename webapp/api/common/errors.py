"""Error responses: every error is {code, message}."""

from collections.abc import Callable
from typing import Any

from django.conf import settings
from django.core.exceptions import ObjectDoesNotExist, RequestDataTooBig
from django.db import DataError
from django.http import Http404, HttpRequest, HttpResponse
from ninja import NinjaAPI, Schema
from ninja.errors import AuthenticationError, HttpError, ValidationError

from webapp.api.common.schemas import MAX_PROBLEMS
from webapp.core.errors import NotFound, Refusal

_HTTP_CODES = {400: "request_refused", 403: "not_allowed", 405: "not_allowed"}

_STATUSES = {
    "not_allowed": 403,
    "token_may_not_arm": 403,
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
        NotFound: lambda error: (404, error.code, error.message),
        Refusal: lambda error: (_STATUSES.get(error.code, 422), error.code, error.message),
        ValidationError: _of_values,
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
        DataError: lambda _: (
            422,
            "request_refused",
            "The request contains a value that cannot be stored, for example a NUL or a number that is too large.",
        ),
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


def _of_values(error: ValidationError) -> tuple[int, str, str]:
    """422, or 404 if the value is a part of the path: no object has such an address."""
    if all(problem["loc"][0] == "path" for problem in error.errors):
        return 404, "not_found", "Not found. Check the address."
    return 422, "request_refused", _said(error)


def _too_large() -> str:
    return (
        f"The body has more than {settings.DATA_UPLOAD_MAX_MEMORY_SIZE // 2**20} MiB. Split it into several requests."
    )


def _said(error: ValidationError) -> str:
    """`body.targets: Field required; …`, of the first problems."""
    shown = error.errors[:MAX_PROBLEMS]
    places = [
        ".".join(str(step)[:100] for step in dict.fromkeys(problem["loc"]) if step != "payload") for problem in shown
    ]
    return "; ".join(f"{place}: {problem['msg'][:500]}" for place, problem in zip(places, shown, strict=True))
