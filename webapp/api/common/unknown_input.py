"""Refuses unknown query parameters and unexpected bodies."""

from collections.abc import Callable
from functools import wraps
from typing import Any

from django.http import HttpRequest, HttpResponse
from ninja.operation import Operation

from webapp.core.errors import Refusal

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
            there = f"Use {', '.join(known)}." if known else "It takes none."
            return f"query.{unknown[0]}: Unknown parameter. {there}"
        is_form = (request.content_type or "").startswith("multipart/")  # has boundaries even when it is empty
        if "body" not in sources and not is_form and request.body.strip() not in _NO_BODY:
            return "body: This operation takes no body. Remove it."
        return ""

    @wraps(run)
    def checked(request: HttpRequest, **path: Any) -> HttpResponse:
        if words := problem(request):
            return operation.api.on_exception(request, Refusal("request_refused", words))
        return run(request, **path)

    return checked
