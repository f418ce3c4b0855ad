"""Refuses addresses with a NUL character: PostgreSQL cannot store NUL in text, so no object has such an address."""

from collections.abc import Callable

from django.http import HttpRequest, HttpResponse, JsonResponse

WORDS = "The address contains a NUL character (%00), which no name can contain. Remove it."


def refuse_nul(get_response: Callable[[HttpRequest], HttpResponse]) -> Callable[[HttpRequest], HttpResponse]:
    """Middleware: answer such a request before any query, with 404 if the path has it and 422 if a parameter has it."""

    def answer(request: HttpRequest) -> HttpResponse:
        in_path = "\0" in request.path_info
        if not in_path and "%00" not in request.META.get("QUERY_STRING", ""):
            return get_response(request)
        status = 404 if in_path else 422
        if request.path_info.startswith("/api/"):
            return JsonResponse(
                {"code": "not_found" if in_path else "request_refused", "message": WORDS}, status=status
            )
        return HttpResponse(WORDS, status=status, content_type="text/plain; charset=utf-8")

    return answer
