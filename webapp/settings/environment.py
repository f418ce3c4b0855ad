"""Reads settings from environment variables; a bad or missing one is named, with what to put there."""

import os
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from django.core.exceptions import ImproperlyConfigured


def text(name: str, default: str | None = None) -> str:
    value = os.environ.get(name, default)
    if value is None or (value == "" and default is None):
        raise ImproperlyConfigured(f"Set {name}. docs/operations.md lists all settings.")
    return value


def flag(name: str, *, default: bool = False) -> bool:
    value = os.environ.get(name, "").strip().lower()
    if value in ("", None):
        return default
    if value in ("1", "true", "yes", "on"):
        return True
    if value in ("0", "false", "no", "off"):
        return False
    raise ImproperlyConfigured(f"{name} is {value!r}; it takes 1 or 0.")


def words(name: str, default: str = "") -> list[str]:
    return [word.strip() for word in os.environ.get(name, default).split(",") if word.strip()]


def number(name: str, default: int) -> int:
    value = os.environ.get(name, "").strip()
    try:
        return int(value) if value else default
    except ValueError as error:
        raise ImproperlyConfigured(f"{name} is {value!r}; it takes a whole number.") from error


def database(name: str) -> dict[str, Any]:
    """A Django database entry from postgres://user:password@host:port/name?host=/socket/folder."""
    url = urlsplit(text(name))
    if url.scheme not in ("postgres", "postgresql"):
        raise ImproperlyConfigured(f"{name} must begin with postgres://; Sweetspot needs PostgreSQL.")
    query = {key: values[-1] for key, values in parse_qs(url.query).items()}
    return {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": unquote(url.path.lstrip("/")) or "sweetspot",
        "USER": unquote(url.username or ""),
        "PASSWORD": unquote(url.password or ""),
        "HOST": query.get("host", url.hostname or ""),
        "PORT": query.get("port", str(url.port or "")),
        "CONN_MAX_AGE": 600,
        "CONN_HEALTH_CHECKS": True,
    }
