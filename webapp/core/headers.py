"""Security headers of every response. Django's own middleware adds the others."""

from collections.abc import Callable

from django.conf import settings
from django.http import HttpRequest, HttpResponse

# All resources come from this server, none are inline. Tabler's style sheet contains pictures as `data:` URLs.
CONTENT_SECURITY_POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self' data:",
        "font-src 'self'",
        "connect-src 'self'",
        "form-action 'self'",
        "base-uri 'none'",
        "frame-ancestors 'none'",
    )
)
PERMISSIONS_POLICY = ", ".join(
    (*(f"{name}=()" for name in ("camera", "geolocation", "microphone", "payment", "usb")), "clipboard-write=(self)")
)
HEADERS = {
    "Content-Security-Policy": CONTENT_SECURITY_POLICY,
    "Permissions-Policy": PERMISSIONS_POLICY,
    "Cross-Origin-Resource-Policy": "same-origin",
}


def browser_limits(get_response: Callable[[HttpRequest], HttpResponse]) -> Callable[[HttpRequest], HttpResponse]:
    """Middleware."""

    def middleware(request: HttpRequest) -> HttpResponse:
        response = get_response(request)
        for name, value in HEADERS.items():
            response.headers.setdefault(name, value)
        if settings.SESSION_COOKIE_NAME in request.COOKIES or "Authorization" in request.headers:
            # Neither a proxy nor the browser's own store may keep what one person sees. Files of the front end say
            # themselves for how long they may be kept.
            response.headers.setdefault("Cache-Control", "no-store")
        return response

    return middleware
