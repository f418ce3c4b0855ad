"""Refuses addresses with a NUL character: PostgreSQL cannot store NUL in text, so no object has such an address."""

from collections.abc import Callable

from django.http import HttpRequest, HttpResponse, JsonResponse

WORDS = "The address contains a NUL character (%00), which no name can contain. Remove it."


def refuse_nul(get_response: Callable[[HttpRequest], HttpResponse]) -> Callable[[HttpRequest], HttpResponse]:
    """Middleware: answer such a request with 400 before any query."""

    def answer(request: HttpRequest) -> HttpResponse:
        if "\0" not in request.path_info and "%00" not in request.META.get("QUERY_STRING", ""):
            return get_response(request)
        if request.path_info.startswith("/api/"):
            return JsonResponse({"code": "request_refused", "message": WORDS}, status=400)
        return HttpResponse(WORDS, status=400, content_type="text/plain; charset=utf-8")

    return answer
