"""Reads settings from environment variables; a bad or missing one is named, with what to put there."""

import ipaddress
import os
from collections.abc import Iterable
from dataclasses import dataclass
from email.utils import parseaddr
from pathlib import Path
from typing import Any
from urllib.parse import SplitResult, parse_qs, unquote, urlsplit, urlunsplit

from django.core.exceptions import ImproperlyConfigured

DATABASE_PARAMETERS = {"host", "port", "sslmode", "sslrootcert", "sslcert", "sslkey"}


def text(name: str, default: str | None = None) -> str:
    value = os.environ.get(name, default)
    if value is None or (value == "" and default is None):
        raise ImproperlyConfigured(f"Set {name}. docs/reference/server-settings.md lists all settings.")
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


def days(name: str) -> int:
    """0 by default: never."""
    value = number(name, 0)
    if value < 0:
        raise ImproperlyConfigured(f"{name} is {value}; it takes a number of days, or 0 for never.")
    return value


def days_by_name(name: str) -> dict[str, int]:
    """From `nightly=90,acceptance=0`."""
    pairs = dict(word.partition("=")[::2] for word in words(name))
    if bad := [key for key, value in pairs.items() if not key or not value.isdecimal()]:
        raise ImproperlyConfigured(f"{name}: {bad[0]!r} has no number of days. Write it as nightly=90,acceptance=0.")
    return {key: int(value) for key, value in pairs.items()}


def existing_file(name: str) -> str:
    """A path; "" if none is given."""
    path = text(name, "")
    if path and not Path(path).is_file():
        raise ImproperlyConfigured(f"{name} is {path!r}; there is no such file.")
    return path


def choice(name: str, *choices: str) -> str:
    """One of the words; the first is the default."""
    value = os.environ.get(name, "").strip().lower() or choices[0]
    if value not in choices:
        raise ImproperlyConfigured(f"{name} is {value!r}; it takes {' or '.join(choices)}.")
    return value


def database(name: str) -> dict[str, Any]:
    """A Django database entry from postgres://user:password@host:port/name?host=/socket/folder&sslmode=verify-full."""
    url = urlsplit(text(name))
    if url.scheme not in ("postgres", "postgresql"):
        raise ImproperlyConfigured(f"{name} must begin with postgres://; Sweetspot needs PostgreSQL.")
    query = _database_query(name, url.query)
    return {
        "ENGINE": "webapp.core.postgresql",
        "NAME": unquote(url.path.lstrip("/")) or "sweetspot",
        "USER": unquote(url.username or ""),
        "PASSWORD": unquote(url.password or ""),
        "HOST": query.pop("host", url.hostname or ""),
        "PORT": query.pop("port", str(url.port or "")),
        "CONN_MAX_AGE": 600,
        "CONN_HEALTH_CHECKS": True,
        # Rows are in memory or on an SSD: one at a time costs little more than one after the other. PostgreSQL's own 4
        # makes it read all streams that were ever measured for a comparison of three runs.
        "OPTIONS": {"options": "-c random_page_cost=1.1"} | query,
    }


def _database_query(name: str, query: str) -> dict[str, str]:
    parameters = {key: values[-1] for key, values in parse_qs(query, keep_blank_values=True).items()}
    if "password" in parameters:
        raise ImproperlyConfigured(f"Write the password in {name} before the @: postgres://user:password@host/name")
    if unknown := set(parameters) - DATABASE_PARAMETERS:
        raise ImproperlyConfigured(
            f"{name} has the unknown parameter {min(unknown)}; it takes {', '.join(sorted(DATABASE_PARAMETERS))}."
        )
    if empty := [key for key, value in parameters.items() if not value]:
        raise ImproperlyConfigured(f"The parameter {empty[0]} of {name} has no value. Write {empty[0]}=value.")
    return parameters


def broker(name: str) -> str:
    """A Redis URL with a user of the server's own, encrypted unless it is on this machine."""
    url = text(name)
    parts = _redis_parts(name, url)
    if (parts.username or "default") == "default" or not parts.password:
        raise ImproperlyConfigured(
            f"{name} names no Redis user. Sweetspot gives every host a user of its own and needs one itself: "
            "rediss://sweetspot:password@host:6379/0, with an ACL file (docs/how-to/encryption.md, “The broker”)."
        )
    return url


def broker_address(name: str, default: str) -> str:
    """A Redis URL without user and password."""
    url = text(name, default)
    parts = _redis_parts(name, url)
    return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))


