"""Refuses unknown query parameters and unexpected bodies."""

from collections.abc import Callable
from functools import wraps
from typing import Any

from django.core.exceptions import RequestDataTooBig
from django.http import HttpRequest, HttpResponse
from ninja.operation import Operation

from webapp.core.errors import Refusal
from webapp.core.nearest import instead

_NO_BODY = (b"", b"{}", b"null")


def refuse_unknown_input(run: Callable[..., HttpResponse]) -> Callable[..., HttpResponse]:
    """Decorator of an operation: refuse unknown parameters and unexpected bodies instead of ignoring them."""
    operation: Operation = run.__self__  # type: ignore[attr-defined]  # of a bound method
    sources = {model.__ninja_param_source__: model for model in operation.models}
    reads_address = bool((operation.openapi_extra or {}).get("parameters"))  # and refuses unknown fields
    known = sorted(getattr(sources.get("query"), "__ninja_flatten_map__", ()))

    def problem(request: HttpRequest) -> str:
        unknown = [] if reads_address else [key for key in request.GET if key not in known]
        if unknown:
            return f"query.{unknown[0]}: Unknown parameter. {instead(unknown[0], known)}"
        if (request.content_type or "").startswith("multipart/"):  # has boundaries even when it is empty
            return ""
        if request.body.strip() not in _NO_BODY and "body" not in sources:
            return "body: This operation takes no body. Remove it."
        return ""

    @wraps(run)
    def checked(request: HttpRequest, **path: Any) -> HttpResponse:
        try:
            words = problem(request)
        except RequestDataTooBig as error:
            return operation.api.on_exception(request, error)
        if words:
            return operation.api.on_exception(request, Refusal("request_refused", words))
        return run(request, **path)

    return checked
