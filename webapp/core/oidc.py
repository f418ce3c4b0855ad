"""Log-in by an identity provider with OpenID Connect: mozilla-django-oidc, with stricter checks of the ID token.

    browser → /login/oidc/ → provider → /login/oidc/callback/ → code for tokens → ID token is checked → session

The provider's addresses come from its discovery document. Beside signature and nonce, which the library checks, the
issuer, audience and expiry must be right. https://openid.net/specs/openid-connect-core-1_0.html#IDTokenValidation
"""

import time
from functools import cache
from typing import Any

import jwt
import requests
from django.conf import settings
from django.contrib.auth.backends import ModelBackend
from django.core.exceptions import SuspiciousOperation
from mozilla_django_oidc.auth import OIDCAuthenticationBackend

from webapp.core.errors import Refusal
from webapp.core.external_login import Identity, known_person
from webapp.core.models import User

_ENDPOINTS = {
    "OIDC_OP_AUTHORIZATION_ENDPOINT": "authorization_endpoint",
    "OIDC_OP_TOKEN_ENDPOINT": "token_endpoint",
    "OIDC_OP_USER_ENDPOINT": "userinfo_endpoint",
    "OIDC_OP_JWKS_ENDPOINT": "jwks_uri",
}
CLOCK_TOLERANCE_S = 60
FAILURE_SECONDS = 30
_ask_again: dict[str, float] = {}  # time.monotonic() at which an issuer that failed is asked again


def oidc_setting(name: str, *default: Any) -> Any:
    """A setting of the library; addresses of the provider come from its discovery document."""
    if name in _ENDPOINTS:
        return discovered(settings.OIDC_ISSUER).get(_ENDPOINTS[name])
    return getattr(settings, name, *default)


def discovered(issuer: str) -> dict[str, Any]:
    """The discovery document. After a failure, fails for FAILURE_SECONDS without asking the provider again.

    Raises requests.RequestException, or SuspiciousOperation for a document of another issuer.
    """
    if time.monotonic() < _ask_again.get(issuer, 0):
        raise SuspiciousOperation("The identity provider did not answer a moment ago.")
    try:
        return fetched(issuer)
    except (requests.RequestException, SuspiciousOperation, ValueError):
        _ask_again[issuer] = time.monotonic() + FAILURE_SECONDS
        raise


@cache
def fetched(issuer: str) -> dict[str, Any]:
    answer = requests.get(
        f"{issuer}/.well-known/openid-configuration", timeout=settings.OIDC_TIMEOUT, verify=settings.OIDC_VERIFY_SSL
    )
    answer.raise_for_status()
    found: dict[str, Any] = answer.json()
    if str(found.get("issuer", "")).rstrip("/") != issuer:
        raise SuspiciousOperation("The discovery document names another issuer.")
    return found


class OidcBackend(OIDCAuthenticationBackend):  # type: ignore[misc]  # the library has no types
    get_settings = staticmethod(oidc_setting)
    get_user = ModelBackend.get_user  # finds only enabled accounts; that of the library finds all

    def __init__(self) -> None:
        """The library reads the provider's addresses here; `authenticate` does so when they are needed."""
        self.UserModel = User

    def authenticate(self, request: Any, **credentials: Any) -> User | None:
        if not settings.OIDC_ISSUER or "nonce" not in credentials:
            return None
        super().__init__()
        found: User | None = super().authenticate(request, **credentials)
        return found

    def _verify_jws(self, payload: str, key: Any) -> dict[str, Any]:
        try:
            found: dict[str, Any] = jwt.decode(
                payload,
                key,
                algorithms=[settings.OIDC_RP_SIGN_ALGO],
                audience=settings.OIDC_RP_CLIENT_ID,
                issuer=discovered(settings.OIDC_ISSUER)["issuer"],
                leeway=CLOCK_TOLERANCE_S,
                options={"require": ["exp", "iat", "sub", "aud", "iss"]},
            )
        except jwt.PyJWTError as error:
            raise SuspiciousOperation(f"The ID token is not valid: {error}") from error
        return found

    def get_or_create_user(self, access_token: str, id_token: str, payload: dict[str, Any]) -> User:
        claims = payload | self._userinfo(access_token, id_token, payload)
        name = claims.get(settings.OIDC_NAME_CLAIM)
        return known_person(
            Identity(
                id=f"oidc {payload['iss']} {payload['sub']}",
                name=name if isinstance(name, str) else "",
                groups=groups_in(claims.get(settings.OIDC_GROUPS_CLAIM)),
            )
        )

    def _userinfo(self, access_token: str, id_token: str, payload: dict[str, Any]) -> dict[str, Any]:
        """Further claims; {} if the provider has no such address."""
        if not self.OIDC_OP_USER_ENDPOINT:
            return {}
        found: dict[str, Any] = self.get_userinfo(access_token, id_token, payload)
        if not isinstance(found, dict) or found.get("sub") != payload["sub"]:
            raise SuspiciousOperation("The user information is about somebody else.")
        return found


def groups_in(claim: Any) -> list[str]:
    """The groups of the claim: none, one text, or a list of texts. Raises Refusal for anything else."""
    groups = [] if claim is None else [claim] if isinstance(claim, str) else claim
    if not isinstance(groups, list) or not all(isinstance(group, str) for group in groups):
        words = f"The identity provider sent the claim {settings.OIDC_GROUPS_CLAIM}, but not as a list of names."
        raise Refusal("groups_refused", f"{words} Ask an admin of this server.")
    return groups
