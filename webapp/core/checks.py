"""System checks, before the server starts: settings that would make an installation unsafe or unusable."""

from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.core.checks import CheckMessage, Error, Tags, Warning, register
from django.core.exceptions import ImproperlyConfigured

from webapp.settings.environment import is_loopback

MIN_SECRET_LENGTH = 50
MIN_DISTINCT_CHARACTERS = 5
MAX_PROXIES = 256
SIGNATURES = ("RS256", "RS384", "RS512", "ES256", "ES384", "ES512")
KNOWN_BAD = ("changeme", "change-me", "django-insecure", "insecure", "secret", "password")


@register(Tags.security)
def secret_key(**_: Any) -> list[CheckMessage]:
    """The secret key protects sessions and the server's signing key; anyone who guesses it controls the hosts."""
    key = settings.SECRET_KEY
    weak = len(key) < MIN_SECRET_LENGTH or len(set(key)) < MIN_DISTINCT_CHARACTERS
    if not weak and not key.lower().startswith(KNOWN_BAD):
        return []
    return [
        Error(
            "SWEETSPOT_SECRET_KEY is too short or can be guessed; with it anybody can forge sessions "
            "and read the key that signs orders.",
            hint="Set it to 50 or more random characters, for example: openssl rand -base64 48",
            id="sweetspot.E001",
        )
    ]


@register(Tags.database)
def database_is_postgresql(**_: Any) -> list[CheckMessage]:
    """The rules rely on PostgreSQL's constraints, row locks and JSON indexes, so no other database works."""
    if settings.DATABASES["default"]["ENGINE"] == "webapp.core.postgresql":
        return []
    return [
        Error(
            "The database is not PostgreSQL.",
            hint="Set SWEETSPOT_DATABASE_URL to postgres://user:password@host:port/name.",
            id="sweetspot.E002",
        )
    ]


@register()
def waiting_times(**_: Any) -> list[CheckMessage]:
    """An order must be sent again well before its lease ends, or one lost message loses the attempt."""
    if 0 < settings.REPUBLISH_SECONDS < settings.LEASE_SECONDS and settings.ORDER_EXPIRES_SECONDS > 0:
        return []
    return [
        Error(
            f"SWEETSPOT_REPUBLISH_SECONDS ({settings.REPUBLISH_SECONDS}) must be above 0 and below "
            f"SWEETSPOT_LEASE_SECONDS ({settings.LEASE_SECONDS}).",
            id="sweetspot.E003",
        )
    ]


@register(Tags.security)
def host_names(**_: Any) -> list[CheckMessage]:
    """With `*` the server believes any Host header, and writes it into password links and enrolment commands."""
    if "*" not in settings.ALLOWED_HOSTS:
        return []
    return [
        Error(
            "SWEETSPOT_ALLOWED_HOSTS contains *: anybody could choose the address in password links.",
            hint="List the names that browsers and hosts use.",
            id="sweetspot.E004",
        )
    ]


@register(Tags.security)
def encryption(**_: Any) -> list[CheckMessage]:
    """Passwords, sessions and tokens may cross a network only encrypted."""
    names = {urlsplit(settings.PUBLIC_URL).hostname or "", *settings.ALLOWED_HOSTS}
    public = sorted(name for name in names - {"testserver"} if not is_loopback(name.strip("[]")))
    if (settings.HTTPS and settings.PUBLIC_URL.startswith("https://")) or not public:
        return []
    return [
        Error(
            f"Plain HTTP for {', '.join(public)}: passwords and tokens would cross the network unencrypted, "
            "and SESSION_COOKIE_SECURE is off.",
            hint="Set SWEETSPOT_PUBLIC_URL to https://… and do not set SWEETSPOT_HTTPS to 0. Plain HTTP is only for "
            "loopback: then list no other name in SWEETSPOT_ALLOWED_HOSTS.",
            id="sweetspot.E005",
        )
    ]


@register(Tags.security)
def proxy_login(**_: Any) -> list[CheckMessage]:
    """Refuse a header that too many clients could send: who can send it, can log in as anybody."""
    networks = settings.PROXY_ADDRESSES
    has_proxy = bool(networks or settings.PROXY_SOCKET)
    if not settings.PROXY_USER_HEADER and not settings.PROXY_GROUPS_HEADER and not has_proxy:
        return []
    if settings.PROXY_USER_HEADER and has_proxy and all(network.num_addresses <= MAX_PROXIES for network in networks):
        return []
    return [
        Error(
            "The log-in by a proxy's header is incomplete or open to too many addresses: anybody there could log in as "
            "anybody.",
            hint="Set SWEETSPOT_PROXY_USER_HEADER, and SWEETSPOT_PROXY_ADDRESSES to the addresses of the proxy, "
            f"in networks of at most {MAX_PROXIES} addresses, or to unix.",
            id="sweetspot.E006",
        )
    ]


@register(Tags.security)
def oidc_login(**_: Any) -> list[CheckMessage]:
    """Require https and an asymmetric signature, so that only the provider can issue ID tokens."""
    if not settings.OIDC_ISSUER:
        return []
    issuer = urlsplit(settings.OIDC_ISSUER)
    encrypted = issuer.scheme == "https" or (issuer.scheme == "http" and is_loopback(issuer.hostname or ""))
    signed = settings.OIDC_RP_SIGN_ALGO in SIGNATURES
    if encrypted and signed and settings.OIDC_RP_CLIENT_ID and settings.OIDC_RP_CLIENT_SECRET:
        return []
    return [
        Error(
            "The log-in by OpenID Connect is incomplete or not safe.",
            hint="Set SWEETSPOT_OIDC_ISSUER to https://…, SWEETSPOT_OIDC_CLIENT_ID, SWEETSPOT_OIDC_CLIENT_SECRET, and "
            f"SWEETSPOT_OIDC_ALGORITHM to one of {', '.join(SIGNATURES)}.",
            id="sweetspot.E007",
        )
    ]


def require_safe_settings() -> None:
    """For every process of the server at its start; Django itself runs checks only for its commands.

    Raises ImproperlyConfigured.
    """
    checks = (secret_key, host_names, encryption, waiting_times, proxy_login, oidc_login)
    problems = [problem for check in checks for problem in check()]
    if problems:
        raise ImproperlyConfigured(" ".join(f"{problem.msg} {problem.hint or ''}".strip() for problem in problems))


@register(Tags.security, deploy=True)
def debug_is_off(**_: Any) -> list[CheckMessage]:
    if not settings.DEBUG:
        return []
    return [Warning("SWEETSPOT_DEBUG is on: error pages show code and settings.", id="sweetspot.W001")]
