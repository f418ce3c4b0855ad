"""The viewer's time zone: the browser names it in a cookie, and pages show times in it."""

from collections.abc import Callable
from datetime import datetime
from zoneinfo import ZoneInfo

from django.http import HttpRequest, HttpResponse
from django.utils import timezone

from webapp.core.windows import zone_names

COOKIE = "timezone"


def viewers_time_zone(get_response: Callable[[HttpRequest], HttpResponse]) -> Callable[[HttpRequest], HttpResponse]:
    """Middleware: activates the cookie's time zone during the request, or UTC without a valid one."""

    def middleware(request: HttpRequest) -> HttpResponse:
        name = request.COOKIES.get(COOKIE, "")
        with timezone.override(ZoneInfo(name if name in zone_names() else "UTC")):
            return get_response(request)

    return middleware


def viewers_time(at: datetime) -> str:
    """“2026-11-23 22:00 Europe/Berlin”: a time in the current time zone, which is the viewer's during a request."""
    return f"{timezone.localtime(at):%Y-%m-%d %H:%M} {timezone.get_current_timezone_name()}"
