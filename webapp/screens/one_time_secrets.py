"""A secret that is shown once: kept in the session from the POST that makes it to the GET that shows it.

For all of them: enrolment tokens, API tokens, password links and secrets of webhooks.

    POST makes it, keeps it ──302──► GET takes it and shows it; when it is loaded again there is nothing to take

So a reload makes no second token, and the secret is in no address and no log. Sessions lie in the database; there the
secret is encrypted (Fernet) with a key derived from the settings' secret key, and can be read for ten minutes.
"""

from collections.abc import Mapping

from cryptography.fernet import Fernet, InvalidToken
from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from webapp.core.sealing import fernet

KEPT_S = 600
_KEY = "shown_once"  # in the session: name of the page and of its subject -> encrypted secret


def keep(request: HttpRequest, name: str, secret: str) -> None:
    """Until the page of this name takes it."""
    encrypted = _fernet().encrypt(secret.encode()).decode()
    request.session[_KEY] = {**request.session.get(_KEY, {}), name: encrypted}


def take(request: HttpRequest, name: str) -> str:
    """The secret, which is gone from the session with that; "" where it was shown before. HEAD takes nothing."""
    kept = dict(request.session.get(_KEY, {}))
    if request.method != "GET" or name not in kept:
        return ""
    encrypted: str = kept.pop(name)
    request.session[_KEY] = kept
    try:
        return _fernet().decrypt(encrypted, ttl=KEPT_S).decode()
    except InvalidToken:  # too old, or the secret key was changed
        return ""


def render_once(request: HttpRequest, template: str, context: Mapping[str, object]) -> HttpResponse:
    """A page with a secret: no cache keeps it."""
    response = render(request, template, dict(context))
    response["Cache-Control"] = "no-store"
    return response


def _fernet() -> Fernet:
    return fernet(settings.SECRET_KEY, purpose=b"sweetspot shown once")
