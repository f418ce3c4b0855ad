"""System checks, before the server starts: settings that would make an installation unsafe or unusable."""

from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Error, Tags, Warning, register

MIN_SECRET_LENGTH = 50
MIN_DISTINCT_CHARACTERS = 5
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
    if settings.DATABASES["default"]["ENGINE"] == "django.db.backends.postgresql":
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


@register(Tags.security, deploy=True)
def debug_is_off(**_: Any) -> list[CheckMessage]:
    if not settings.DEBUG:
        return []
    return [Warning("SWEETSPOT_DEBUG is on: error pages show code and settings.", id="sweetspot.W001")]
