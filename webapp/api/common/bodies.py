"""The parser of JSON bodies, with limits."""

from typing import Any

from django.http import HttpRequest
from ninja.errors import HttpError
from ninja.parser import Parser

MAX_BYTES = 2**20  # JSON needs up to twenty times its length in memory; the largest plan or job file has 256 KiB


class LimitedParser(Parser):
    """Refuses bodies that are too large, and JSON that is nested too deeply, before they are read."""

    def parse_body(self, request: HttpRequest) -> dict[str, Any]:
        if len(request.body) > MAX_BYTES:
            raise HttpError(413, f"The JSON has more than {MAX_BYTES // 2**20} MiB. Split it into several requests.")
        try:
            return super().parse_body(request)
        except RecursionError as error:
            raise HttpError(400, "The JSON is nested too deeply.") from error
