"""Error responses: every error is {code, message}; and input that is refused before an operation sees it."""

from collections.abc import Callable, Iterable
from functools import wraps
from inspect import unwrap
from typing import Any

from django.conf import settings
from django.core.exceptions import ObjectDoesNotExist, RequestDataTooBig
from django.db import DataError
from django.http import Http404, HttpRequest, HttpResponse
from ninja import NinjaAPI, Schema
from ninja.errors import AuthenticationError, HttpError, ValidationError
from ninja.operation import Operation
from ninja.parser import Parser

from webapp.api.common.schemas import MAX_PROBLEMS
from webapp.core.errors import NotFound, Refusal, instead

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


# Refuses unknown query parameters, unexpected bodies, and bodies that are too large or nested too deeply.

# The limit of JSON bodies.

MAX_BYTES = 2**20  # JSON needs up to twenty times its length in memory; the largest plan or job file has 256 KiB


def refuse_large_json(run: Callable[..., HttpResponse]) -> Callable[..., HttpResponse]:
    """Decorator of an operation: refuse a body that is too large before it is read. Uploads have their own limits."""
    operation: Operation = unwrap(run).__self__  # of a bound method
    reads_json = any(model.__ninja_param_source__ == "body" for model in operation.models)

    @wraps(run)
    def checked(request: HttpRequest, **path: Any) -> HttpResponse:
        if reads_json and int(request.META.get("CONTENT_LENGTH") or 0) > MAX_BYTES:
            words = f"The JSON has more than {MAX_BYTES // 2**20} MiB. Split it into several requests."
            return operation.api.create_response(request, {"code": "too_large", "message": words}, status=413)
        return run(request, **path)

    return checked


MAX_LEVELS = 100  # Python fails to compare or print lists in lists of some hundred levels; a plan has six


class ShallowParser(Parser):
    def parse_body(self, request: HttpRequest) -> dict[str, Any]:
        """Raises ValueError, which ninja answers with status 400, or RecursionError."""
        body = super().parse_body(request)
        level: list[object] = [body]
        for _ in range(MAX_LEVELS):
            level = [value for item in level for value in _values(item)]
            if not level:
                return body
        raise ValueError(f"The JSON is nested more deeply than {MAX_LEVELS} levels.")


def _values(item: object) -> Iterable[object]:
    return item.values() if isinstance(item, dict) else item if isinstance(item, list) else ()


_NO_BODY = (b"", b"{}", b"null")


def refuse_unknown_input(run: Callable[..., HttpResponse]) -> Callable[..., HttpResponse]:
    """Decorator of an operation: refuse unknown parameters and unexpected bodies instead of ignoring them.

    The operation reads its values after it has checked the role, so the check of unknown ones stands before that.
    """
    operation: Operation = run.__self__  # type: ignore[attr-defined]  # of a bound method
    sources = {model.__ninja_param_source__: model for model in operation.models}
    reads_address = bool((operation.openapi_extra or {}).get("parameters"))  # and refuses unknown fields
    known = sorted(getattr(sources.get("query"), "__ninja_flatten_map__", ()))
    read_values = operation._get_values

    def check(request: HttpRequest) -> None:
        unknown = [] if reads_address else [key for key in request.GET if key not in known]
        if unknown:
            raise Refusal(
                "request_refused", f"query.{unknown[0][:100]}: Unknown parameter. {instead(unknown[0], known)}"
            )
        if (request.content_type or "").startswith("multipart/"):  # has boundaries even when it is empty
            return
        if request.body.strip() not in _NO_BODY and "body" not in sources:
            raise Refusal("request_refused", "body: This operation takes no body. Remove it.")

    def checked_values(request: HttpRequest, path_params: Any, temporal_response: HttpResponse) -> dict[str, Any]:
        check(request)
        return read_values(request, path_params, temporal_response)

    operation._get_values = checked_values  # type: ignore[method-assign]
    return run
