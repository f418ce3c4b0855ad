"""How often somebody may try a password: counted in PostgreSQL before the password is looked at.

Two counts, each over its own window of WINDOW from its first try: one for an account from one address, one for an
address whatever the account. A try is counted first and forgiven when it was right, so a hundred guesses at once are
a hundred guesses. An account alone is not counted: anybody could then lock anybody out.
Names and addresses are kept only as keyed hashes: people type their password into the wrong field.
"""

import ipaddress
from datetime import timedelta

from django.conf import settings
from django.db import connection
from django.db.models import F
from django.http import HttpRequest
from django.utils import timezone
from django.utils.crypto import salted_hmac

from webapp.core.models import LoginTries

WINDOW = timedelta(minutes=5)
MAX_FOR_ACCOUNT = 5
MAX_FOR_ADDRESS = 50  # a whole office may sit behind one

_COUNT = """
INSERT INTO core_logintries (key, tries, since) VALUES (%s, 1, %s)
ON CONFLICT (key) DO UPDATE SET
  tries = CASE WHEN core_logintries.since <= %s THEN 1 ELSE core_logintries.tries + 1 END,
  since = CASE WHEN core_logintries.since <= %s THEN excluded.since ELSE core_logintries.since END
RETURNING tries, since
"""


def count_try(*, name: str, address: str) -> timedelta | None:
    """Count a try; how long to wait where it was one too many, None where it may go on."""
    LoginTries.objects.filter(since__lte=timezone.now() - WINDOW).delete()
    limits = ((_account_key(name, address), MAX_FOR_ACCOUNT), (_address_key(address), MAX_FOR_ADDRESS))
    waits = [_counted(key, most) for key, most in limits]
    return max((wait for wait in waits if wait), default=None)


def _counted(key: str, most: int) -> timedelta | None:
    now = timezone.now()
    ended = now - WINDOW
    with connection.cursor() as cursor:
        cursor.execute(_COUNT, [key, now, ended, ended])
        tries, since = cursor.fetchone()
    return since + WINDOW - now if tries > most else None


def forgive_try(*, name: str, address: str) -> None:
    """It was right: the account's count is forgotten, and this try is taken off the address's."""
    LoginTries.objects.filter(key=_account_key(name, address)).delete()
    LoginTries.objects.filter(key=_address_key(address), tries__gt=0).update(tries=F("tries") - 1)


def _account_key(name: str, address: str) -> str:
    return _hashed(f"account {address} {name.strip().casefold()}")


def _address_key(address: str) -> str:
    return _hashed(f"address {address}")


def _hashed(text: str) -> str:
    return salted_hmac("sweetspot.login", text, algorithm="sha256").hexdigest()


def address_of(request: HttpRequest) -> str:
    """Where a request comes from: the network of 2^64 addresses that one IPv6 customer has, an IPv4 address as it is.

    Behind a proxy that is the last entry of X-Forwarded-For, which our proxy has written itself; all before it is
    what the client says. Without SWEETSPOT_BEHIND_PROXY the header is not looked at.
    """
    given = str(request.META.get("REMOTE_ADDR", ""))
    if settings.BEHIND_PROXY:
        given = request.headers.get("X-Forwarded-For", given).rpartition(",")[2].strip()
    try:
        address = ipaddress.ip_address(given)
    except ValueError:
        return "unknown"
    if isinstance(address, ipaddress.IPv6Address):
        return str(address.ipv4_mapped or ipaddress.ip_network((address, 64), strict=False))
    return str(address)
