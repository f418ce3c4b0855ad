"""PostgreSQL's text holds no NUL, so an address with one names nothing that is kept here."""

from collections.abc import Callable

from django.http import HttpRequest, HttpResponse, JsonResponse

WORDS = "The address holds a NUL character (%00), which nothing here can be called. Take it out."


def refuse_nul(get_response: Callable[[HttpRequest], HttpResponse]) -> Callable[[HttpRequest], HttpResponse]:
    """Middleware: such a request is answered with 400 before anything is looked up."""

    def answer(request: HttpRequest) -> HttpResponse:
        if "\0" not in request.path_info and "%00" not in request.META.get("QUERY_STRING", ""):
            return get_response(request)
        if request.path_info.startswith("/api/"):
            return JsonResponse({"code": "request_refused", "message": WORDS}, status=400)
        return HttpResponse(WORDS, status=400, content_type="text/plain; charset=utf-8")

    return answer
