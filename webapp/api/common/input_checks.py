"""Refuses unknown query parameters, unexpected bodies, and bodies that are too large or nested too deeply."""

from collections.abc import Callable, Iterable
from functools import wraps
from inspect import unwrap
from typing import Any

from django.http import HttpRequest, HttpResponse
from ninja.operation import Operation
from ninja.parser import Parser

from webapp.core.errors import Refusal, instead

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
