"""A secret that is shown once: kept in the session from the POST that makes it to the GET that shows it.

    POST makes it, keeps it ──302──► GET takes it and shows it; when it is loaded again there is nothing to take

So a reload makes no second token, and the secret is in no address and no log.
"""

from collections.abc import Mapping

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

_KEY = "shown_once"  # in the session: name of the page and of its subject -> secret


def keep(request: HttpRequest, name: str, secret: str) -> None:
    """Until the page of this name takes it, or the session ends."""
    request.session[_KEY] = {**request.session.get(_KEY, {}), name: secret}


def take(request: HttpRequest, name: str) -> str:
    """The secret, which is gone from the session with that; "" where it was shown before. HEAD takes nothing."""
    kept = dict(request.session.get(_KEY, {}))
    secret: str = kept.pop(name, "") if request.method == "GET" else ""
    if secret:
        request.session[_KEY] = kept
    return secret


def render_once(request: HttpRequest, template: str, context: Mapping[str, object]) -> HttpResponse:
    """A page with a secret: no cache keeps it."""
    response = render(request, template, dict(context))
    response["Cache-Control"] = "no-store"
    return response
