"""Log-in by an identity provider with OpenID Connect: mozilla-django-oidc, with stricter checks of the ID token.

    browser → /login/oidc/ → provider → /login/oidc/callback/ → code for tokens → ID token is checked → session

The provider's addresses come from its discovery document. Beside signature and nonce, which the library checks, the
issuer, audience, authorised party, subject and expiry must be right.
https://openid.net/specs/openid-connect-core-1_0.html#IDTokenValidation

The library reads answers of any size and follows redirects, so this module sends the requests: an answer of the
provider has MAX_ANSWER_BYTES and OIDC_TIMEOUT seconds in all, and is a JSON object.
"""

import json
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from typing import Any

import jwt
import requests
from django.conf import settings
from django.contrib.auth.backends import ModelBackend
from django.core.exceptions import SuspiciousOperation
from mozilla_django_oidc.auth import OIDCAuthenticationBackend
from requests.adapters import HTTPAdapter
from urllib3.connectionpool import HTTPConnectionPool

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
MAX_ANSWER_BYTES = 1 << 20
MAX_SUBJECT_CHARACTERS = 255  # of OpenID Connect Core 1.0, chapter 2
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
    document = _json_object(_answer("GET", f"{issuer}/.well-known/openid-configuration").content)
    if str(document.get("issuer", "")).rstrip("/") != issuer:
        raise SuspiciousOperation("The discovery document names another issuer.")
    scheme = issuer.partition(":")[0]
    for name in _ENDPOINTS.values():
        address = document.get(name)
        if address is not None and not str(address).startswith(f"{scheme}://"):
            raise SuspiciousOperation(f"The {name} of the discovery document does not begin with {scheme}://.")
    return document


def _answer(method: str, address: str, **options: Any) -> requests.Response:
    """The provider's answer with its content. Raises requests.RequestException."""
    with requests.Session() as session, _time_limit(session, address):
        response = session.request(
            method,
            address,
            stream=True,
            allow_redirects=False,  # the request may contain the secret of the client
            timeout=settings.OIDC_TIMEOUT,
            verify=settings.OIDC_VERIFY_SSL,
            **options,
        )
        if response.status_code != 200:
            raise requests.HTTPError(f"{address} answered with status {response.status_code}.")
        content = b""
        for part in response.iter_content(1 << 16):
            content += part
            if len(content) > MAX_ANSWER_BYTES:
                raise requests.RequestException(f"The answer of {address} has more than {MAX_ANSWER_BYTES} bytes.")
        response._content = content  # what `response.content` returns
        return response


@contextmanager
def _time_limit(session: requests.Session, address: str) -> Iterator[None]:
    """Cut the connections of the session after OIDC_TIMEOUT, also while the provider is still sending.

    The timeout of requests is that of each read, so a provider that sends a byte from time to time would never end.
    """
    passed = threading.Event()
    adapter = _Adapter(passed)
    session.mount("https://", adapter)
    session.mount("http://", adapter)

    def cut() -> None:
        passed.set()
        for handle in adapter.handles:
            with suppress(OSError):  # the provider was faster
                handle.shutdown(socket.SHUT_RDWR)

    timer = threading.Timer(settings.OIDC_TIMEOUT, cut)
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()
        for handle in adapter.handles:
            handle.close()
    if passed.is_set():  # a connection that is cut may look like the end of the answer
        raise requests.Timeout(f"{address} did not answer within {settings.OIDC_TIMEOUT} s.")


class _Adapter(HTTPAdapter):
    """Keeps a handle of the socket of each connection, because TLS takes over the socket itself.

    `passed`: the time is over, so a new connection is useless.
    """

    def __init__(self, passed: threading.Event) -> None:
        super().__init__()
        self.passed = passed
        self.handles: list[socket.socket] = []

    def get_connection_with_tls_context(self, *arguments: Any, **options: Any) -> HTTPConnectionPool:
        pool: HTTPConnectionPool = super().get_connection_with_tls_context(*arguments, **options)
        handles, passed = self.handles, self.passed

        class Connection(pool.ConnectionCls):  # type: ignore[misc, name-defined]  # HTTP or HTTPS
            def _new_conn(self) -> socket.socket:
                sock: socket.socket = super()._new_conn()
                handles.append(sock.dup())
                if passed.is_set():
                    sock.shutdown(socket.SHUT_RDWR)
                return sock

        pool.ConnectionCls = Connection
        return pool


