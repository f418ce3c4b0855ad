"""Limits log-in tries, counted in PostgreSQL before the password is checked.

Two counts, each over a window of WINDOW from its first try: one per account and address, one per address. A try is
counted first and subtracted after a correct password, so simultaneous guesses all count. There is no count per
account alone: anyone could then lock out anyone. Names and addresses are stored only as keyed hashes, because people
sometimes type their password into the wrong field.
"""

import ipaddress
import threading
import time
import unicodedata
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from datetime import timedelta

from django.conf import settings
from django.db import connection
from django.db.models import F, Q
from django.http import HttpRequest
from django.utils import timezone
from django.utils.crypto import salted_hmac

from webapp.core.models import LoginTries

# Limits of what one client may have stored, over time: a limit of rows alone lets it write and delete without end.
#
# A token bucket for each client, in the memory of the process (J. Turner, "New Directions in Communications", IEEE
# Communications Magazine 24(10), 1986). A server with three processes allows three times as much.

MAX_CLIENTS = 10_000  # more than that are full buckets, which are forgotten


class Rate:
    """`burst` at once, and `per_s` more each second, for each client."""

    def __init__(self, *, burst: float, per_s: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._burst, self._per_s, self._clock = burst, per_s, clock
        self._lock = threading.Lock()
        self._left: dict[Hashable, tuple[float, float]] = {}  # what is left, and at which time

    def take(self, client: Hashable, amount: float = 1.0) -> bool:
        """Take the amount if so much is left; otherwise nothing."""
        now = self._clock()
        with self._lock:
            if len(self._left) >= MAX_CLIENTS:
                self._forget_full(now)
            left = self._available(client, now)
            taken = amount <= left
            self._left[client] = (left - amount if taken else left, now)
            return taken

    def forget(self) -> None:
        """For tests."""
        with self._lock:
            self._left.clear()

    def _available(self, client: Hashable, now: float) -> float:
        left, at = self._left.get(client, (self._burst, now))
        return min(self._burst, left + (now - at) * self._per_s)

    def _forget_full(self, now: float) -> None:
        self._left = {key: left for key, left in self._left.items() if self._available(key, now) < self._burst}


WINDOW = timedelta(minutes=5)
MAX_FOR_ACCOUNT = 5
MAX_FOR_ADDRESS = 50  # an office may share one address
MAX_DRAFTS = 10  # forms of an address that are kept without a log-in
MAX_AT_ONCE = 4  # checks of passwords in one process, in which sixteen threads run Django
_slots = threading.BoundedSemaphore(MAX_AT_ONCE)
PROVIDER_SLOTS = threading.BoundedSemaphore(4)  # for requests that wait for the identity provider, in one process

_COUNT = """
INSERT INTO core_logintries (key, tries, since) VALUES (%s, 1, %s)
ON CONFLICT (key) DO UPDATE SET
  tries = CASE WHEN core_logintries.since <= %s THEN 1 ELSE core_logintries.tries + 1 END,
  since = CASE WHEN core_logintries.since <= %s THEN excluded.since ELSE core_logintries.since END
RETURNING tries, since
"""


def count_try(*, name: str, address: str) -> timedelta | None:
    """Count a try. Return how long to wait if there were too many, else None.

    An address with too many tries adds no more rows.
    """
    wait = count_address_try(address=address)
    return wait or _counted(_account_key(name, address), MAX_FOR_ACCOUNT)


def count_address_try(*, address: str) -> timedelta | None:
    """Count a try whose account is not known yet, as at the identity provider."""
    forget_old_tries()
    return _counted(_address_key(address), MAX_FOR_ADDRESS)


def forget_old_tries() -> None:
    """Also those of a clock that was ahead and was set back: they would lock people out until it is that late."""
    now = timezone.now()
    LoginTries.objects.filter(Q(since__lte=now - WINDOW) | Q(since__gt=now + WINDOW)).delete()


def may_keep_draft(*, address: str) -> bool:
    """Count a form that somebody without a log-in wants to be kept; False if the address has sent too many."""
    return _counted(_hashed(f"draft {address}"), MAX_DRAFTS) is None


def count_own_try(*, name: str) -> timedelta | None:
    """The same for the password that logged-in people type to change it, from all addresses together."""
    return _counted(_own_key(name), MAX_FOR_ACCOUNT)


def forgive_own_tries(*, name: str) -> None:
    LoginTries.objects.filter(key=_own_key(name)).delete()


@contextmanager
def password_slot() -> Iterator[bool]:
    """Around a check of a password. False if this process checks MAX_AT_ONCE already: each takes a core for long."""
    free = _slots.acquire(blocking=False)
    try:
        yield free
    finally:
        if free:
            _slots.release()


def _counted(key: str, most: int) -> timedelta | None:
    now = timezone.now()
    ended = now - WINDOW
    with connection.cursor() as cursor:
        cursor.execute(_COUNT, [key, now, ended, ended])
        tries, since = cursor.fetchone()
    return since + WINDOW - now if tries > most else None


def forgive_try(*, name: str, address: str) -> None:
    """The password was correct: reset the account's count and subtract this try from the address's count."""
    LoginTries.objects.filter(key=_account_key(name, address)).delete()
    forgive_address_try(address=address)


def forgive_address_try(*, address: str) -> None:
    LoginTries.objects.filter(key=_address_key(address), tries__gt=0).update(tries=F("tries") - 1)


def _account_key(name: str, address: str) -> str:
    return _hashed(f"account {address} {_normalised(name)}")


def _own_key(name: str) -> str:
    return _hashed(f"own password {_normalised(name)}")


def _normalised(name: str) -> str:
    """All spellings that log in to one account, as one: the form of the log-in applies NFKC too."""
    return unicodedata.normalize("NFKC", name).strip().casefold()


def _address_key(address: str) -> str:
    return _hashed(f"address {address}")


def _hashed(text: str) -> str:
    return salted_hmac("sweetspot.login", text, algorithm="sha256").hexdigest()


def address_of(request: HttpRequest) -> str:
    """The client's address: for IPv6 the /64 network, which belongs to one customer; an IPv4 address as it is.

    Behind a proxy it is the last entry of X-Forwarded-For, which our proxy wrote; earlier entries come from the
    client. Without SWEETSPOT_BEHIND_PROXY the header is ignored.
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