def broker_tls(url: str, *, ca_file: str) -> dict[str, Any]:
    """redis-py's options for a rediss:// URL: certificate and name must be right. {} for redis://."""
    if urlsplit(url).scheme == "redis":
        return {}
    trust = {"ssl_ca_certs": ca_file} if ca_file else {}
    return {"ssl_cert_reqs": "required", "ssl_check_hostname": True, **trust}


def _redis_parts(name: str, url: str) -> SplitResult:
    parts = urlsplit(url)
    if parts.scheme not in ("redis", "rediss") or not parts.hostname:
        raise ImproperlyConfigured(f"{name} must look like rediss://user:password@host:6379/0.")
    if parts.scheme == "redis" and not is_loopback(parts.hostname):
        raise ImproperlyConfigured(
            f"{name} is redis:// to {parts.hostname}: passwords would cross the network in the clear. Use rediss://."
        )
    return parts


@dataclass(frozen=True)
class MailServer:
    """Where e-mail is handed over. Without a host e-mail is not set up."""

    host: str = ""
    port: int = 0
    user: str = ""
    password: str = ""
    starttls: bool = False
    tls: bool = False


_MAIL_PORTS = {"tls": 465, "starttls": 587, "none": 25}


def mail_server(name: str) -> MailServer:
    """From smtp://user:password@host:587?tls=starttls or smtps://user:password@host:465."""
    url = text(name, "")
    if not url:
        return MailServer()
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise ImproperlyConfigured(f"{name} cannot be read: {error}.") from error
    kind = parse_qs(parts.query).get("tls", ["tls" if parts.scheme == "smtps" else "none"])[-1]
    if parts.scheme not in ("smtp", "smtps") or not parts.hostname or (kind == "tls") != (parts.scheme == "smtps"):
        raise ImproperlyConfigured(f"{name} must look like smtp://user:password@host:587?tls=starttls or smtps://…")
    if kind not in _MAIL_PORTS:
        raise ImproperlyConfigured(f"{name} says tls={kind}; it takes starttls or none.")
    if kind == "none" and parts.password and not is_loopback(parts.hostname):
        raise ImproperlyConfigured(
            f"{name} would send its password to {parts.hostname} unencrypted. Add ?tls=starttls or use smtps://."
        )
    return MailServer(
        host=parts.hostname,
        port=port or _MAIL_PORTS[kind],
        user=unquote(parts.username or ""),
        password=unquote(parts.password or ""),
        starttls=kind == "starttls",
        tls=kind == "tls",
    )


def mail_from(name: str, *, needed: bool) -> str:
    """The sender of e-mails: an address, or `Name <address>`."""
    sender = text(name, "")
    if needed and ("@" not in parseaddr(sender)[1] or not sender.isprintable()):
        raise ImproperlyConfigured(f"{name} is {sender!r}; it takes an address such as Sweetspot <lab@example.com>.")
    return sender


Network = ipaddress.IPv4Network | ipaddress.IPv6Network


def networks(name: str) -> list[Network]:
    """Networks as CIDR, with commas between."""
    return _networks(name, words(name))


def networks_or_socket(name: str) -> tuple[list[Network], bool]:
    """Networks as CIDR, and whether the word `unix` is among them, for connections through a Unix socket."""
    texts = words(name)
    return _networks(name, [word for word in texts if word != "unix"]), "unix" in texts


def _networks(name: str, texts: Iterable[str]) -> list[Network]:
    try:
        return [ipaddress.ip_network(word) for word in texts]
    except ValueError as error:
        raise ImproperlyConfigured(f"{name}: {error}. It takes networks such as 10.1.0.0/16,fd00:1::/64.") from error


def roles(name: str, known: tuple[str, ...]) -> dict[str, str]:
    """Roles by group from `storage-admins=admin,storage-team=operator,*=viewer`."""
    role_by_group = dict(word.rpartition("=")[::2] for word in words(name))
    for group, role in role_by_group.items():
        if not group or role not in known:
            raise ImproperlyConfigured(
                f"{name} contains {group}={role}; it takes group=role with the roles {', '.join(known)}."
            )
    return role_by_group


def header(name: str) -> str:
    """The name of a request header as its key in Django's request.META; "" for none."""
    value = text(name, "")
    if value and not value.replace("-", "").isalnum():
        raise ImproperlyConfigured(f"{name} is {value!r}; it takes the name of a header such as Remote-User.")
    return f"HTTP_{value.upper().replace('-', '_')}" if value else ""


def is_loopback(hostname: str) -> bool:
    if hostname == "localhost":
        return True
    try:
        return ipaddress.ip_address(hostname).is_loopback
    except ValueError:
        return False