def _json_object(content: bytes) -> dict[str, Any]:
    """Raises ValueError for everything but a JSON object."""
    try:
        document = json.loads(content)
    except RecursionError as error:
        raise ValueError("The JSON is nested too deeply.") from error
    if not isinstance(document, dict):
        raise ValueError("The JSON is not an object.")
    return document


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
        user: User | None = super().authenticate(request, **credentials)
        return user

    def get_token(self, payload: dict[str, Any]) -> dict[str, Any]:
        return _json_object(_answer("POST", self.OIDC_OP_TOKEN_ENDPOINT, data=payload).content)

    def retrieve_matching_jwk(self, token: str) -> jwt.PyJWK:
        """The provider's key with the id and algorithm of the token. The last one counts, as in the library."""
        keys = _json_object(_answer("GET", self.OIDC_OP_JWKS_ENDPOINT).content).get("keys")
        header = jwt.get_unverified_header(token)
        matching = [
            key
            for key in (keys if isinstance(keys, list) else ())
            if isinstance(key, dict)
            and (key.get("kid"), key.get("alg", header.get("alg"))) == (header.get("kid"), header.get("alg"))
        ]
        if not matching or "kid" not in header:
            raise SuspiciousOperation("The identity provider has no key for the token.")
        try:
            return jwt.PyJWK(matching[-1])
        except (jwt.PyJWTError, ValueError, TypeError) as error:
            raise SuspiciousOperation(f"The key of the identity provider cannot be read: {error}") from error

    def _verify_jws(self, payload: str, key: Any) -> dict[str, Any]:
        try:
            claims: dict[str, Any] = jwt.decode(
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
        # A token for several audiences was issued to the authorised party, and others may have got it.
        audiences = claims["aud"] if isinstance(claims["aud"], list) else [claims["aud"]]
        party = claims.get("azp", settings.OIDC_RP_CLIENT_ID if len(set(audiences)) == 1 else None)
        if party != settings.OIDC_RP_CLIENT_ID:
            raise SuspiciousOperation("The ID token was issued to another client.")
        if not 0 < len(claims["sub"]) <= MAX_SUBJECT_CHARACTERS:
            raise SuspiciousOperation(f"The subject of the ID token has not 1 to {MAX_SUBJECT_CHARACTERS} characters.")
        return claims

    def get_or_create_user(self, access_token: str, id_token: str, payload: dict[str, Any]) -> User:  # noqa: ARG002
        claims = payload | self._userinfo(access_token, payload)
        name = claims.get(settings.OIDC_NAME_CLAIM)
        return known_person(
            Identity(
                id=f"oidc {payload['iss']} {payload['sub']}",
                name=name if isinstance(name, str) else "",
                groups=groups_in(claims.get(settings.OIDC_GROUPS_CLAIM)),
            )
        )

    def _userinfo(self, access_token: str, payload: dict[str, Any]) -> dict[str, Any]:
        """Further claims; {} if the provider has no such address."""
        if not self.OIDC_OP_USER_ENDPOINT:
            return {}
        headers = {"Authorization": f"Bearer {access_token}"}
        response = _answer("GET", self.OIDC_OP_USER_ENDPOINT, headers=headers)
        signed = response.headers.get("Content-Type", "").lower().startswith("application/jwt")
        claims = self.verify_token(response.content.decode()) if signed else _json_object(response.content)
        if claims.get("sub") != payload["sub"]:
            raise SuspiciousOperation("The user information is about somebody else.")
        return claims


def groups_in(claim: Any) -> list[str]:
    """The groups of the claim: none, one text, or a list of texts. Raises Refusal for anything else."""
    groups = [] if claim is None else [claim] if isinstance(claim, str) else claim
    if not isinstance(groups, list) or not all(isinstance(group, str) for group in groups):
        words = f"The identity provider sent the claim {settings.OIDC_GROUPS_CLAIM}, but not as a list of names."
        raise Refusal("groups_refused", f"{words} Ask an admin of this server.")
    return groups
