"""The limit of JSON bodies."""

from collections.abc import Callable
from functools import wraps
from inspect import unwrap
from typing import Any

from django.http import HttpRequest, HttpResponse
from ninja.operation import Operation

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
