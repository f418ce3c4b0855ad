"""/healthz and /metrics for monitoring systems, without a log-in."""

import secrets

from django.conf import settings
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe
from prometheus_client import CONTENT_TYPE_PLAIN_0_0_4

from webapp.core import health
from webapp.core.health import OTHER_MIGRATIONS, readiness
from webapp.gauges import exposition
from webapp.settings.environment import is_loopback

_FORWARDED = ("HTTP_X_FORWARDED_FOR", "HTTP_X_REAL_IP", "HTTP_FORWARDED", "HTTP_VIA")


@never_cache
@require_safe
def live(_request: HttpRequest) -> HttpResponse:
    """Liveness: the process answers. It checks no other part, so a missing database causes no restart."""
    return JsonResponse({"status": "ok"})


@never_cache
@require_safe
def ready(request: HttpRequest) -> HttpResponse:
    """Readiness: 200, or 503 with the names of the failed parts. `?without=tasks` checks only what requests need.

    Warnings do not change the status.
    """
    parts = readiness(without=request.GET.getlist("without"))
    good = all(parts.values())
    warnings = [*health.certificate_warnings(), *([] if parts.get("migrations", True) else [OTHER_MIGRATIONS])]
    answer = {"status": "ok" if good else "unavailable", "parts": parts, "warnings": warnings}
    return JsonResponse(answer, status=200 if good else 503)


@never_cache
@require_safe
def metrics(request: HttpRequest) -> HttpResponse:
    if not _may_read_metrics(request):
        words = "Set SWEETSPOT_METRICS_TOKEN at the server and send it as Authorization: Bearer. "
        return HttpResponse(words + "Without it, only loopback may read metrics.\n", "text/plain", 403)
    return HttpResponse(exposition(), CONTENT_TYPE_PLAIN_0_0_4)


def _may_read_metrics(request: HttpRequest) -> bool:
    """If a token is set, the token decides. Otherwise only loopback without a proxy, which may be on loopback too."""
    if settings.METRICS_TOKEN:
        scheme, _, token = request.headers.get("Authorization", "").partition(" ")
        return scheme.lower() == "bearer" and secrets.compare_digest(token.encode(), settings.METRICS_TOKEN.encode())
    forwarded = settings.SECURE_PROXY_SSL_HEADER or any(name in request.META for name in _FORWARDED)
    return not forwarded and is_loopback(request.META.get("REMOTE_ADDR", ""))
