"""Secrets that are shown once: enrolment tokens, API tokens, password links and webhook secrets.

    POST creates the secret, stores it in the session ──302──► GET removes it from the session and shows it

So a reload creates no second token, and no address or log contains the secret. Sessions are in the database; there the
secret is encrypted (Fernet) with a key derived from the settings' secret key, and expires after ten minutes.
"""

from collections.abc import Mapping

from cryptography.fernet import Fernet, InvalidToken
from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from webapp.core.tokens import fernet

KEPT_S = 600
_KEY = "shown_once"  # in the session: name of the page and of its subject -> encrypted secret


def keep(request: HttpRequest, name: str, secret: str) -> None:
    """Store the secret until the page with this name shows it."""
    encrypted = _fernet().encrypt(secret.encode()).decode()
    request.session[_KEY] = {**request.session.get(_KEY, {}), name: encrypted}


def take(request: HttpRequest, name: str) -> str:
    """Remove and return the secret; "" if it was shown before. A HEAD request does not remove it."""
    secrets = dict(request.session.get(_KEY, {}))
    if request.method != "GET" or name not in secrets:
        return ""
    encrypted: str = secrets.pop(name)
    request.session[_KEY] = secrets
    try:
        return _fernet().decrypt(encrypted, ttl=KEPT_S).decode()
    except InvalidToken:  # expired, or the secret key has changed
        return ""


def render_once(request: HttpRequest, template: str, context: Mapping[str, object]) -> HttpResponse:
    """Render a page with a secret; caches must not store it."""
    response = render(request, template, dict(context))
    response["Cache-Control"] = "no-store"
    return response


def _fernet() -> Fernet:
    return fernet(settings.SECRET_KEY, purpose=b"sweetspot shown once")
